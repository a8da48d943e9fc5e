"""The server takes calls back with ``toolCallCancellation`` while their tools run."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.testing import Call, Calls, GeminiLiveServer, Say

from .direct import get_time
from .stack import EVERY, WEATHER, OnCall, on_call, ours_and_plain

WITH_IDS = [profile for profile in EVERY if profile != "vertex-live-2.5-no-ids"]
"""Families whose cancellation can say which calls it is about."""

TIME = "a quarter past nine"


async def is_known_and_was_not_answered(server: GeminiLiveServer, call: OnCall) -> None:
    """The model learns what was done and does not speak of it; the conversation goes on."""
    await server.until(lambda: server.knows(WEATHER), "the result", call.patience)
    spoken = len(server.replies)
    await server.caller_says("Thank you, goodbye.")
    await call.says_within("Goodbye.")
    assert len(server.replies) == spoken + 1
    assert server.replies[-1].trigger == "caller"
    assert server.times_told(WEATHER) == 1
    assert "get_weather" not in [r.name for r in server.tool_responses]
    assert call.runs == 1
    kinds = [i.type for i in call.session.history.items if getattr(i, "name", "") == "get_weather"]
    assert kinds == ["function_call", "function_call_output"]


@pytest.mark.fault("A10")
@pytest.mark.parametrize("interrupted", [False, True], ids=["taken back", "barge-in"])
@ours_and_plain(on=EVERY)
async def test_a_cancelled_call_gets_no_response_and_its_result_is_told_all_the_same(
    profile: str, interrupted: bool, plain: bool
) -> None:
    """What the tool has done is said without asking for a reply."""
    script = [Call("get_weather", {"city": "London"}), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await call.ask_and_hold()
        await server.cancel_calls(interrupted=interrupted)
        call.tool_may_return.set()
        await is_known_and_was_not_answered(server, call)


@pytest.mark.fault("A10")
@pytest.mark.parametrize("lost", ["after the cancellation", "after the result"])
@ours_and_plain(on=EVERY)
async def test_what_a_cancelled_call_has_done_is_told_to_a_later_connection(
    profile: str, lost: str, plain: bool
) -> None:
    """Once, without a response that would settle it, and without asking for a reply."""
    script = [Call("get_weather", {"city": "London"}), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await call.ask_and_hold()
        await server.cancel_calls()
        if lost == "after the cancellation":
            await server.drop(1011)
            await server.connected(2)
            call.tool_may_return.set()
        else:
            async with server.holding_dials() as held:
                await server.drop(1011)
                await held.reached()
                call.tool_may_return.set()
                await call.arrives()
        await is_known_and_was_not_answered(server, call)


@pytest.mark.fault("A10")
@ours_and_plain(on=WITH_IDS)
async def test_the_other_calls_of_a_batch_are_answered(profile: str, plain: bool) -> None:
    """Only the id that was cancelled gets no response."""
    script = [
        Calls([Call("get_time"), Call("get_weather", {"city": "London"})]),
        Say(f"It is {TIME}."),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, also=[get_time]) as call,
    ):
        await call.ask_and_hold()
        await server.cancel_calls("get_weather")
        call.tool_may_return.set()
        await call.says_within(f"It is {TIME}.")
        await is_known_and_was_not_answered(server, call)
        assert [r.name for r in server.tool_responses] == ["get_time"]
        assert server.replies[0].knew(TIME)
