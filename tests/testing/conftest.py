"""A client that speaks raw frames, so that it can also send what no SDK would."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from livekit_gemini_resilient.testing import GeminiLiveServer

PATHS = {
    "gemini": "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
    "vertex": "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent",
}

SETUP: dict[str, Any] = {
    "model": "models/any",
    "tools": [{"functionDeclarations": [{"name": "lookUp"}, {"name": "book"}]}],
    "inputAudioTranscription": {},
    "outputAudioTranscription": {},
    "sessionResumption": {},
}


def user(text: str, *, complete: bool = True) -> dict[str, Any]:
    """Return client content with one user turn."""
    turn = {"role": "user", "parts": [{"text": text}]}
    return {"client_content": {"turns": [turn], "turnComplete": complete}}


def response(call_id: str, name: str = "lookUp", output: str = "forty-two") -> dict[str, Any]:
    """Return a tool response with one result."""
    body = {"id": call_id, "name": name, "response": {"output": output}}
    return {"tool_response": {"functionResponses": [body]}}


class RawClient:
    """A websocket on which the test sends and reads single frames."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, frame: Any) -> None:
        await self.socket.send(frame if isinstance(frame, (str, bytes)) else json.dumps(frame))

    async def next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.socket.recv())
        return message

    async def until(self, key: str) -> list[dict[str, Any]]:
        """Return the messages up to the first that has ``key``, at the top or as server content."""
        messages = [await self.next()]
        while key not in {**messages[-1], **(messages[-1].get("serverContent") or {})}:
            messages.append(await self.next())
        return messages

    async def turn(self) -> list[dict[str, Any]]:
        return await self.until("turnComplete")

    async def call_ids(self) -> list[str]:
        *_, message = await self.until("toolCall")
        return [call["id"] for call in message["toolCall"]["functionCalls"]]

    async def handle(self) -> str:
        *_, message = await self.until("sessionResumptionUpdate")
        return str(message["sessionResumptionUpdate"]["newHandle"])

    async def closed(self) -> tuple[int, str]:
        """Read to the end and return close code and reason."""
        try:
            while True:
                await self.socket.recv()
        except ConnectionClosed as closed:
            return (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (1006, "")


Dial = Callable[..., Awaitable[RawClient]]


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """Yield a function that connects a `RawClient`.

    It sends `SETUP`, changed by its keyword arguments, and reads the answer; ``answered=False``
    leaves the answer, ``setup=False`` sends nothing.
    """
    async with contextlib.AsyncExitStack() as sockets:

        async def start(
            server: GeminiLiveServer,
            *,
            path: str | None = None,
            setup: bool = True,
            answered: bool = True,
            **changes: Any,
        ) -> RawClient:
            uri = server.url.replace("https", "wss") + (path or PATHS[server.profile.api])
            socket = await connect(uri, ssl=server.ssl_context(), max_size=None, close_timeout=1)
            # Python 3.10 takes a TLS transport for unclosed if only its peer has closed it.
            sockets.callback(socket.transport.abort)
            sockets.push_async_callback(socket.close)
            client = RawClient(socket)
            if setup:
                await client.send({"setup": {**SETUP, **changes}})
                if answered:
                    assert "setupComplete" in await client.next()
            return client

        yield start


@pytest.fixture(params=["2.5-native-audio", "3.1-flash-live", "vertex-live-2.5"])
def profile(request: pytest.FixtureRequest) -> str:
    """Every profile in turn."""
    name: str = request.param
    return name
