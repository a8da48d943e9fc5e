"""What can be seen from outside, and what must not be: audio that was given up, and the log."""

from __future__ import annotations

import asyncio
import functools
import logging

import pytest
from livekit import rtc
from livekit.agents import llm

from livekit_gemini_resilient import (
    Outcome,
    ReportOutcome,
    ResilienceOptions,
    SessionFailed,
    ToolsUnusable,
)
from livekit_gemini_resilient.core.events import InputPushed
from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .direct import connected, get_time, get_weather
from .stack import ANSWER, eventually, on_call
from .test_bad_settings import SCHEMAS, tool_with

LOGGER = "livekit.plugins.google.resilient"


def seconds_of_audio(seconds: float) -> rtc.AudioFrame:
    """Silence, 16 kHz mono s16le."""
    samples = round(16000 * seconds)
    return rtc.AudioFrame(
        data=bytes(2 * samples), sample_rate=16000, num_channels=1, samples_per_channel=samples
    )


async def test_audio_that_is_given_up_during_an_outage_is_counted() -> None:
    """``input_buffer`` seconds are kept for the next connection; ``dropped_audio`` has the rest."""
    resilience = ResilienceOptions(input_buffer=0.5)
    async with (
        GeminiLiveServer() as server,
        connected(server, resilience=resilience) as direct,
    ):
        direct.session.push_audio(seconds_of_audio(1.0))
        assert direct.session.dropped_audio == 0
        async with server.holding_dials() as held:
            direct.session.update_options(voice="Kore")
            await held.reached()
            direct.session.push_audio(seconds_of_audio(2.0))
            assert direct.session.dropped_audio == pytest.approx(1.5, abs=0.05)
        await server.until(
            lambda: any(e.connection == 2 and "audio" in e.what for e in server.timeline),
            "what was kept",
        )


async def test_the_log_tells_of_losses_and_reconnects_and_of_nothing_that_was_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An error at WARNING, a reconnect at INFO; no transcript, argument or result in a message."""
    caplog.set_level(logging.DEBUG, LOGGER)
    script = [Call("get_weather", {"city": "London"}), Say("It is foggy.")]
    async with (
        GeminiLiveServer(script) as server,
        connected(server, tools=[get_time, get_weather]) as direct,
    ):
        await server.caller_says("What is the weather in London?")
        call = await direct.call()
        await server.drop(1011)
        await direct.until(lambda: direct.reconnected, "a reconnect")
        await direct.answer(call, "foggy and 12 degrees")
        await server.replied()
    ours = [record for record in caplog.records if record.name == LOGGER]
    reconnect = next(record for record in ours if record.levelno == logging.INFO)
    assert (vars(reconnect)["connection"], vars(reconnect)["resumed"]) == (2, False)
    loss = next(record for record in ours if record.levelno == logging.WARNING)
    assert vars(loss)["kind"] == "ConnectionFailed"
    assert "1011" in vars(loss)["lk.pii.error"]
    told = "\n".join(str(vars(record)) for record in ours)
    assert not any(word in told for word in ("London", "foggy", "weather"))


async def test_a_result_that_no_connection_could_carry_ends_as_undelivered() -> None:
    """Closing the session says so; afterwards nothing is pending for anybody."""
    settled: list[ReportOutcome] = []
    script = [Call("get_weather")]
    excused = {"get_weather": "no connection can carry it"}
    async with (
        GeminiLiveServer(script) as server,
        connected(server, excused=excused) as direct,
    ):
        direct.session.on("tool_result_settled", settled.append)
        await server.caller_says("What is the weather in London?")
        call = await direct.call()
        async with server.holding_dials() as held:
            await server.drop(1011)
            await held.reached()
            await direct.answer(call, "foggy and 12 degrees")
            await direct.session.aclose()
    assert settled == [ReportOutcome(call_id=call.call_id, outcome=Outcome.UNDELIVERED)]


@pytest.mark.parametrize("kind", [TypeError, ValueError])
@pytest.mark.parametrize(
    "event",
    [
        "generation_created",
        "input_audio_transcription_completed",
        "metrics_collected",
        "session_reconnected",
        "tool_result_settled",
        "error",
    ],
)
async def test_a_listener_that_fails_costs_the_conversation_nothing(
    event: str, kind: type[Exception]
) -> None:
    """LiveKit's emitter logs what a listener raises, but for a ``TypeError``."""
    called: list[object] = []

    def fails(happened: object) -> None:
        called.append(happened)
        raise kind("a defect of the listener")

    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with GeminiLiveServer(script) as server, on_call(server) as call:
        call.realtime.on(event, fails)
        await server.caller_says("What is the weather in London?")
        await call.says(ANSWER)
        await server.drop(1011)
        await server.connected(2)
        await eventually(lambda: called, event)
        await eventually(lambda: call.realtime._active_session, "the next connection")
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
        assert [error.recoverable for error in call.errors] == [True]


