"""Replacing the connection on purpose: never in mid-sentence, once per burst, old socket first."""

from __future__ import annotations

import asyncio

import pytest

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .direct import connected, get_time, get_weather
from .stack import PROFILES, WEATHER, book_table, on_call, ours_and_plain

STORY = "Once upon a time there was a fog over London."
LENGTH = 0.4
"""Seconds of audio; the gate stands in the first fifth."""


@pytest.mark.fault("D2")
@pytest.mark.parametrize("change", ["voice", "temperature", "tools"])
@ours_and_plain()
async def test_a_change_in_mid_sentence_lets_the_model_finish(
    profile: str, change: str, plain: bool
) -> None:
    """The sentence is heard to its end, then the new connection carries the change."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=LENGTH, gate=gate, gate_after=2), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        if change == "tools":
            await call.add_tool()
        else:
            value = {"voice": "Kore"} if change == "voice" else {"temperature": 0.1}
            call.realtime.update_options(**value)
        if plain:
            await server.until(lambda: server.connections[0].closing, "the close of the socket")
        gate.open()
        await call.says_within(STORY)
        assert call.speaker.heard == pytest.approx(LENGTH)
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
    gate = Gate()
    script = [Say(STORY, audio_seconds=LENGTH, gate=gate, gate_after=2), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        await server.send({"goAway": notice})
        if plain:
            await server.until(lambda: server.connections[0].closing, "the close of the socket")
        gate.open()
        await call.says_within(STORY)
        assert call.speaker.heard == pytest.approx(LENGTH)
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
async def test_a_burst_in_mid_sentence_costs_one_reconnect() -> None:
    """The same for requests that wait for the end of the turn."""
    gate = Gate()
    script = [Say(STORY, gate=gate, gate_after=2), Say("Hello.")]
    async with GeminiLiveServer(script) as server, connected(server) as direct:
        await server.caller_says("Tell me a story.")
        await direct.until(lambda: not direct.session._generation_completed, "speech")
        direct.session.update_options(voice="Kore")
        await asyncio.sleep(0)
        direct.session.update_options(temperature=0.1)
        await direct.session.update_tools([get_time, book_table])
        gate.open()
        await direct.until(lambda: direct.reconnected, "a reconnect")
        await server.caller_says("Hello?")
        await server.replied(2)
        assert len(server.connections) == 2


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
        await direct.until(lambda: direct.session.session_resumption_handle, "a handle")
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
