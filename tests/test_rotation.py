"""Replacing the connection on purpose: never in mid-sentence, once per burst, old socket first."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from google.genai.live import AsyncSession
from google.genai.types import LiveServerMessage
from livekit.agents import APIConnectOptions

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .direct import connected, get_time, get_weather
from .stack import (
    ANSWER,
    EVERY,
    PROFILES,
    WEATHER,
    OnCall,
    book_table,
    connected_client,
    eventually,
    has_newest_handle,
    on_call,
    ours_and_plain,
)

STORY = "Once upon a time there was a fog over London."
LENGTH = 0.4
"""Seconds of audio; the gate stands in the first fifth."""


@contextlib.asynccontextmanager
async def in_mid_sentence(
    profile: str, *, plain: bool = False
) -> AsyncIterator[tuple[GeminiLiveServer, OnCall, Gate]]:
    """A story that is heard up to a gate."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=LENGTH, gate=gate, gate_after=2), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        yield server, call, gate


async def finishes(server: GeminiLiveServer, call: OnCall, gate: Gate, *, plain: bool) -> None:
    """The rest of the story is heard; not before the plugin has closed the socket, if it does."""
    if plain:
        await server.until(lambda: server.connections[0].closing, "the close of the socket")
    gate.open()
    await call.says_within(STORY)
    assert call.speaker.heard == pytest.approx(LENGTH)


@pytest.mark.fault("D2")
@pytest.mark.parametrize("change", ["voice", "temperature", "tools"])
@ours_and_plain()
async def test_a_change_in_mid_sentence_lets_the_model_finish(
    profile: str, change: str, plain: bool
) -> None:
    """The sentence is heard to its end, then the new connection carries the change."""
    async with in_mid_sentence(profile, plain=plain) as (server, call, gate):
        if change == "tools":
            await call.add_tool()
        else:
            value = {"voice": "Kore"} if change == "voice" else {"temperature": 0.1}
            call.realtime.update_options(**value)
        await finishes(server, call, gate, plain=plain)
        second = await server.connected(2)
        if change == "tools":
            assert "book_table" in second.declared_tools
        else:
            assert ("Kore" if change == "voice" else "0.1") in str(second.setup)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")


@pytest.mark.fault("D1")
@pytest.mark.parametrize("notice", [{}, {"timeLeft": "soon"}], ids=["none", "unreadable"])
@ours_and_plain()
async def test_a_notice_without_a_time_lets_the_model_finish(
    profile: str, notice: dict[str, str], plain: bool
) -> None:
    """It waits for the end of the sentence, as a change of the settings does."""
    async with in_mid_sentence(profile, plain=plain) as (server, call, gate):
        await server.send({"goAway": notice})
        await finishes(server, call, gate, plain=plain)
        await server.connected(2)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")


@pytest.mark.fault("D5")
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_burst_of_changes_costs_one_reconnect(profile: str) -> None:
    """Requests coalesce, also those that come while the old socket is being closed."""
    async with GeminiLiveServer([Say("Hello.")], profile=profile) as server:
        async with connected(server) as direct:
            async with server.holding_closes() as held:
                await direct.session.update_tools([get_time, get_weather, book_table])
                direct.session.update_options(voice="Kore")
                await held.reached()
                direct.session.update_options(temperature=0.1)
                await direct.session.update_tools([get_time, book_table])
            second = await server.connected(2)
            assert second.declared_tools == {"get_time", "book_table"}
            assert "Kore" in str(second.setup)
            assert "0.1" in str(second.setup)
            await direct.until(lambda: direct.reconnected, "a reconnect")
            await server.caller_says("Hello?")
            await server.replied()
        assert len(server.connections) == 2
        assert direct.reconnected == 1


@pytest.mark.fault("D5")
@ours_and_plain(on=EVERY)
async def test_changes_in_the_course_of_a_sentence_cost_one_reconnect(
    profile: str, plain: bool
) -> None:
    """They wait for its end, and one connection carries them all; the plugin replaces the
    connection for each as it comes."""
    gate = Gate()
    script = [Say(STORY, gate=gate, gate_after=2), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile, strict=not plain) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        call.realtime.update_options(voice="Kore")
        if plain:
            await server.connected(2)
            await connected_client(call.realtime)
        call.realtime.update_options(temperature=0.1)
        if plain:
            await server.until(lambda: len(server.connections) > 2, "one more", call.patience)
        assert len(server.connections) <= 2
        await call.add_tool()
        gate.open()
        await call.says_within(STORY)
        second = await server.connected(2)
        assert "Kore" in str(second.setup)
        assert "0.1" in str(second.setup)
        assert "book_table" in second.declared_tools
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")
        assert len(server.connections) == 2