async def test_a_listener_is_taken_off_by_what_it_was_put_on_with() -> None:
    """Also one that wraps another, or that listens once."""
    heard: list[str] = []

    def inner(_: object) -> None:
        heard.append("on")

    outer = functools.wraps(inner)(lambda event: inner(event))
    async with GeminiLiveServer() as server, connected(server) as direct:
        direct.session.on("session_reconnected", outer)
        direct.session.on("session_reconnected", outer)
        direct.session.once("session_reconnected", lambda _: heard.append("once"))
        for _ in range(2):
            direct.session.emit("session_reconnected", object())
        assert sorted(heard) == ["on", "on", "once"]
        direct.session.off("session_reconnected", outer)
        direct.session.emit("session_reconnected", object())
        assert len(heard) == 3
        with pytest.raises(ValueError, match="async"):
            direct.session.on("session_reconnected", asyncio.sleep)


async def test_a_defect_of_the_adapter_ends_the_session_with_an_error_that_carries_it() -> None:
    """Nobody awaits the main task: what ends it is reported, and nothing hangs."""
    async with GeminiLiveServer() as server, connected(server) as direct:

        def breaks() -> tuple[InputPushed, ...]:
            raise RuntimeError("a defect")

        direct.session._outgoing.take_back = breaks  # type: ignore[method-assign]
        pending = direct.session.generate_reply(instructions="Hello.")
        await server.drop(1011)
        with pytest.raises(llm.RealtimeError, match="start a new"):
            await asyncio.wait_for(pending, 10)
        await asyncio.sleep(0)
    assert isinstance(direct.errors[-1].error, SessionFailed)
    assert isinstance(direct.errors[-1].error.__cause__, RuntimeError)
    assert not direct.errors[-1].recoverable


async def test_a_failure_that_nobody_was_told_of_is_the_cause_of_no_later_error() -> None:
    """A write that fails while the connection is being replaced anyway costs nothing."""
    async with GeminiLiveServer() as server, connected(server) as direct:

        async def breaks(**_: object) -> None:
            raise ConnectionResetError

        direct.session._active_session.send_realtime_input = breaks
        direct.session.push_audio(seconds_of_audio(1.0))
        await direct.session.update_instructions("Be brief.")
        await direct.until(lambda: direct.reconnected == 1, "the next connection")
        assert direct.errors == []
        await direct.session.update_tools([tool_with(SCHEMAS["no schema"])])
    assert [type(event.error) for event in direct.errors] == [ToolsUnusable]
    assert direct.errors[0].error.__cause__ is None


async def test_what_is_remembered_of_the_caller_does_not_grow_with_the_conversation() -> None:
    """When the last message began, and the last generation."""
    async with (
        GeminiLiveServer([Say("Hello.")] * 5) as server,
        connected(server) as direct,
    ):
        for number in range(1, 6):
            await server.caller_says("Hello?")
            await server.replied(number)
        assert len(direct.session._stage._words_started) <= 2
