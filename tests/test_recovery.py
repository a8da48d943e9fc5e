"""Connections that fail: the conversation goes on, within bounds, and says so if it cannot."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import APIConnectOptions

from livekit_gemini_resilient import ConnectionFailed, ResilienceOptions
from livekit_gemini_resilient.testing import PROFILES as SIMULATED
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Profile, Say

from .direct import connected
from .stack import (
    ANSWER,
    EVERY,
    WEATHER,
    OnCall,
    connected_client,
    has_newest_handle,
    on_call,
    ours_and_plain,
)

STORY = "Once upon a time there was a fog over London."
HELLO = [Say("Hello."), Say("Goodbye.")]
QUICK = APIConnectOptions(max_retry=3, retry_interval=0.05, timeout=10.0)
SOON = ResilienceOptions(reply_timeout=2.0)


async def greets(call: OnCall) -> None:
    """A first exchange, after which there is a handle."""
    await call.server.caller_says("Hello?")
    await call.says_within("Hello.")
    await call.becomes_resumable()


async def says_goodbye(call: OnCall, connection: int) -> None:
    """The conversation goes on, on this connection."""
    await call.server.until(
        lambda: call.server.current and call.server.current.number == connection,
        f"connection {connection}",
        call.patience,
    )
    await call.server.caller_says("Goodbye.")
    await call.says_within("Goodbye.")
    assert all(error.recoverable for error in call.errors)


@pytest.mark.fault("E1")
@pytest.mark.parametrize("code", [1011, 503])
@ours_and_plain(on=EVERY)
async def test_dials_that_fail_are_repeated(profile: str, code: int, plain: bool) -> None:
    """Within the budget, with a growing wait."""
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        await greets(call)
        async with server.refusing_dials(times=2, code=code) as refused:
            await server.drop(1011)
            await refused.reached(2, timeout=call.patience)
            await says_goodbye(call, 4 if code > 1000 else 2)


@pytest.mark.fault("E1")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_dial_that_ends_in_http_leaves_the_handle(profile: str) -> None:
    """It is sent after the upgrade to a websocket, so a busy server says nothing about it."""
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, conn_options=QUICK) as call,
    ):
        await greets(call)
        async with server.refusing_dials(times=1, code=503) as refused:
            await server.drop(1011)
            await refused.reached()
            second = await server.connected(2)
        assert second.resumed_from is not None
        await says_goodbye(call, 2)


@pytest.mark.fault("E2")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_handle_whose_connections_are_cut_is_dropped(profile: str) -> None:
    """The second time, and not when nothing is left of the budget."""
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, conn_options=QUICK) as call,
    ):
        await greets(call)
        await server.abort()
        second = await server.connected(2)
        assert second.resumed_from is not None
        await connected_client(call.realtime)
        await server.abort()
        third = await server.connected(3)
        assert third.resumed_from is None
        await says_goodbye(call, 3)


@pytest.mark.fault("E2")
@ours_and_plain(on=EVERY)
async def test_a_handle_that_is_refused_is_dropped_and_the_history_is_told(
    profile: str, plain: bool
) -> None:
    """A fresh session knows what was said."""
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        await greets(call)
        await server.forget_handles()
        await server.drop(1011)
        await server.until(
            lambda: len(server.connections) > 2 and server.connections[2].knows("Hello?"),
            "the history",
            call.patience,
        )
        await says_goodbye(call, 3)
        assert server.connections[2].resumed_from is None
        assert server.replies[-1].knew("Hello?")


@pytest.mark.fault("E2")
@ours_and_plain(on=EVERY)
async def test_a_resumed_session_that_hears_and_never_speaks_is_left(
    profile: str, plain: bool
) -> None:
    """Its handle is dropped, and the caller is answered in a fresh session."""
    options = {} if plain else {"resilience": SOON}
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK, **options) as call,
    ):
        await greets(call)
        await server.poison_handles()
        await server.drop(1011)
        second = await server.connected(2)
        assert second.poisoned
        await connected_client(call.realtime)
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")
        reply = server.replies[-1]
        assert reply.connection == 3
        assert reply.knew("Goodbye.")
        assert server.connections[2].resumed_from is None


@pytest.mark.fault("E3")
@ours_and_plain(on=EVERY)
async def test_a_1007_in_mid_conversation_is_retried(profile: str, plain: bool) -> None:
    """Something that was sent was refused; the conversation need not be."""
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        await greets(call)
        await server.drop(1007, "Request contains an invalid argument.")
        await says_goodbye(call, 2)


@pytest.mark.fault("E4")
@pytest.mark.parametrize("code", [1011, 1007])
@ours_and_plain(on=EVERY)
async def test_connections_that_die_young_are_not_replaced_for_ever(
    profile: str, code: int, plain: bool
) -> None:
    """Each is opened and says something: that is no progress. The end is an error event."""
    usage = {"usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}}
    async with (
        GeminiLiveServer(HELLO[:1], profile=profile, handles="never") as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        ended = asyncio.Event()
        call.session.on("error", lambda e: None if e.error.recoverable else ended.set())
        for number in range(1, 2 + QUICK.max_retry):
            connection = await server.connected(number)
            await server.send(usage, connection=connection)
            await server.drop(code, connection=connection)
        try:
            await asyncio.wait_for(ended.wait(), call.patience)
        except asyncio.TimeoutError:
            raise AssertionError("the session goes on for ever") from None
        assert len(server.connections) == 1 + QUICK.max_retry
        error = call.errors[-1].error
        assert plain or isinstance(error, ConnectionFailed)


@contextlib.asynccontextmanager
async def nobody_answers(
    profile: str, *, dials: int, dial_timeout: float, plain: bool
) -> AsyncIterator[tuple[GeminiLiveServer, OnCall]]:
    """A call whose connection was lost, at the last of so many dials that got no answer."""
    options = {} if plain else {"resilience": ResilienceOptions(dial_timeout=dial_timeout)}
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK, **options) as call,
    ):
        await greets(call)
        async with server.holding_dials() as held:
            await server.drop(1011)
            await held.reached(dials, timeout=call.patience)
        yield server, call


@pytest.mark.fault("E5")
@ours_and_plain(on=EVERY)
async def test_a_setup_that_is_never_answered_is_given_up_in_time(
    profile: str, plain: bool
) -> None:
    """The SDK has no such limit."""
    async with nobody_answers(profile, dials=2, dial_timeout=1.0, plain=plain) as (server, call):
        await server.until(
            lambda: server.current and server.current.number > 2, "a connection that is answered"
        )
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")


@pytest.mark.fault("E2")
@ours_and_plain(on=EVERY)
async def test_a_handle_whose_setup_is_never_answered_is_dropped_at_last(
    profile: str, plain: bool
) -> None:
    """The last dial of the budget goes without it, and is told the history."""
    dials = QUICK.max_retry
    async with nobody_answers(profile, dials=dials, dial_timeout=2.0, plain=plain) as (
        server,
        call,
    ):
        _, *resuming, last = server.connections
        assert all(each.resumed_from for each in resuming)
        assert last.resumed_from is None
        await server.until(lambda: last.knows("Hello?"), "the history", call.patience)
        await says_goodbye(call, last.number)


@pytest.mark.fault("E7")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_pong_that_is_late_ends_nothing(profile: str) -> None:
    """Several pings are on their way at a time; what ends the connection is ``ping_timeout``."""
    patient = ResilienceOptions(ping_interval=0.05, ping_timeout=9.0)
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, resilience=patient) as call,
    ):
        async with server.holding_pongs() as held:
            await greets(call)
            await held.reached()
        await says_goodbye(call, 1)


@pytest.mark.fault("E7")
async def test_a_pong_that_never_comes_ends_the_connection() -> None:
    """In bounded time, and the conversation goes on over another."""
    strict = ResilienceOptions(ping_interval=0.1, ping_timeout=1.0, close_timeout=0.2)
    async with (
        GeminiLiveServer(HELLO[:1]) as server,
        on_call(server, resilience=strict, conn_options=QUICK) as call,
    ):
        await greets(call)
        async with server.holding_pongs():
            await server.connected(2)
        await server.until(lambda: server.current is not None, "a connection")


@pytest.mark.fault("E8")
@ours_and_plain(on=EVERY)
async def test_a_1008_while_audio_flows_and_a_tool_runs_loses_no_result(
    profile: str, plain: bool
) -> None:
    """It is told on the next connection, and answered."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER)]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        await call.ask_and_hold()
        server.drop_on("realtime_input", 1008, reason="The operation was aborted.")
        call.realtime.push_audio(tone(0.2))
        await server.until(
            lambda: server.current and server.current.number == 2, "a connection", call.patience
        )
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert server.replies[-1].knew(WEATHER)
        assert call.runs == 1


