"""Tools that report progress: LiveKit answers the call with the first report.

What follows, further reports and the result, it adds to the chat context as pairs of a call and an
output with ids of its own, and asks for a reply itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.genai import types
from livekit.agents import RunContext, function_tool

from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .stack import ANSWER, EVERY, WEATHER, OnCall, answers, on_call, ours_and_plain

SCRIPT = [
    Call("get_weather", {"city": "London"}),
    Say("One moment."),
    Say(ANSWER),
    Say("Goodbye."),
]


CAN_BE_SILENT = "silent" in inspect.signature(RunContext.update).parameters


async def one_report(context: RunContext[Any]) -> None:
    """Say what is going on."""
    await context.update("asking the station")


def reporting(
    may_return: asyncio.Event, report: Callable[[RunContext[Any]], Awaitable[None]] = one_report
) -> Any:
    """A tool that reports, and returns later."""

    @function_tool
    async def get_weather(context: RunContext, city: str) -> str:
        """Look up the weather.

        Args:
            context: Where it reports to.
            city: The city.
        """
        await report(context)
        await asyncio.wait_for(may_return.wait(), 20)
        return WEATHER

    return get_weather


async def ends_well(server: GeminiLiveServer, call: OnCall) -> None:
    """The result is history that was answered once; only the report answered the call."""
    await call.says_within(ANSWER)
    assert answers(server)[0].knew(WEATHER)
    await server.caller_says("Thank you, goodbye.")
    await call.says_within("Goodbye.")
    assert len(answers(server)) == 1
    assert server.times_told(WEATHER) == 1
    told = [str(response.response) for response in server.tool_responses]
    assert [("asking the station" in text, WEATHER in text) for text in told] == [(True, False)]
    outputs = [i for i in call.session.history.items if i.type == "function_call_output"]
    assert [o.output for o in outputs if WEATHER in o.output] == [outputs[-1].output]


@pytest.mark.fault("A19")
@ours_and_plain(on=EVERY)
async def test_the_result_after_a_report_is_history_and_is_answered_once(
    profile: str, plain: bool
) -> None:
    """No ``tool_response`` for ids that the server never issued."""
    may_return = asyncio.Event()
    async with (
        GeminiLiveServer(SCRIPT, profile=profile) as server,
        on_call(server, plain=plain, tools=[reporting(may_return)]) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await call.says_within("One moment.")
        may_return.set()
        await ends_well(server, call)


@pytest.mark.fault("A19")
@pytest.mark.parametrize("handles", ["profile", "never"])
@ours_and_plain(on=EVERY)
async def test_the_result_after_a_report_survives_a_lost_connection(
    profile: str, handles: Any, plain: bool
) -> None:
    """Whether the connection that follows knows the report or is told it."""
    may_return = asyncio.Event()
    async with (
        GeminiLiveServer(SCRIPT, profile=profile, handles=handles) as server,
        on_call(server, plain=plain, tools=[reporting(may_return)]) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await call.says_within("One moment.")
        async with server.holding_dials() as held:
            await server.drop(1011)
            await held.reached()
            may_return.set()
        await ends_well(server, call)


@pytest.mark.fault("A19")
@ours_and_plain(on=EVERY)
async def test_a_second_report_is_history_and_is_answered_once(profile: str, plain: bool) -> None:
    """Like the result: a pair with an id of its own."""
    may_report, may_return = asyncio.Event(), asyncio.Event()

    async def reports(context: RunContext[Any]) -> None:
        await one_report(context)
        await asyncio.wait_for(may_report.wait(), 20)
        await context.update("the line is busy")

    script = [*SCRIPT[:2], Say("Still asking."), *SCRIPT[2:]]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tools=[reporting(may_return, reports)]) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await call.says_within("One moment.")
        may_report.set()
        await call.says_within("Still asking.")
        assert server.replies[1].knew("the line is busy")
        may_return.set()
        await ends_well(server, call)
        assert server.times_told("the line is busy") == 1


@pytest.mark.fault("A19")
@pytest.mark.skipif(not CAN_BE_SILENT, reason="LiveKit has no silent reports yet")
@pytest.mark.parametrize("profile", ["2.5-native-audio", "3.8-live"])
async def test_a_silent_report_is_not_spoken_of(profile: str) -> None:
    """It frees the model; the result is answered when it comes."""

    async def reports(context: RunContext[Any]) -> None:
        await context.update("asking the station", silent=True)

    may_return = asyncio.Event()
    script = [SCRIPT[0], *SCRIPT[2:]]
    behavior = types.Behavior.NON_BLOCKING
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, tools=[reporting(may_return, reports)], tool_behavior=behavior) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await server.until(lambda: server.knows("asking the station"), "the report")
        assert [r.scheduling for r in server.tool_responses] == ["SILENT"]
        may_return.set()
        await ends_well(server, call)
