"""What the plugin's session does right, and its own tests protect, ours does as well.

Some of it came with later versions of the plugin: there the plugin of today passes and the oldest
must fail. The rest is inherited or rebuilt; here is what would break with it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.genai import types
from livekit import rtc
from livekit.agents import llm
from livekit.agents.metrics import RealtimeModelMetrics
from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from livekit_gemini_resilient import RealtimeModel
from livekit_gemini_resilient.testing import Call, Connection, Gate, GeminiLiveServer, Say

from .direct import get_time, get_weather
from .stack import PROFILES, book_table, connected_client, ours_and_plain, patience

SINCE_1_7 = ("1.7.1", "1.8.3", "1.8.9")
"""Versions of the plugin that were mended in 1.6.6 to 1.7.1."""

MANUAL = types.RealtimeInputConfig(
    automatic_activity_detection=types.AutomaticActivityDetection(disabled=True)
)
"""The client marks the caller's activity."""

NON_BLOCKING = types.Behavior.NON_BLOCKING
WHEN_IDLE = types.FunctionResponseScheduling.WHEN_IDLE


@dataclass
class Observed:
    """A realtime session by itself, ours or the plugin's, and what it emits."""

    session: Any
    patience: float
    generations: asyncio.Queue[llm.GenerationCreatedEvent] = field(default_factory=asyncio.Queue)
    usage: asyncio.Queue[RealtimeModelMetrics] = field(default_factory=asyncio.Queue)
    words: list[llm.InputTranscriptionCompleted] = field(default_factory=list)

    def listen(self) -> None:
        """Collect events; the metrics of a connection have no request."""
        self.session.on("generation_created", self.generations.put_nowait)
        self.session.on(
            "metrics_collected", lambda m: self.usage.put_nowait(m) if m.request_id else None
        )
        self.session.on("input_audio_transcription_completed", self.words.append)

    async def next(self, queue: asyncio.Queue[Any]) -> Any:
        """The next event.

        Raises:
            AssertionError: There is none.
        """
        return await self.in_time(queue.get(), "an event")

    async def in_time(self, awaited: Any, what: str) -> Any:
        """What is awaited, for as long as it is worth waiting."""
        try:
            return await asyncio.wait_for(awaited, self.patience)
        except asyncio.TimeoutError:
            raise AssertionError(f"waited {self.patience} s for {what}") from None


@contextlib.asynccontextmanager
async def observed(
    server: GeminiLiveServer, *, plain: bool = False, tools: Any = (get_weather,), **options: Any
) -> AsyncIterator[Observed]:
    """A connected session with a tool."""
    model = (PluginModel if plain else RealtimeModel)(**{**server.model_options(), **options})
    one = Observed(model.session(), patience(plain))
    one.listen()
    await one.session.update_tools(list(tools))
    try:
        await connected_client(one.session)
        yield one
    finally:
        await one.session.aclose()


def realtime_inputs(connection: Connection, kind: str) -> list[Any]:
    """What was sent as one kind of realtime input."""
    inputs = [frame["realtime_input"] for frame in connection.frames if "realtime_input" in frame]
    return [one[kind] for one in inputs if kind in one]


def tenth_of_a_second(*, rate: int, channels: int) -> rtc.AudioFrame:
    """Silence, s16le."""
    samples = rate // 10
    return rtc.AudioFrame(
        data=bytes(2 * channels * samples),
        sample_rate=rate,
        num_channels=channels,
        samples_per_channel=samples,
    )


async def collected(stream: Any) -> list[Any]:
    """A stream to its end."""
    return [piece async for piece in stream]


# ---------------------------------------------------------------- generations


@ours_and_plain(plain_survives=SINCE_1_7)
async def test_text_and_audio_end_at_generation_complete(profile: str, plain: bool) -> None:
    """The service holds ``turnComplete`` back until it thinks that the speech was heard."""
    gate = Gate()
    async with (
        GeminiLiveServer([Say("Hello there.", turn_gate=gate)], profile=profile) as server,
        observed(server, plain=plain) as one,
    ):
        await server.caller_says("Hello?")
        generation = await one.next(one.generations)
        message = await anext(aiter(generation.message_stream))
        await gate.reached()
        texts = await one.in_time(collected(message.text_stream), "the end of the text")
        frames = await one.in_time(collected(message.audio_stream), "the end of the audio")
        assert "".join(texts).strip() == "Hello there."
        assert sum(frame.duration for frame in frames) == pytest.approx(0.2)
        gate.open()
        await server.replied()


