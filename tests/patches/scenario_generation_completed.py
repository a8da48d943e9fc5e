"""Patch 2: the end of a generation is a state, not a guess (faults B1 to B3, B6 and B7)."""

from __future__ import annotations

from typing import Any

import pytest

from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from ..stack import ANSWER, OnCall
from .line import plain_call

SILENCE = "AAAA" * 640
"""40 ms of 24 kHz mono s16le, base64."""


def speech(words: str) -> dict[str, Any]:
    """A message with audio and its transcript."""
    part = {"inlineData": {"mimeType": "audio/pcm", "data": SILENCE}}
    return {
        "serverContent": {
            "modelTurn": {"parts": [part]},
            "outputTranscription": {"text": words},
        }
    }


def interrupted(call: OnCall) -> list[Any]:
    """What LiveKit recorded as cut off."""
    return [i for i in call.session.history.items if getattr(i, "interrupted", False)]


@pytest.mark.parametrize("profile", ["2.5-native-audio", "3.1-flash-live"])
async def test_speech_that_trails_a_call_in_one_write_is_played(profile: str) -> None:
    """The tool runs and is answered once, and nothing is interrupted."""
    script = [
        Call("get_weather", {"city": "London"}, say_first="Let me", trailing=" look that up."),
        Say(ANSWER),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        plain_call(server) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await call.says_within(ANSWER)
        assert "look that up." in " ".join(call.spoken)
        assert call.runs == 1
        assert [r.verdict for r in server.tool_responses] == ["accepted"]
        assert interrupted(call) == []


async def test_speech_that_comes_while_the_tool_runs_is_played() -> None:
    """It ends by itself, so that the result is handed over."""
    script = [Call("get_weather", {"city": "London"}, say_first="Let me see."), Say(ANSWER)]
    async with GeminiLiveServer(script) as server, plain_call(server) as call:
        await call.ask_and_hold()
        await server.send(speech("One moment."))
        await call.says_within("One moment.")
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert [r.verdict for r in server.tool_responses] == ["accepted"]
        assert interrupted(call) == []


async def test_second_call_of_a_turn_does_not_interrupt_the_first() -> None:
    """Both run, and both are answered once."""
    script = [
        Call("get_weather", {"city": "London"}, say_first="Let me see.", then_next=True),
        Call("get_weather", {"city": "Paris"}),
        Say(ANSWER),
    ]
    async with GeminiLiveServer(script) as server, plain_call(server) as call:
        await server.caller_says("What is the weather in London and in Paris?")
        await call.says_within(ANSWER)
        assert call.runs == 2
        assert [r.verdict for r in server.tool_responses] == ["accepted", "accepted"]
        assert interrupted(call) == []


async def test_audio_after_generation_complete_is_played() -> None:
    """In the same turn it is a message of its own, which interrupts nothing."""
    gate = Gate()
    async with (
        GeminiLiveServer([Say("Hello there.", turn_gate=gate)]) as server,
        plain_call(server) as call,
    ):
        await server.caller_says("Hello?")
        await gate.reached()
        await server.send(speech("And welcome."))
        gate.open()
        await server.replied()
        await call.says_within("And welcome.")
        assert call.spoken == ["Hello there.", "And welcome."]


@pytest.mark.parametrize("late", [False, True], ids=["missing", "late"])
async def test_interrupted_turn_does_not_swallow_or_cut_the_next(late: bool) -> None:
    """Whether its own ``turnComplete`` is missing or comes while the next reply is spoken."""
    story, reply = Gate(), Gate()
    script = [
        Say("Once upon a time.", gate=story, gate_after=2),
        Say("Hello there, Ada.", gate=reply, gate_after=2),
    ]
    async with GeminiLiveServer(script) as server, plain_call(server) as call:
        await server.caller_says("Tell me a story.")
        await story.reached()
        await server.interrupt(turn_complete=False)
        await server.caller_says("My name is Ada.")
        await reply.reached()
        if late:
            await server.send({"serverContent": {"turnComplete": True}})
        reply.open()
        await call.says_within("Hello there, Ada.")
        assert call.spoken == ["Hello there, Ada."]
