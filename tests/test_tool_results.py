"""Tool results when the connection is lost, announced to end, or answered in parts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import function_tool

from livekit_gemini_resilient.testing import Call, Calls, GeminiLiveServer, Say

from .direct import connected, get_time, get_weather
from .stack import ANSWER, PROFILES, WEATHER, OnCall, answers, book_table, on_call, ours_and_plain

SCRIPT = [Call("get_weather", {"city": "London"}, handle_first=True), Say(ANSWER), Say("Goodbye.")]


async def answered_once(server: GeminiLiveServer, call: OnCall) -> None:
    """The result is known, was answered and heard once, and the conversation goes on."""
    await call.says_within(ANSWER)
    await server.until(
        lambda: server.current and server.current.knows(WEATHER), "a connection that knows"
    )
    await server.caller_says("Thank you, goodbye.")
    await call.says_within("Goodbye.")
    assert len(answers(server)) == 1
    assert answers(server)[0].knew(WEATHER)
    assert call.spoken.count(ANSWER) == 1
    assert call.runs == 1
    for connection in server.connections:
        ids = [r.id for r in connection.tool_responses]
        assert len(ids) == len(set(ids))


@pytest.mark.fault("A5")
@pytest.mark.parametrize("how", ["drop", "abort"])
@pytest.mark.parametrize("arrives", ["at once", "after the reconnect"])
@ours_and_plain()
async def test_result_survives_a_connection_that_is_lost_while_the_tool_runs(
    profile: str, how: str, arrives: str, plain: bool
) -> None:
    """A connection that never issued the call is told the result in words, once."""
    async with (
        GeminiLiveServer(SCRIPT, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await call.ask_and_hold()
        await (server.drop(1011) if how == "drop" else server.abort())
        if arrives == "after the reconnect":
            await server.connected(2)
        call.tool_may_return.set()
        await answered_once(server, call)


@pytest.mark.fault("A6")
@pytest.mark.parametrize("code", [1011, None], ids=["closed", "aborted"])
@pytest.mark.parametrize("consumed", [False, True], ids=["before it is read", "after it was read"])
@ours_and_plain()
async def test_result_is_told_again_when_the_socket_drops_before_any_reaction(
    profile: str, code: int | None, consumed: bool, plain: bool
) -> None:
    """A response that was written and not seen to arrive is delivered once more."""
    async with (
        GeminiLiveServer(SCRIPT, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        server.drop_on("tool_response", code, after=consumed)
        call.tool_may_return.set()
        await call.ask_and_hold()
        await answered_once(server, call)


@pytest.mark.fault("A4")
@pytest.mark.parametrize("time_left", [60.0, 0.0])
@ours_and_plain()
async def test_result_survives_a_go_away_while_the_tool_runs(
    profile: str, time_left: float, plain: bool
) -> None:
    """With time left the connection that asked is answered; without, the next one is told."""
    async with (
        GeminiLiveServer(SCRIPT, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await call.ask_and_hold()
        await server.go_away(time_left)
        if time_left == 0.0:
            await server.connected(2)
        call.tool_may_return.set()
        await answered_once(server, call)
        if not plain:
            assert server.calls[0].answered is (time_left > 0)


@pytest.mark.fault("A4")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("handles", ["profile", "never"])
async def test_message_that_is_queued_across_a_restart_is_told_once(
    profile: str, handles: Any
) -> None:
    """Nothing is carried both by the queue and by the replay."""
    async with (
        GeminiLiveServer(SCRIPT, profile=profile, handles=handles) as server,
        on_call(server) as call,
    ):
        await call.ask_and_hold()
        async with server.holding_dials() as held:
            await call.add_tool()
            await held.reached()
            context = call.realtime.chat_ctx
            context.add_message(role="user", content="My dog is called Bruno.")
            await call.realtime.update_chat_ctx(context)
        call.tool_may_return.set()
        await answered_once(server, call)
        assert server.times_told("Bruno") == 1


@pytest.mark.fault("A14")
@pytest.mark.fault("B3")
@ours_and_plain()
async def test_results_of_one_turn_are_told_once_when_a_restart_comes_between_them(
    profile: str, plain: bool
) -> None:
    """One tool finished before the restart, one after it: one reply for both."""
    may_return, quick_done, slow_began = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @function_tool(name="get_time")
    async def quick() -> str:
        """Tell the time."""
        quick_done.set()
        return "a quarter past nine"

    @function_tool(name="get_weather")
    async def slow(city: str) -> str:
        """Look up the weather."""
        slow_began.set()
        await asyncio.wait_for(may_return.wait(), 5)
        return WEATHER

    script = [
        Call("get_time", then_next=True),
        Call("get_weather", {"city": "London"}),
        Say(ANSWER),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tools=[quick, slow]) as call,
    ):
        await server.caller_says("What time is it, and how is the weather in London?")
        try:
            await asyncio.wait_for(quick_done.wait(), call.patience)
            await asyncio.wait_for(slow_began.wait(), call.patience)
        except asyncio.TimeoutError:
            raise AssertionError("the tools did not both run") from None
        await call.add_tool()
        await server.connected(2)
        may_return.set()
        await call.says_within(ANSWER)
        assert len(answers(server)) == 1
        assert answers(server)[0].knew(WEATHER)
        assert answers(server)[0].knew("quarter past nine")
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")


@pytest.mark.fault("A14")
@pytest.mark.parametrize("profile", PROFILES)
async def test_result_told_before_a_restart_is_told_again_with_the_one_that_comes_after(
    profile: str,
) -> None:
    """A blocking server has said nothing to the first result yet: both are told anew, as one."""
    script = [Calls([Call("get_time"), Call("get_weather")]), Say(ANSWER)]
    async with GeminiLiveServer(script, profile=profile) as server, connected(server) as direct:
        await server.caller_says("What time is it, and how is the weather in London?")
        first, second = await direct.call(), await direct.call()
        await direct.answer(first, "a quarter past nine")
        await server.until(lambda: len(server.tool_responses) == 1, "the first result")
        await direct.session.update_tools([get_time, get_weather, book_table])
        await server.connected(2)
        await direct.answer(second, WEATHER)
        reply = await server.replied()
        assert reply.knew(WEATHER)
        assert reply.knew("quarter past nine")
        assert reply.connection == 2


@pytest.mark.fault("A5")
@pytest.mark.parametrize("profile", PROFILES)
async def test_caller_who_is_answered_on_the_resumed_connection_does_not_cost_the_result(
    profile: str,
) -> None:
    """That answer proves nothing about a response that the server may have ignored."""
    script = [Say("Hello."), Call("get_weather"), Say("Yes, I am here."), Say(ANSWER)]
    async with GeminiLiveServer(script, profile=profile) as server, connected(server) as direct:
        await server.caller_says("Hello?")
        await direct.until(lambda: direct.session.session_resumption_handle, "a handle")
        await server.caller_says("What is the weather?")
        call = await direct.call()
        await server.drop(1011)
        await direct.answer(call, WEATHER)
        second = await server.connected(2)
        await server.until(lambda: second.tool_responses, "the response that settles")
        await server.caller_says("Are you still there?")
        await server.until(lambda: answers(server), "an answer to the result")
        assert answers(server)[0].knew(WEATHER)
        assert len(answers(server)) == 1