async def test_usage_is_reported_with_the_reply_that_it_belongs_to() -> None:
    """As LiveKit's metrics: tokens by modality, the model, and the id of the generation."""
    async with GeminiLiveServer([Say("Hello there.")]) as server, observed(server) as one:
        await server.caller_says("Hello?")
        generation = await one.next(one.generations)
        usage = await one.next(one.usage)
        assert usage.request_id == generation.response_id
        assert usage.output_tokens > 0
        assert usage.total_tokens == usage.input_tokens + usage.output_tokens
        assert usage.output_token_details.audio_tokens > 0
        assert usage.metadata.model_name == server.model_options()["model"]
        assert usage.duration >= 0


async def test_the_time_that_a_connection_took_is_reported() -> None:
    """As LiveKit's metrics, for each connection, without a request."""
    taken: asyncio.Queue[RealtimeModelMetrics] = asyncio.Queue()
    async with GeminiLiveServer() as server:
        session = RealtimeModel(**server.model_options()).session()
        session.on("metrics_collected", taken.put_nowait)
        for _ in range(2):
            metrics = await asyncio.wait_for(taken.get(), 10)
            assert (metrics.request_id, metrics.total_tokens) == ("", 0)
            assert metrics.acquire_time > 0
            await session.update_tools([get_time])
        await session.aclose()


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_turn_of_the_caller_is_stamped_before_the_reply_to_it(profile: str) -> None:
    """In the session's own context, and in the event where it can say so (since agents 1.7)."""
    before = time.time()
    async with (
        GeminiLiveServer([Say("Hello there.")], profile=profile) as server,
        observed(server) as one,
    ):
        await server.caller_says("Hello?")
        generation = await one.next(one.generations)
        await one.in_time(collected(generation.message_stream), "the end of the reply")
        asked, answered = one.session.chat_ctx.items
        assert (asked.role, answered.role) == ("user", "assistant")
        assert before <= asked.created_at <= answered.created_at <= time.time()
        final = one.words[-1]
        assert (final.is_final, final.item_id, final.transcript) == (True, asked.id, "Hello?")
        if hasattr(final, "turn_started_at"):
            assert {event.turn_started_at for event in one.words} == {asked.created_at}


async def test_a_fresh_connection_is_told_the_question_before_the_answer() -> None:
    """The stamps order the history that it is told."""
    async with (
        GeminiLiveServer([Say("Hello there.")], handles="never") as server,
        observed(server) as one,
    ):
        await server.caller_says("Hello?")
        generation = await one.next(one.generations)
        await one.in_time(collected(generation.message_stream), "the end of the reply")
        await server.drop()
        second = await server.connected(2)
        await server.until(lambda: second.context, "the history")
        assert [entry.text.strip() for entry in second.context] == ["Hello?", "Hello there."]


# ---------------------------------------------------------------- tools


async def result_of(one: Observed, **fields: Any) -> None:
    """Hand over the result of the next call."""
    generation = await one.next(one.generations)
    (call,) = await one.in_time(collected(generation.function_stream), "a call")
    context = one.session.chat_ctx
    output = {"call_id": call.call_id, "name": call.name, "output": "foggy", "is_error": False}
    context.items.append(llm.FunctionCallOutput(**output, **fields))
    await one.session.update_chat_ctx(context)


