"""The unmodified google-genai SDK and LiveKit's plugin talk to the simulator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from google.genai.live import AsyncSession
from livekit.plugins import google

from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

LOOK_UP = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="lookUp",
            parameters=types.Schema(
                type=types.Type.OBJECT,
                properties={"theCity": types.Schema(type=types.Type.STRING)},
            ),
        )
    ]
)


@asynccontextmanager
async def session(
    server: GeminiLiveServer, handle: str | None = None
) -> AsyncIterator[AsyncSession]:
    options: dict[str, Any] = server.model_options()
    model = options.pop("model")
    client = genai.Client(**options)
    config = types.LiveConnectConfig(
        response_modalities=[types.Modality.AUDIO],
        tools=[LOOK_UP],
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
        session_resumption=types.SessionResumptionConfig(handle=handle),
    )
    async with client.aio.live.connect(model=model, config=config) as live:
        yield live
    await client.aio.aclose()


async def say(live: AsyncSession, text: str) -> None:
    turn = types.Content(role="user", parts=[types.Part(text=text)])
    await live.send_client_content(turns=turn, turn_complete=True)


async def turn(live: AsyncSession) -> list[types.LiveServerMessage]:
    return [message async for message in live.receive()]


async def test_the_sdk_holds_a_tool_round_on_every_profile(profile: str) -> None:
    """Audio, words, calls, ids and usage arrive as the SDK's own types."""
    script = [Call("lookUp", {"theCity": "Oslo"}), Say("It rains in Oslo.")]
    async with GeminiLiveServer(script, profile=profile) as server, session(server) as live:
        await say(live, "how is the weather")
        async for message in live.receive():
            if message.tool_call:
                [call] = message.tool_call.function_calls or []
                assert call.args == {"theCity": "Oslo"}
                answer = types.FunctionResponse(
                    id=call.id, name=call.name, response={"output": "rain"}
                )
                await live.send_tool_response(function_responses=answer)
                break
        messages: list[types.LiveServerMessage] = []
        while not any(message.data for message in messages):
            messages += await turn(live)
        words = [
            m.server_content.output_transcription.text or ""
            for m in messages
            if m.server_content and m.server_content.output_transcription
        ]
        assert "".join(words) == "It rains in Oslo."
        assert sum(len(m.data or b"") for m in messages) == 5 * 0.04 * 24_000 * 2
        assert messages[-1].usage_metadata or messages[-1].session_resumption_update
        assert server.replies[0].knew("rain")


async def test_the_sdk_answers_a_non_blocking_call_without_waiting_for_its_turn_to_end() -> None:
    """The response may come at any time, with its scheduling."""
    script = [Call("lookUp"), Say("Hello."), Say("It rains.")]
    async with GeminiLiveServer(script, profile="3.8-live") as server, session(server) as live:
        await say(live, "how is the weather")
        call = await server.called("lookUp")
        await say(live, "hello")
        await server.replied()
        answer = types.FunctionResponse(
            id=call.id,
            name=call.name,
            response={"output": "rain"},
            scheduling=types.FunctionResponseScheduling.WHEN_IDLE,
        )
        await live.send_tool_response(function_responses=answer)
        assert (await server.replied(2)).knew("rain")
        # All of them: the SDK cannot close with messages unread.
        turns = [await turn(live) for _ in range(3)]
        assert [sum(bool(m.tool_call) for m in messages) for messages in turns] == [1, 0, 0]


async def test_the_sdk_sends_responses_without_ids_on_vertex() -> None:
    """The call arrives without an id, and is answered by name."""
    script = [Call("lookUp"), Say("It rains.")]
    profile = "vertex-live-2.5-no-ids"
    async with GeminiLiveServer(script, profile=profile) as server, session(server) as live:
        await say(live, "how is the weather")
        async for message in live.receive():
            if message.tool_call:
                [call] = message.tool_call.function_calls or []
                assert call.id is None
                answer = types.FunctionResponse(name=call.name, response={"output": "rain"})
                await live.send_tool_response(function_responses=answer)
                break
        assert (await server.replied()).knew("rain")


async def test_the_sdk_resumes_from_a_handle(profile: str) -> None:
    """The handle comes after the turn, and takes the conversation to the next connection."""
    script = [Say("Hello Ada."), Say("You are Ada.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        async with session(server) as live:
            await say(live, "I am Ada")
            await turn(live)
            update = (await anext(live.receive())).session_resumption_update
            assert update
            assert update.resumable
        async with session(server, update.new_handle) as live:
            await say(live, "who am I")
            await turn(live)
            assert (await server.replied(2)).knew("I am Ada")


async def test_the_sdk_reports_a_drop_with_its_code(profile: str) -> None:
    """A close frame in mid-speech is an ``APIError`` with code and reason."""
    gate = Gate()
    script = [Say("A long story.", gate=gate)]
    async with GeminiLiveServer(script, profile=profile) as server, session(server) as live:
        await say(live, "tell me")
        await gate.reached()
        await server.drop(1011, "Internal error encountered.")
        with pytest.raises(errors.APIError) as dropped:
            await turn(live)
    assert dropped.value.code == 1011


async def test_http_options_are_new_each_time() -> None:
    """A client may write into its options without touching another's."""
    async with GeminiLiveServer() as server:
        first, second = server.http_options(), server.http_options()
        assert first is not second
        assert first.async_client_args is not second.async_client_args


@pytest.mark.parametrize("served", ["2.5-native-audio", "vertex-live-2.5"])
async def test_the_livekit_plugin_connects_with_the_model_options(served: str) -> None:
    """``RealtimeModel(**server.model_options())`` is all it takes."""
    async with GeminiLiveServer(profile=served) as server:
        model = google.realtime.RealtimeModel(**server.model_options())
        live = model.session()
        connection = await server.connected()
        await live.aclose()
        await server.until(lambda: connection.closed, "the plugin to close")
    assert "session_resumption" in connection.setup
