"""Tools whose effect is another prompt: they begin where nothing is cut."""

from __future__ import annotations

import asyncio

import pytest
from google.genai import types

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .stack import ANSWER, PROFILES, WEATHER, on_call, ours_and_plain

STORY = "Once upon a time there was a fog over London."


@pytest.mark.fault("A17")
@pytest.mark.parametrize("named", ["get_weather", "all"])
@ours_and_plain(on=["2.5-native-audio", "3.8-live"])
async def test_a_transition_waits_until_a_model_that_goes_on_has_finished(
    profile: str, plain: bool, named: str
) -> None:
    """It is heard to the end on the old connection; the new one answers the result."""
    gate = Gate()
    script = [
        Call("get_weather", {"city": "London"}, say_first="Let me see.", goes_on=True),
        Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2),
        Say(ANSWER),
    ]
    resilience = ResilienceOptions(transition_tools="all" if named == "all" else [named])
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(
            server,
            plain=plain,
            resilience=resilience,
            tool_behavior=types.Behavior.NON_BLOCKING,
        ) as call,
    ):
        call.in_tool = call.add_tool
        await server.caller_says("What is the weather in London?")
        await gate.reached()
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        assert call.runs == 0
        gate.open()
        await call.says_within(ANSWER)
        assert any(STORY in text for text in call.spoken)
        assert call.said("assistant", interrupted=True) == []
        assert call.runs == 1
        assert server.replies[-1].connection == 2
        assert server.replies[-1].knew(WEATHER)
        assert "book_table" in server.connections[1].declared_tools


@pytest.mark.parametrize(
    ("named", "change", "answers_on"),
    [
        (["get_weather"], True, 2),
        ("all", True, 2),
        (["get_weather"], False, 1),
        (["another"], True, 1),
        ((), True, 1),
    ],
    ids=["named", "all", "nothing changes", "another is named", "none is named"],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_whatever_a_transition_changes_the_new_connection_answers_it(
    profile: str, named: list[str] | str, change: bool, answers_on: int
) -> None:
    """Its answer is in the other voice; that of an ordinary tool is given first, and a transition
    that changes nothing costs no connection."""
    script = [
        Call("get_weather", {"city": "London"}, say_first="Let me see."),
        Say(ANSWER),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, resilience=ResilienceOptions(transition_tools=named)) as call,
    ):

        async def other_voice() -> None:
            if change:
                call.realtime.update_options(voice="Kore")

        call.in_tool = other_voice
        await server.caller_says("What is the weather in London?")
        await call.says(ANSWER)
        reply = server.replies[-1]
        assert reply.connection == answers_on
        assert reply.knew(WEATHER)
        assert call.runs == 1
        if change:
            second = await server.connected(2)
            assert "Kore" in str(second.setup)
        await server.caller_says("Thank you, goodbye.")
        await call.says("Goodbye.")
        assert len(server.connections) == (2 if change else 1)
