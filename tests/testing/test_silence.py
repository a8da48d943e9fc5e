"""Servers that fall silent, late pongs, and the end of a connection's life."""

from __future__ import annotations

import dataclasses

import pytest

from livekit_gemini_resilient.testing import PROFILES, Call, Closed, Gate, GeminiLiveServer, Say

from .conftest import Dial, response, user


async def test_a_stalled_reply_stays_unfinished_and_the_next_input_is_answered(
    dial: Dial, profile: str
) -> None:
    """Nothing says that the turn is over (observed); the socket is open."""
    gate = Gate()
    script = [Say("one two three four", gate=gate), Say("Here I am.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client = await dial(server)
        await client.send(user("count"))
        await gate.reached()
        await server.stall()
        gate.open()
        await server.go_away(1)
        messages = await client.until("goAway")
        assert "Complete" not in str(messages)
        await client.send(user("are you there?"))
        await server.replied()
    first, second = server.replies
    assert (first.completed, first.interrupted) == (False, False)
    assert second.text == "Here I am."


async def test_a_turn_can_stall_while_it_waits_for_an_answer(dial: Dial) -> None:
    """The response is taken, and the turn does not go on."""
    async with GeminiLiveServer([Call("lookUp"), Say("42.")]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await server.stall()
        await client.send(response(call_id))
        await server.until(lambda: server.knows("forty-two"), "the result")
        assert server.replies == []
        await client.send(user("and?"))
        assert (await server.replied()).knew("forty-two")


async def test_a_mute_server_reads_and_never_reacts(dial: Dial) -> None:
    """What arrives is recorded, neither judged nor learnt; a close is answered."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        await server.mute()
        await client.send(user("anyone?"))
        await client.send({"nonsense": {}})
        connection = server.connections[0]
        await server.until(lambda: len(connection.frames) == 3, "the frames")
        assert not server.knows("anyone")
        await (await client.socket.ping())
        await client.socket.close()
    assert connection.closed == Closed(1000, "", "client")


async def test_pongs_can_be_late(dial: Dial) -> None:
    """They come when the block ends; other messages are not held (observed: 8 to 30 s)."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        async with server.holding_pongs() as held:
            pong = await client.socket.ping()
            await held.reached()
            await server.go_away(1)
            await client.until("goAway")
            assert not pong.done()
        await pong
        await (await client.socket.ping())


@pytest.mark.parametrize("lead", [0.01, 300.0])
async def test_a_connection_has_a_lifetime(dial: Dial, lead: float) -> None:
    """``goAway`` names what is left, never more than there is; then the close (observed)."""
    profile = dataclasses.replace(
        PROFILES["2.5-native-audio"],
        connection_lifetime=0.05,
        go_away_lead=lead,
        lifetime_close=(1008, "The operation was aborted."),
    )
    async with GeminiLiveServer(profile=profile) as server:
        client = await dial(server)
        assert await client.next() == {"goAway": {"timeLeft": f"{min(lead, 0.05)}s"}}
        assert await client.closed() == (1008, "The operation was aborted.")
    assert server.connections[0].closed == Closed(1008, "The operation was aborted.", "server")


async def test_a_connection_that_was_closed_before_its_time_is_left_alone(dial: Dial) -> None:
    """Its timers end with it."""
    profile = dataclasses.replace(PROFILES["2.5-native-audio"], connection_lifetime=0.05)
    async with GeminiLiveServer(profile=profile) as server:
        client = await dial(server)
        await client.socket.close()
        later = await dial(server)
        await later.closed()
    assert server.connections[0].closed == Closed(1000, "", "client")
    assert server.connections[1].closed == Closed(1011, *profile.lifetime_close[1:], "server")
