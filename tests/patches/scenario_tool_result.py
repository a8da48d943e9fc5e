"""Patch 1: a tool result is delivered once across a restart (faults A1 to A4)."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from livekit_gemini_resilient.testing import PROFILES, Call, GeminiLiveServer, Say

from ..stack import ANSWER, WEATHER, OnCall
from .line import plain_call

ANSWERS = dataclasses.replace(PROFILES["2.5-native-audio"], foreign_response="answer")
"""A server that answers every response: each frame that reaches it shows as a reply. What the
patch can decide is what is sent; 2.5 and 3.1 were seen to ignore a response to a call that the
connection did not issue."""

SCRIPT = [Say("Hello."), Call("get_weather", {"city": "London"}), Say(ANSWER)]


async def greet(server: GeminiLiveServer) -> None:
    """A first turn, after which the server has issued a handle if it issues any."""
    await server.caller_says("Hello?")
    await server.replied()


async def told_once(server: GeminiLiveServer, call: OnCall) -> None:
    """The connection after the restart was sent the result, once, and the model has spoken."""
    await call.says_within(ANSWER)
    assert [r.connection for r in server.tool_responses] == [2]
    assert server.knows(WEATHER)


@pytest.mark.parametrize(("phase", "handles"), [("closing", "profile"), ("dialing", "never")])
async def test_result_that_is_produced_while_there_is_no_session_is_told_once(
    phase: str, handles: Any
) -> None:
    """The tool asks for the restart and returns while the socket closes or is dialed."""
    async with (
        GeminiLiveServer(SCRIPT, profile=ANSWERS, handles=handles) as server,
        plain_call(server) as call,
    ):
        await greet(server)
        await call.ask_and_hold()
        barrier = server.holding_closes() if phase == "closing" else server.holding_dials()
        async with barrier as held:
            await call.add_tool()
            await held.reached()
            call.tool_may_return.set()
            await asyncio.wait_for(call.arriving.wait(), 10)
            await asyncio.sleep(0)
        await told_once(server, call)


async def test_result_that_was_queued_in_the_tick_of_the_restart_is_told_once() -> None:
    """The queue that the restart empties is not the end of it."""
    async with (
        GeminiLiveServer(SCRIPT, profile=ANSWERS, handles="never") as server,
        plain_call(server) as call,
    ):
        await greet(server)
        call.after_delivery = call.add_tool_at_once
        await server.caller_says("What is the weather in London?")
        await told_once(server, call)


async def test_result_that_is_produced_after_a_go_away_is_told_once() -> None:
    """``goAway`` closes the session as well."""
    async with (
        GeminiLiveServer(SCRIPT, profile=ANSWERS) as server,
        plain_call(server) as call,
    ):
        await greet(server)
        await call.ask_and_hold()
        async with server.holding_closes() as held:
            await server.go_away(0)
            await held.reached()
            call.tool_may_return.set()
            await asyncio.wait_for(call.arriving.wait(), 10)
            await asyncio.sleep(0)
        await told_once(server, call)


@pytest.mark.parametrize("handles", ["profile", "never"])
async def test_message_that_is_queued_across_a_restart_is_told_once(handles: Any) -> None:
    """Nothing is carried both by the queue and by the replay."""
    async with (
        GeminiLiveServer([Say("Hello."), Say("Woof.")], profile=ANSWERS, handles=handles) as server,
        plain_call(server) as call,
    ):
        await greet(server)
        async with server.holding_closes() as held:
            await call.add_tool_at_once()
            await held.reached()
            context = call.realtime.chat_ctx
            context.add_message(role="user", content="My dog is called Bruno.")
            await call.realtime.update_chat_ctx(context)
        await server.connected(2)
        await server.until(lambda: server.knows("Bruno"), "the message")
        await server.caller_says("What does he say?")
        await server.replied(2)
        assert server.times_told("Bruno") == 1