@pytest.mark.fault("E8")
@ours_and_plain(
    on={
        name: dataclasses.replace(
            SIMULATED[name], input_during_call=1008, default_behavior="BLOCKING"
        )
        for name in EVERY
        if name != "3.8-extended-thinking"
    }
)
async def test_audio_waits_for_the_tool_where_it_is_to_be_held(
    profile: Profile, plain: bool
) -> None:
    """A server that takes no audio during a call gets it afterwards, and loses no connection."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER)]
    holding = ResilienceOptions(hold_input_during_call=True)
    options = {} if plain else {"resilience": holding}
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK, **options) as call,
    ):
        await call.ask_and_hold()
        for value in range(1, 5):
            call.realtime.push_audio(tone(0.1, value=value))
        if plain:
            await server.until(lambda: server.connections[0].closing, "a close", call.patience)
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        await server.until(lambda: heard(server) == [1, 2, 3, 4], "what was held", call.patience)
        assert len(server.connections) == 1
        kinds = [next(iter(frame)) for frame in server.connections[0].frames]
        assert kinds.index("tool_response") < kinds.index("realtime_input")
        assert call.realtime.dropped_audio == 0.0


@pytest.mark.fault("E8")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_1008_for_audio_during_a_call_is_survived_without_the_option(profile: str) -> None:
    """The next connection waits for no call, so that the caller may go on speaking."""
    strict = dataclasses.replace(SIMULATED[profile], input_during_call=1008)
    blocking = profile not in ("3.8-live", "3.8-extended-thinking")
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER)]
    async with (
        GeminiLiveServer(script, profile=strict) as server,
        on_call(server, conn_options=QUICK) as call,
    ):
        await call.ask_and_hold()
        call.realtime.push_audio(tone(0.1, value=1))
        if blocking:
            await server.connected(2)
            await connected_client(call.realtime)
        call.realtime.push_audio(tone(0.1, value=2))
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        await server.until(lambda: heard(server)[-1:] == [2], "what was said last")
        assert len(server.connections) == (2 if blocking else 1)
        assert call.runs == 1
        assert all(error.recoverable for error in call.errors)


@pytest.mark.fault("E9")
@ours_and_plain(on=EVERY)
async def test_a_reconnect_is_an_event(profile: str, plain: bool) -> None:
    """One each."""
    async with (
        GeminiLiveServer(HELLO, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        seen: list[Any] = []
        call.realtime.on("session_reconnected", seen.append)
        await greets(call)
        await server.drop(1011)
        await server.connected(2)
        await connected_client(call.realtime)
        await says_goodbye(call, 2)
        assert len(seen) == 1


def tone(seconds: float, *, value: int = 0) -> rtc.AudioFrame:
    """16 kHz mono, every sample of one value."""
    samples = round(16000 * seconds)
    return rtc.AudioFrame(
        data=value.to_bytes(2, "little") * samples,
        sample_rate=16000,
        num_channels=1,
        samples_per_channel=samples,
    )


@pytest.mark.fault("D1")
@ours_and_plain(on=EVERY)
async def test_a_sentence_is_finished_after_a_notice(profile: str, plain: bool) -> None:
    """As long as the time that is left allows; then the connection is replaced, unasked."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        await server.go_away(20)
        if plain:
            await server.until(lambda: server.connections[0].closing, "the close of the socket")
        gate.open()
        await call.says_within(STORY)
        assert call.speaker.heard == pytest.approx(0.4)
        await says_goodbye(call, 2)


