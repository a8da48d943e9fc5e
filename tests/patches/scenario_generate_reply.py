"""Patch 6: a pending reply survives a restart, a withdrawn one does not (faults C2 to C4)."""

from __future__ import annotations

import asyncio

import pytest

from livekit_gemini_resilient.testing import Gate, GeminiLiveServer, Say

from .line import plain_call


async def test_reply_that_is_queued_when_the_session_restarts_comes_on_the_next() -> None:
    """It is asked for once."""
    async with GeminiLiveServer([Say("Hello.")]) as server, plain_call(server) as call:
        call.realtime.generate_reply(instructions="Greet the caller.")
        await call.add_tool_at_once()
        await server.until(lambda: server.replies, "a reply", call.patience)
        assert [r.connection for r in server.replies] == [2]


@pytest.mark.parametrize("how", ["drop", "go away"])
async def test_reply_that_was_asked_for_and_not_begun_is_asked_for_again(how: str) -> None:
    """The next connection is asked, whatever became of the last one."""
    gate = Gate()
    script = [Say("Never heard.", gate=gate, gate_after=0), Say("Hello.")]
    async with (
        GeminiLiveServer(script, strict=False) as server,
        plain_call(server) as call,
    ):
        call.session.generate_reply(instructions="Greet the caller.")
        await gate.reached()
        await (server.drop(1011) if how == "drop" else server.go_away(60))
        await call.says_within("Hello.")
        gate.open()


async def test_reply_that_was_withdrawn_before_it_was_sent_is_not_asked_for() -> None:
    """No ghost speaks when the connection stands."""
    async with GeminiLiveServer([Say("Hello.")]) as server, plain_call(server) as call:
        async with server.holding_dials() as held:
            await call.add_tool_at_once()
            await held.reached()
            pending = call.realtime.generate_reply(instructions="Greet the caller.")
            pending.cancel()
            await asyncio.sleep(0)
        await server.connected(2)
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        assert [r.trigger for r in server.replies] == ["caller"]