async def livekit_hears(call: OnCall, speaks: bool) -> None:
    """What LiveKit's voice detection calls."""
    ears = call.agent._get_activity_or_raise()
    if speaks:
        ears.on_start_of_speech(None, speech_start_time=time.time())
    else:
        ears.on_end_of_speech(None)


async def server_hears(call: OnCall, speaks: bool) -> None:
    """The server says so, and the session has read it."""
    kind = "ACTIVITY_START" if speaks else "ACTIVITY_END"
    await call.server.send({"voiceActivity": {"type": kind}})
    await call.server.issue_handle()
    await call.becomes_resumable()


@pytest.mark.fault("D9")
@pytest.mark.parametrize("hears", [livekit_hears, server_hears])
@ours_and_plain(on=EVERY)
async def test_a_rotation_waits_for_a_caller_who_is_heard_and_not_yet_transcribed(
    profile: str, hears: Callable[[OnCall, bool], Awaitable[None]], plain: bool
) -> None:
    """The words and their answer stay on one connection."""
    script = [Say("Hello."), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await hears(call, True)
        call.realtime.update_options(voice="Kore")
        assert not call.realtime._session_should_close.is_set()
        await hears(call, False)
        assert not call.realtime._session_should_close.is_set()
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        assert server.replies[0].connection == 1
        second = await server.connected(2)
        assert "Kore" in str(second.setup)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert len(server.connections) == 2


async def test_what_livekit_makes_of_an_interruption_does_not_pass_for_the_callers_voice() -> None:
    """Without a voice detection of its own it takes our word for it that the caller speaks."""
    async with in_mid_sentence(PROFILES[0]) as (server, call, _):
        await server.interrupt()
        await call.recorded(lambda: bool(call.said("assistant")), "the end of the message")
        assert call.session.user_state == "speaking"
        call.realtime.update_options(voice="Kore")
        await server.connected(2)
        await server.caller_says("Thank you, goodbye.")
        await call.says("Goodbye.")


@pytest.mark.fault("D6")
@pytest.mark.parametrize("profile", PROFILES)
async def test_the_old_socket_has_ended_before_the_conversation_is_resumed(profile: str) -> None:
    """A resume while the earlier socket is open is refused with 1011 (observed)."""
    script = [Say("Hello."), Say("Goodbye.")]
    quick = ResilienceOptions(close_timeout=0.2)
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        connected(server, resilience=quick) as direct,
    ):
        await server.caller_says("Hello?")
        await server.replied()
        await direct.until(lambda: has_newest_handle(direct.session, server), "the handle")
        # the server never answers the closing handshake: it is cut short, not waited out
        async with server.holding_closes():
            direct.session.update_options(voice="Kore")
            second = await server.connected(2)
        assert second.resumed_from is not None
        assert server.connections[0].closed is not None
        await server.caller_says("Goodbye.")
        await server.replied(2)
        assert len(server.connections) == 2


@pytest.mark.parametrize("when", ["pause", "turn_end", "now"])
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_result_survives_under_every_policy(profile: str, when: str) -> None:
    """Whatever safe point the user fixes, the result is known and answered once."""
    script = [Call("get_weather", {"city": "London"}), Say("It is foggy."), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, resilience=ResilienceOptions(restart_when=when)) as call,
    ):
        call.in_tool = call.add_tool
        await server.caller_says("What is the weather in London?")
        await call.says("It is foggy.")
        await server.until(
            lambda: (
                server.current
                and "book_table" in server.current.declared_tools
                and server.current.knows(WEATHER)
            ),
            "a connection with the new tool that knows the result",
        )
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
        assert call.spoken.count("It is foggy.") == 1
        assert call.runs == 1


OLD = ResilienceOptions(max_connection_age=0.3)