@pytest.mark.parametrize(
    ("profile", "behavior", "given", "sent"),
    [
        ("2.5-native-audio", NON_BLOCKING, WHEN_IDLE, "WHEN_IDLE"),
        ("2.5-native-audio", NON_BLOCKING, None, ""),
        ("2.5-native-audio", None, WHEN_IDLE, "WHEN_IDLE"),
        ("vertex-live-2.5", None, WHEN_IDLE, ""),
    ],
)
async def test_a_response_is_scheduled_as_the_options_say(
    profile: str, behavior: Any, given: Any, sent: str
) -> None:
    """Nothing is sent where nothing was said, nor on Vertex AI, which does not support it."""
    options = {"tool_behavior": behavior, "tool_response_scheduling": given}
    script = [Call("get_weather"), Say("It is foggy.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        observed(server, **{k: v for k, v in options.items() if v is not None}) as one,
    ):
        await server.caller_says("What is the weather?")
        await result_of(one)
        await server.replied()
        assert [r.scheduling for r in server.tool_responses] == [sent]


async def test_another_scheduling_holds_from_the_next_response_on_without_a_reconnect() -> None:
    """It is part of the response, not of the setup."""
    script = [Call("get_weather"), Say("It is foggy.")]
    async with (
        GeminiLiveServer(script) as server,
        observed(server, tool_behavior=NON_BLOCKING) as one,
    ):
        one.session.update_options(tool_response_scheduling=WHEN_IDLE)
        await server.caller_says("What is the weather?")
        await result_of(one)
        await server.replied()
        assert [(r.connection, r.scheduling) for r in server.tool_responses] == [(1, "WHEN_IDLE")]


@pytest.mark.skipif(
    "reply_required" not in llm.FunctionCallOutput.model_fields,
    reason="with this livekit-agents every result wants a reply",
)
async def test_a_result_that_wants_no_reply_is_sent_silently() -> None:
    """To NON_BLOCKING tools of the Gemini API, the only ones that can be told so."""
    async with (
        GeminiLiveServer([Call("get_weather")]) as server,
        observed(server, tool_behavior=NON_BLOCKING) as one,
    ):
        await server.caller_says("What is the weather?")
        await result_of(one, reply_required=False)
        await server.until(lambda: server.tool_responses, "the response")
        assert [r.scheduling for r in server.tool_responses] == ["SILENT"]


@pytest.mark.parametrize("profile", PROFILES)
async def test_tool_choice_none_rejects_the_call_and_the_model_answers_without_it(
    profile: str,
) -> None:
    """The service has no such option: the call is answered with an error, and runs nowhere."""
    script = [Call("get_weather"), Say("I cannot look it up.")]
    async with GeminiLiveServer(script, profile=profile) as server, observed(server) as one:
        one.session.update_options(tool_choice="none")
        await server.caller_says("What is the weather?")
        reply = await server.replied()
        (response,) = server.tool_responses
        assert (response.verdict, list(response.response)) == ("accepted", ["error"])
        assert reply.text.strip() == "I cannot look it up."
        while not one.generations.empty():
            generation = one.generations.get_nowait()
            assert await one.in_time(collected(generation.function_stream), "its end") == []


@pytest.mark.fault("B11")
@ours_and_plain()
async def test_tool_choice_none_keeps_the_rest_of_the_message_that_carried_the_call(
    profile: str, plain: bool
) -> None:
    """Only the call is rejected: what else the message holds, handle and usage, is taken."""
    async with (
        GeminiLiveServer([Say("Hello there.")], profile=profile, handles="never") as server,
        observed(server, plain=plain) as one,
    ):
        await server.caller_says("Hello?")
        await one.next(one.usage)
        one.session.update_options(tool_choice="none")
        await server.send(
            {
                "toolCall": {"functionCalls": [{"id": "f1", "name": "get_weather", "args": {}}]},
                "sessionResumptionUpdate": {"newHandle": "the next", "resumable": True},
                "usageMetadata": {"totalTokenCount": 4711},
            }
        )
        usage = await one.next(one.usage)
        assert usage.total_tokens == 4711
        assert one.session.session_resumption_handle == "the next"


async def test_the_usage_of_a_call_that_was_rejected_first_of_all_is_reported() -> None:
    """There is no generation that it could belong to; the tokens count all the same."""
    reported: asyncio.Queue[RealtimeModelMetrics] = asyncio.Queue()
    async with GeminiLiveServer() as server, observed(server) as one:
        one.session.on("metrics_collected", reported.put_nowait)
        one.session.update_options(tool_choice="none")
        await server.send(
            {
                "toolCall": {"functionCalls": [{"id": "f1", "name": "get_weather", "args": {}}]},
                "usageMetadata": {"totalTokenCount": 4711},
            }
        )
        assert (await one.next(reported)).total_tokens == 4711
        assert one.generations.empty()


# ---------------------------------------------------------------- input


async def test_the_callers_audio_arrives_as_16_khz_mono() -> None:
    """Whatever the microphone gives."""
    async with GeminiLiveServer() as server, observed(server) as one:
        for _ in range(10):
            one.session.push_audio(tenth_of_a_second(rate=48000, channels=2))
        connection = await server.connected()
        # pieces of 0.05 s, the last of which the resampler may still hold
        await server.until(lambda: len(realtime_inputs(connection, "audio")) >= 18, "the audio")
        for blob in realtime_inputs(connection, "audio"):
            assert blob["mime_type"] == "audio/pcm;rate=16000"
            assert len(base64.urlsafe_b64decode(blob["data"])) == 2 * 16000 // 20


async def test_activity_that_the_client_marks_begins_once_and_ends_with_the_reply() -> None:
    """``interrupt`` marks the beginning too; a reply that is asked for ends the activity."""
    async with (
        GeminiLiveServer([Say("Hello there.")]) as server,
        observed(server, realtime_input_config=MANUAL) as one,
    ):
        one.session.start_user_activity()
        one.session.interrupt()
        connection = await server.connected()
        await server.caller_says("Hello?")
        one.session.generate_reply()
        await server.replied()
        assert len(realtime_inputs(connection, "activity_start")) == 1
        assert len(realtime_inputs(connection, "activity_end")) == 1


@pytest.mark.parametrize("profile", PROFILES)
async def test_interrupt_sends_nothing_where_the_server_detects_activity(profile: str) -> None:
    """Nor do calls that the service has no frame for: they warn, and that is all."""
    async with GeminiLiveServer(profile=profile) as server, observed(server) as one:
        one.session.start_user_activity()
        one.session.interrupt()
        one.session.commit_audio()
        one.session.clear_audio()
        one.session.truncate(message_id="any", modalities=["audio"], audio_end_ms=0)
        one.session.push_audio(tenth_of_a_second(rate=16000, channels=1))
        connection = await server.connected()
        await server.until(lambda: realtime_inputs(connection, "audio"), "what was sent last")
        inputs = [list(frame["realtime_input"]) for frame in connection.frames[1:]]
        assert all(kinds == ["audio"] for kinds in inputs)


# ---------------------------------------------------------------- options


async def test_an_option_of_the_model_reaches_each_session_and_a_sessions_own_stays_there() -> None:
    """One reconnect each; the plugin shares one object between all sessions."""
    async with GeminiLiveServer() as server:
        model = RealtimeModel(**server.model_options())
        first, second = model.session(), model.session()
        await server.connected(2)
        first.update_options(temperature=0.5)
        third = await server.connected(3)
        assert third.setup["generation_config"]["temperature"] == 0.5
        model.update_options(voice="Kore")
        await server.connected(5)
        later = {c.setup["generation_config"].get("temperature"): c for c in server.connections[3:]}
        assert set(later) == {0.5, None}
        for connection in later.values():
            assert "Kore" in str(connection.setup["generation_config"]["speech_config"])
        await first.aclose()
        await second.aclose()


@pytest.mark.parametrize(
    ("profile", "connections"), [("2.5-native-audio", 2), ("vertex-live-2.5", 1)]
)
async def test_instructions_are_replaced_in_place_where_the_service_can(
    profile: str, connections: int
) -> None:
    """By a ``system`` turn on Vertex AI (documented), over a new connection elsewhere."""
    async with GeminiLiveServer(profile=profile) as server, observed(server) as one:
        await server.connected()
        await one.session.update_instructions("Speak like a pirate.")
        await server.until(
            lambda: any("pirate" in str(c.frames) for c in server.connections), "the instructions"
        )
        assert len(server.connections) == connections
        told = next(c for c in server.connections if "pirate" in str(c.frames))
        assert ("pirate" in str(told.setup)) is (connections == 2)


async def test_a_setup_is_built_once_for_a_change_and_again_for_another() -> None:
    """To see whether it can be made, and for the dial; which carries what holds by then, though."""
    builds = 0
    async with GeminiLiveServer() as server, observed(server) as one:
        await server.connected()
        build = one.session._build_connect_config

        def counted() -> types.LiveConnectConfig:
            nonlocal builds
            builds += 1
            return build()

        one.session._build_connect_config = counted
        await one.session.update_tools([get_weather, get_time])
        second = await server.connected(2)
        await connected_client(one.session)
        assert second.declared_tools == {"get_weather", "get_time"}
        assert builds == 1
        await one.session.update_tools([get_weather, get_time, book_table])
        await one.session.update_tools([get_weather, get_time])
        third = await server.connected(3)
        assert third.declared_tools == {"get_weather", "get_time"}


# ---------------------------------------------------------------- the end


@pytest.mark.fault("E10")
@ours_and_plain(plain_survives=SINCE_1_7)
async def test_the_http_clients_are_released_at_the_end(profile: str, plain: bool) -> None:
    """Otherwise the garbage collector closes them, on whatever loop runs at that moment."""
    async with (
        GeminiLiveServer(profile=profile) as server,
        observed(server, plain=plain, tools=(get_time,)) as one,
    ):
        sdk = one.session._client.aio._api_client
        assert not sdk._async_httpx_client.is_closed
        await one.session.aclose()
        assert sdk._async_httpx_client.is_closed
