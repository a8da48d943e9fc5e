"""Holds a profile against a recording: the same client frames, and is the answer of one shape?

Compared are keys, the order of messages, which fields share one, the styles of ids, MIME types and
flags; not words, numbers or audio. How often a chunk of speech or an empty ``serverContent`` is
repeated does not count, nor do messages without a field, which some families strew in.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from .dialect import Message
from .profiles import Profile
from .recording import Exchange, load, script_of
from .server import GeminiLiveServer

_ID_STYLES = {
    "function-call-N": re.compile(r"function-call-\d+"),
    "fc_N": re.compile(r"fc_\d+"),
    "uuid": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
}

_IDS = frozenset({"id", "ids", "newHandle", "sessionId"})
_COMPARED_STRINGS = frozenset(
    {"mimeType", "role", "type", "turnCompleteReason", "interactionStatus"}
)
_USER_DATA = frozenset({"args", "response"})
_SPEECH = frozenset({"modelTurn", "outputTranscription", "inputTranscription"})

_END = "endOfExchange"
"""Key of the message that tells the replaying client to go on; no server sends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came of a comparison."""

    path: Path
    """The recording."""

    diff: list[str]
    """Lines of a unified diff of the shapes, recorded to simulated; empty if they agree."""

    breaches: list[str]
    """What the simulator objected to in the recorded client."""

    @property
    def agrees(self) -> bool:
        """Whether profile and recording agree."""
        return not self.diff and not self.breaches

    def __str__(self) -> str:
        verdict = "agrees" if self.agrees else "DISAGREES"
        objections = [f"objection: {breach}" for breach in self.breaches]
        return "\n  ".join([f"{self.path.name}: {verdict}", *self.diff, *objections])


async def compare(path: Path, profile: Profile) -> Comparison:
    """Replay the client's side of a recording against a profile and compare the answers.

    Raises:
        RecordingError: the file is no recording.
    """
    exchanges = load(path)
    recorded = [message for exchange in exchanges for message in exchange.received]
    server = GeminiLiveServer(script_of(recorded, profile), profile=profile, strict=False)
    async with server:
        simulated = await _replay(exchanges, server)
    diff = difflib.unified_diff(
        shapes(recorded), shapes(simulated), "recorded", "simulated", n=2, lineterm=""
    )
    return Comparison(
        path=path, diff=list(diff), breaches=[breach.what for breach in server.breaches]
    )


def shapes(messages: Iterable[Message]) -> list[str]:
    """Return a line per message that has a field; runs of speech, also alternating ones, count once
    and end in `` +``."""
    lines: list[str] = []
    for message in filter(None, messages):
        content = message.get("serverContent")
        speech = content == {} or bool(_SPEECH & (content or {}).keys())
        lines.append(json.dumps(_shape(message), sort_keys=True) + (" +" if speech else ""))
        for width in (1, 2):
            run = lines[-2 * width :]
            if len(run) == 2 * width and run[:width] == run[width:] and _all_speech(run):
                del lines[-width:]
    return lines


def _all_speech(lines: list[str]) -> bool:
    return all(line.endswith(" +") for line in lines)


def _shape(value: Any, key: str = "") -> Any:
    if key in _USER_DATA:
        return "user data"
    if isinstance(value, dict):
        return {name: _shape(item, name) for name, item in value.items()}
    if isinstance(value, list):
        shaped = [_shape(item, key) for item in value]
        if shaped and all(isinstance(item, dict) for item in shaped):
            return [{name: item[name] for item in shaped for name in item}]
        return sorted({str(item) for item in shaped})
    if isinstance(value, str):
        if key in _IDS:
            return next((s for s, form in _ID_STYLES.items() if form.fullmatch(value)), "opaque")
        return value if key in _COMPARED_STRINGS else "text"
    return value if isinstance(value, bool) else "number"


async def _replay(exchanges: list[Exchange], server: GeminiLiveServer) -> list[Message]:
    """Return all that the server sends in answer to the recorded client."""
    path = {
        "gemini": "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
        "vertex": "google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent",
    }[server.profile.api]
    uri = f"wss{server.url.removeprefix('https')}/ws/{path}"
    async with connect(uri, ssl=server.ssl_context(), max_size=None) as client:
        try:
            return await _exchange_all(client, exchanges, server)
        finally:
            await client.close()
            # Python 3.10 takes a TLS transport for unclosed if only its peer has closed it.
            client.transport.abort()


async def _exchange_all(
    client: ClientConnection, exchanges: list[Exchange], server: GeminiLiveServer
) -> list[Message]:
    simulated: list[Message] = []
    recorded_ids: list[str] = []
    sent = 0
    for exchange in exchanges:
        ids = dict(zip(recorded_ids, (call.id for call in server.calls), strict=False))
        for frame in exchange.sent:
            await client.send(json.dumps(_renamed(frame, ids)))
        sent += len(exchange.sent)
        if not await _settled(server, sent, exchange.received):
            return [*simulated, *await _rest(client), {"close": {}}]
        simulated += await _answers(client)
        recorded_ids += [
            call["id"]
            for message in exchange.received
            for call in (message.get("toolCall") or {}).get("functionCalls", [])
        ]
    return simulated


async def _settled(server: GeminiLiveServer, frames: int, recorded: list[Message]) -> bool:
    """Wait until so many frames have been answered, and let the caller say what was recorded.

    Returns:
        Whether the connection still stands.
    """
    connection = await server.until(lambda: server.connections[-1:], "the replaying client")
    await server.until(
        lambda: len(connection[0].frames) == frames or connection[0].closed, "the recorded frames"
    )
    if connection[0].closed:
        return False
    said = "".join(
        ((message.get("serverContent") or {}).get("inputTranscription") or {}).get("text", "")
        for message in recorded
    )
    if said:
        await server.caller_says(said.strip())
    await server.send({_END: {}})
    return True


async def _answers(client: ClientConnection) -> list[Message]:
    messages: list[Message] = []
    while _END not in (message := json.loads(await client.recv())):
        messages.append(message)
    return messages


async def _rest(client: ClientConnection) -> list[Message]:
    messages: list[Message] = []
    try:
        while True:
            messages.append(json.loads(await client.recv()))
    except ConnectionClosed:
        return messages


def _renamed(value: Any, ids: dict[str, str]) -> Any:
    """Return a client frame with the recorded call ids replaced by the simulator's."""
    if isinstance(value, dict):
        return {key: _renamed(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, ids) for item in value]
    return ids.get(value, value) if isinstance(value, str) else value