@pytest.mark.fault("D3")
@ours_and_plain(on=EVERY)
async def test_a_reply_that_was_cut_is_recorded_as_interrupted(profile: str, plain: bool) -> None:
    """By a connection that was lost, say."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        await server.drop(1011)
        await call.recorded(lambda: bool(call.said("assistant")), "what was said of the story")
        assert call.said("assistant", interrupted=False) == []
        await says_goodbye(call, 2)


@pytest.mark.fault("D4")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_server_that_goes_quiet_after_a_notice_is_left_in_time(profile: str) -> None:
    """The deadline is a timer: nothing has to arrive for it."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, conn_options=QUICK) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        await server.go_away(0.6)
        await server.mute()
        await says_goodbye(call, 2)
        assert len(call.said("assistant", interrupted=True)) == 1


@pytest.mark.fault("D7")
@ours_and_plain(on=EVERY)
async def test_audio_that_waits_when_a_restart_is_requested_arrives_in_order(
    profile: str, plain: bool
) -> None:
    """Over the old connection or the new one, every sample once."""
    async with (
        GeminiLiveServer(profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        for value in range(1, 5):
            call.realtime.push_audio(tone(0.1, value=value))
        call.realtime.update_options(voice="Kore")
        for value in range(5, 9):
            call.realtime.push_audio(tone(0.1, value=value))
        await server.until(
            lambda: heard(server) == list(range(1, 9)), "all that was said", call.patience
        )


def heard(server: GeminiLiveServer) -> list[int]:
    """The values of the samples that came in, runs of one as one."""
    values: list[int] = []
    for connection in server.connections:
        for frame in connection.frames:
            blob = frame.get("realtime_input", {}).get("audio")
            data = base64.urlsafe_b64decode(blob["data"]) if blob else b""
            for sample in memoryview(data).cast("h"):
                if not values or values[-1] != sample:
                    values.append(sample)
    return values


@pytest.mark.fault("D10")
@ours_and_plain(on=EVERY)
async def test_instructions_of_one_session_stay_there(profile: str, plain: bool) -> None:
    """The plugin shares one object between the sessions of a model."""
    async with (
        GeminiLiveServer(profile=profile) as server,
        on_call(server, plain=plain, conn_options=QUICK) as call,
    ):
        other = call.model.session()
        try:
            await server.connected(2)
            await other.update_instructions("Speak like a pirate.")
            await server.connected(2)
            await server.drop(1011, connection=server.connections[0])
            wanted = "Be brief."
            await server.until(
                lambda: (
                    [c for c in server.connections[2:] if wanted in str(c.setup)]
                    or any("pirate" in str(c.setup) for c in server.connections[3:])
                ),
                "the connection of the agent",
                call.patience,
            )
            assert any(wanted in str(c.setup) for c in server.connections[2:])
        finally:
            await other.aclose()


@pytest.mark.fault("E2")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_handle_that_has_expired_is_dropped(profile: str) -> None:
    """As one that is refused for any other reason."""
    expiring = dataclasses.replace(SIMULATED[profile], handle_ttl=0.0)
    async with (
        GeminiLiveServer(HELLO, profile=expiring) as server,
        connected(server, conn_options=QUICK) as direct,
    ):
        await server.caller_says("Hello?")
        await server.replied()
        await direct.until(lambda: has_newest_handle(direct.session, server), "the handle")
        direct.session.update_options(voice="Kore")
        await direct.until(lambda: direct.reconnected, "a reconnect")
        await server.until(lambda: server.connections[-1].knows("Hello?"), "the history")
        await server.caller_says("Goodbye.")
        await server.replied(2)
        assert server.replies[-1].knew("Hello?")
        assert "Kore" in str(server.connections[-1].setup)
