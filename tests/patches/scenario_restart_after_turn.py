"""Patch 7: a restart on purpose waits for the end of the turn (faults D1, D2 and D4)."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from ..stack import ANSWER
from .line import plain_call

STORY = "Once upon a time there was a fog over London."
LENGTH = 0.4
"""Seconds of audio; the gate stands in the first fifth."""


async def would_have_closed(server: GeminiLiveServer) -> None:
    """Give a restart that waits for nothing the time to begin."""
    with contextlib.suppress(AssertionError):
        await server.until(lambda: server.connections[0].closing, "the close", timeout=0.3)


@pytest.mark.parametrize("change", ["voice", "tools", "go away"])
async def test_restart_in_mid_sentence_lets_the_model_finish(change: str) -> None:
    """The sentence is heard to its end, then the connection is replaced."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=LENGTH, gate=gate, gate_after=2), Say("Goodbye.")]
    async with GeminiLiveServer(script) as server, plain_call(server) as call:
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        if change == "tools":
            await call.add_tool()
        elif change == "go away":
            await server.go_away(60)
        else:
            call.realtime.update_options(voice="Kore")
        await would_have_closed(server)
        gate.open()
        await call.says_within(STORY)
        assert call.speaker.heard == pytest.approx(LENGTH)
        await server.connected(2)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")


@pytest.mark.parametrize("change", ["voice", "go away"])
async def test_restart_waits_for_the_answer_to_a_tool(change: str) -> None:
    """The connection that asked gets the result."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER)]
    async with GeminiLiveServer(script) as server, plain_call(server) as call:
        await call.ask_and_hold()
        if change == "voice":
            call.realtime.update_options(voice="Kore")
        else:
            await server.go_away(60)
        await would_have_closed(server)
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert [(r.connection, r.verdict) for r in server.tool_responses] == [(1, "accepted")]
        await server.connected(2)