@pytest.mark.fault("D12")
@ours_and_plain(on=EVERY)
async def test_an_old_connection_is_replaced_unasked_and_not_in_mid_sentence(
    profile: str, plain: bool
) -> None:
    """The server says nothing of its age; the plugin stays until it is cut."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=LENGTH, gate=gate, gate_after=2)]
    options = {} if plain else {"resilience": OLD}
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, **options) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        # there is a handle, and the age may come
        await server.issue_handle()
        await call.becomes_resumable()
        if not plain:
            rotation = call.realtime._conversation._rotation
            await eventually(lambda: rotation.requested, "the age")
        assert not server.connections[0].closing
        gate.open()
        await call.says_within(STORY)
        assert call.speaker.heard == pytest.approx(LENGTH)
        await server.until(
            lambda: [c for c in server.connections[1:] if c.accepted], "another", call.patience
        )
        assert server.connections[1].resumed_from is not None
        assert server.connections[0].closed is not None
        assert server.connections[0].closed.by == "client"
        assert call.errors == []


@pytest.mark.fault("D12")
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_connection_that_cannot_be_resumed_may_grow_old(profile: str) -> None:
    """A fresh session would be a certain loss; with the first handle the age counts."""
    script = [Say("Hello."), Say("Goodbye.")]
    brief = ResilienceOptions(max_connection_age=0.05)
    async with (
        GeminiLiveServer(script, profile=profile, handles="never") as server,
        connected(server, resilience=brief),
    ):
        await server.caller_says("Hello?")
        await server.replied()
        await server.caller_says("Goodbye.")
        await server.replied(2)
        handle = await server.issue_handle()
        second = await server.connected(2)
        assert second.resumed_from == handle


@pytest.mark.fault("D12")
async def test_a_rotation_by_age_whose_dials_are_refused_ends_within_the_budget() -> None:
    """It is retried as any other, and not for ever."""
    quick = APIConnectOptions(max_retry=2, retry_interval=0.05, timeout=10.0)
    ended = asyncio.Event()
    async with (
        GeminiLiveServer() as server,
        connected(server, resilience=OLD, conn_options=quick) as direct,
    ):
        direct.session.on("error", lambda e: None if e.recoverable else ended.set())
        async with server.refusing_dials() as refused:
            await server.issue_handle()
            await asyncio.wait_for(ended.wait(), 10)
            assert refused.count == 1 + quick.max_retry
        assert direct.reconnected == 0


@pytest.mark.fault("D11")
@ours_and_plain(on=EVERY)
async def test_a_tool_that_is_removed_as_its_call_arrives_is_refused_with_an_answer(
    profile: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is told so on the connection that asked, and speaks; the tool does not run."""
    script = [Call("get_weather", {"city": "London"}), Say("I cannot look that up.")]
    receive = AsyncSession.receive
    async with (
        GeminiLiveServer(script, profile=profile, strict=not plain) as server,
        on_call(server, plain=plain, also=[book_table]) as call,
    ):

        async def removed_first(session: AsyncSession) -> AsyncIterator[LiveServerMessage]:
            async for message in receive(session):
                if message.tool_call:
                    await call.agent.update_tools([book_table])
                yield message

        monkeypatch.setattr(AsyncSession, "receive", removed_first)
        # the client is past the one that it had
        await server.drop(1011)
        await server.connected(2)
        await connected_client(call.realtime)
        await server.caller_says("What is the weather in London?")
        await call.says_within("I cannot look that up.")
        (response,) = server.tool_responses
        assert response.connection == 2
        assert "not available any more" in str(response.response)
        assert call.runs == 0


@pytest.mark.fault("D11")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_removed_tool_is_refused_until_the_next_rotation_leaves_it_out(
    profile: str,
) -> None:
    """That it is gone is worth no reconnect of its own."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, also=[book_table]) as call,
    ):
        await call.agent.update_tools([book_table])
        await server.caller_says("What is the weather in London?")
        await call.says(ANSWER)
        assert "not available any more" in str(server.tool_responses[0].response)
        assert len(server.connections) == 1
        call.realtime.update_options(voice="Kore")
        second = await server.connected(2)
        assert second.declared_tools == {"book_table"}
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
        assert call.runs == 0
