"""Tools whose effect is another prompt: they begin where nothing is cut."""

from __future__ import annotations

import asyncio

import pytest
from google.genai import types

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .stack import ANSWER, PROFILES, WEATHER, on_call

STORY = "Once upon a time there was a fog over London."
TRANSITIONS = ResilienceOptions(transition_tools=["get_weather"])


@pytest.mark.parametrize("profile", ["2.5-native-audio", "3.8-live"])
async def test_a_transition_waits_until_a_model_that_goes_on_has_finished(profile: str) -> None:
    """It is heard to the end on the old connection; the new one answers the result."""
    gate = Gate()
    script = [
        Call("get_weather", {"city": "London"}, say_first="Let me see.", goes_on=True),
        Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2),
        Say(ANSWER),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, resilience=TRANSITIONS, tool_behavior=types.Behavior.NON_BLOCKING) as call,
    ):
        call.in_tool = call.add_tool
        await server.caller_says("What is the weather in London?")
        await gate.reached()
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        assert call.runs == 0
        gate.open()
        await call.says(ANSWER)
        assert any(STORY in text for text in call.spoken)
        assert call.said("assistant", interrupted=True) == []
        assert call.runs == 1
        assert server.replies[-1].connection == 2
        assert server.replies[-1].knew(WEATHER)
        assert "book_table" in server.connections[1].declared_tools


@pytest.mark.parametrize("change", [True, False])
@pytest.mark.parametrize("profile", PROFILES)
async def test_the_new_prompt_answers_a_transition(profile: str, change: bool) -> None:
    """Where the tool asked for one; else its result is told as that of any other."""
    script = [
        Call("get_weather", {"city": "London"}, say_first="Let me see."),
        Say(ANSWER),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, resilience=TRANSITIONS) as call,
    ):
        if change:
            call.in_tool = call.add_tool
        await server.caller_says("What is the weather in London?")
        await call.says(ANSWER)
        assert call.runs == 1
        assert server.replies[-1].knew(WEATHER)
        assert server.replies[-1].connection == (2 if change else 1)
        assert len(server.connections) == (2 if change else 1)
