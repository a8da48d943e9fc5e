"""A tool that does not return in time, or never, does not mute the model."""

from __future__ import annotations

import asyncio

import pytest

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .stack import ANSWER, EVERY, WEATHER, answers, on_call, ours_and_plain

IMPATIENT = ResilienceOptions(tool_answer_timeout=0.3)


@pytest.mark.fault("A13")
@ours_and_plain(on=EVERY)
async def test_a_tool_that_never_returns_does_not_mute_the_model(profile: str, plain: bool) -> None:
    """The call is answered "still running", and the caller can go on talking."""
    script = [Call("get_weather", {"city": "London"}), Say("One moment."), Say("Goodbye.")]
    excused = {"get_weather": "its tool returns only because the session closes"}
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, resilience=IMPATIENT, excused=excused) as call,
    ):
        await call.ask_and_hold()
        await call.says_within("One moment.")
        await server.caller_says("Never mind, goodbye.")
        await call.says_within("Goodbye.")
        assert [r.verdict for r in server.tool_responses] == ["accepted"]
        assert "still running" in str(server.tool_responses[0].response)
        # LiveKit waits for tools when it closes
        await call.realtime.aclose()


@pytest.mark.fault("A13")
@pytest.mark.parametrize("lost", [False, True], ids=["same connection", "later connection"])
@ours_and_plain(on=EVERY)
async def test_the_result_of_a_slow_tool_is_told_and_answered_once_when_it_comes(
    profile: str, lost: bool, plain: bool
) -> None:
    """In words: the call itself has its answer."""
    script = [
        Call("get_weather", {"city": "London"}),
        Say("One moment."),
        Say(ANSWER),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, resilience=IMPATIENT) as call,
    ):
        await call.ask_and_hold()
        await call.says_within("One moment.")
        if lost:
            await server.drop(1011)
            await server.connected(2)
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert len(answers(server)) == 1
        assert len(server.tool_responses) == 1
        assert call.runs == 1


@pytest.mark.fault("A13")
@ours_and_plain(on=EVERY)
async def test_an_answer_that_was_lost_with_its_connection_does_not_mute_the_model(
    profile: str, plain: bool
) -> None:
    """Whether "still running" has arrived is not known: the next connection is told so, too."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, resilience=IMPATIENT) as call,
    ):
        await server.issue_handle()
        await call.becomes_resumable()
        # before the call: "still running" follows it by itself
        trap = server.drop_on("tool_response")
        await call.ask_and_hold()
        if not plain:
            await asyncio.wait_for(trap.sprung.wait(), 10)
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert len(answers(server)) == 1
