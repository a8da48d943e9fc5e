"""A call that the server makes again, or delivers twice: a tool with side effects runs once."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from livekit_gemini_resilient.testing import PROFILES, Call, GeminiLiveServer, Say

from .stack import ANSWER, EVERY, PLUGIN, WEATHER, OnCall, answers, on_call, ours_and_plain

WITH_IDS = [profile for profile in EVERY if not profile.endswith("no-ids")]
"""Families on which a call that is delivered twice can be told from a second call."""


IGNORES = [profile for profile in EVERY if PROFILES[profile].foreign_response == "ignore"]
"""Families that take no notice of the response which settles."""


async def made_again(server: GeminiLiveServer, call: OnCall, *, returned: bool) -> None:
    """A connection that was resumed from before the call makes it again, unasked.

    Args:
        server: It greets, makes the call twice, and answers.
        call: Its client.
        returned: The tool has returned by then.
    """
    await server.caller_says("Hello?")
    await call.says_within("Hello.")
    await call.ask_and_hold()
    async with server.holding_dials() as held:
        await server.drop(1011)
        await held.reached()
        if returned:
            call.tool_may_return.set()
            await call.arrives()
    second = await server.connected(2)
    await server.until(lambda: second.tool_responses, "what settles the call", call.patience)
    await server.answer_unasked()
    again = await server.called("get_weather", 2)
    call.tool_may_return.set()
    await call.says_within(ANSWER)
    assert again.answered
    assert answers(server)[0].knew(WEATHER)
    await server.caller_says("Thank you, goodbye.")
    await call.says_within("Goodbye.")
    assert len(answers(server)) == 1
    assert call.runs == 1


MADE_AGAIN = [
    Say("Hello."),
    Call("get_weather", {"city": "London"}),
    Call("get_weather", again=True),
    Say(ANSWER),
    Say("Goodbye."),
]


@pytest.mark.fault("A15")
@ours_and_plain(on=EVERY)
async def test_a_call_that_is_made_again_while_its_tool_runs_gets_the_answer_of_that_run(
    profile: str, plain: bool
) -> None:
    """The snapshot forgot the call, not the tool."""
    async with (
        GeminiLiveServer(MADE_AGAIN, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await made_again(server, call, returned=False)


@pytest.mark.fault("A15")
@ours_and_plain(on=IGNORES)
async def test_a_call_that_is_made_again_when_its_tool_has_returned_is_answered_at_once(
    profile: str, plain: bool
) -> None:
    """Also if the result has just been offered in the response that settles."""
    async with (
        GeminiLiveServer(MADE_AGAIN, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await made_again(server, call, returned=True)


@pytest.mark.fault("A15")
@pytest.mark.fault("B14")
@ours_and_plain(on=WITH_IDS, plain_survives=[PLUGIN] if sys.version_info >= (3, 12) else ())
async def test_a_call_that_is_delivered_again_while_its_tool_runs_runs_it_once(
    profile: str, plain: bool
) -> None:
    """A tick later the plugin does not drop it any more; since Python 3.12 it comes in time."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await call.ask_and_hold()
        issued = server.calls[0]
        same = {"id": issued.id, "name": issued.name, "args": issued.args}
        await server.send({"toolCall": {"functionCalls": [same]}})
        # the model waits, so this comes right behind it and shows that it was read
        await server.issue_handle()
        await call.becomes_resumable()
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert [r.verdict for r in server.tool_responses] == ["accepted"]
        assert len(answers(server)) == 1
        assert call.runs == 1


@pytest.mark.fault("A15")
@pytest.mark.fault("B14")
@pytest.mark.parametrize("delivery", ["twice", "two_shapes"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "returned"])
@ours_and_plain(on=WITH_IDS, plain_survives=[PLUGIN])
async def test_a_call_that_is_delivered_twice_runs_the_tool_once(
    profile: str, delivery: Any, running: bool, plain: bool
) -> None:
    """Under one id, in one shape or in two: one call, one answer.

    The plugin drops every second message of calls in one tick.
    """
    script = [
        Call("get_weather", {"city": "London"}, delivery=delivery),
        Say(ANSWER),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        if running:
            await call.ask_and_hold()
            call.tool_may_return.set()
        else:
            await server.caller_says("What is the weather in London?")
        await call.says_within(ANSWER)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert [r.verdict for r in server.tool_responses] == ["accepted"]
        assert len(answers(server)) == 1
        assert call.runs == 1
