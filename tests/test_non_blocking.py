"""Tools that do not block: the model goes on talking, and is told the result as it was wished."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types
from livekit.agents import llm

from livekit_gemini_resilient.testing import PROFILES, Call, GeminiLiveServer, Say

from .stack import (
    ANSWER,
    EVERY,
    MUST_FAIL,
    PLUGIN,
    WEATHER,
    OnCall,
    answers,
    on_call,
    ours_and_plain,
)

NON_BLOCKING = types.Behavior.NON_BLOCKING
Scheduling = types.FunctionResponseScheduling

SPEAK_ON = [
    name
    for name in EVERY
    if (PROFILES[name].default_behavior, PROFILES[name].other_behavior)
    not in {("BLOCKING", "ignored"), ("BLOCKING", "refused")}
    # the SDK of that version refuses to declare a behaviour on Vertex AI
    and (PLUGIN != "1.6.5" or PROFILES[name].api == "gemini")
]
"""Families whose model talks while a tool runs that was declared so."""

SCHEDULES = [
    name
    for name in SPEAK_ON
    if PROFILES[name].api == "gemini" and PROFILES[name].scheduling == "honoured"
]
"""Families that read the scheduling of a response; on Vertex AI the field is not sent."""

MEANWHILE = "While I look that up: it is a fine day."


CASES = [
    *(
        pytest.param(profile, restart, False, id=f"{where}-ours-{profile}")
        for restart, where in enumerate(("same connection", "restart"))
        for profile in SCHEDULES
    ),
    pytest.param(SCHEDULES[0], True, True, id=f"restart-plain-{SCHEDULES[0]}", marks=MUST_FAIL),
]
"""Profile, whether there is a restart, and whether with the plugin, which fails with one only."""


async def restarts(server: GeminiLiveServer, call: OnCall) -> None:
    """The connection is replaced while the tool runs."""
    await call.add_tool()
    await server.connected(2)


async def says_goodbye(server: GeminiLiveServer, call: OnCall) -> None:
    """The next turn works."""
    await server.caller_says("Thank you, goodbye.")
    await call.says_within("Goodbye.")


@pytest.mark.fault("A17")
@ours_and_plain(on=SPEAK_ON)
async def test_speech_goes_on_after_a_call_that_does_not_block(profile: str, plain: bool) -> None:
    """As a further message, to the end; it neither interrupts nor is taken for the answer."""
    script = [
        Call("get_weather", {"city": "London"}, say_first="Let me see.", goes_on=True),
        Say(MEANWHILE),
        Say(ANSWER),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tool_behavior=NON_BLOCKING) as call,
    ):
        await call.ask_and_hold()
        await call.says_within(MEANWHILE)
        assert server.tool_responses == []
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await says_goodbye(server, call)
        assert len(answers(server)) == 1
        assert not any(getattr(i, "interrupted", False) for i in call.session.history.items)
        assert call.speaker.heard == pytest.approx(4 * 0.2)
        assert call.runs == 1


@pytest.mark.fault("A17")
@pytest.mark.parametrize("scheduling", [Scheduling.WHEN_IDLE, Scheduling.INTERRUPT])
@pytest.mark.parametrize(("profile", "restart", "plain"), CASES)
async def test_a_result_is_answered_whatever_its_scheduling(
    profile: str, restart: bool, scheduling: Any, plain: bool
) -> None:
    """Also in words on a new connection, where there is nothing to schedule."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(
            server, plain=plain, tool_behavior=NON_BLOCKING, tool_response_scheduling=scheduling
        ) as call,
    ):
        await call.ask_and_hold()
        if restart:
            await restarts(server, call)
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await says_goodbye(server, call)
        assert len(answers(server)) == 1
        if not restart:
            assert [r.scheduling for r in server.tool_responses] == [scheduling.value]


@pytest.mark.fault("A17")
@pytest.mark.parametrize(("profile", "restart", "plain"), CASES)
async def test_a_silent_result_is_known_and_not_spoken_of(
    profile: str, restart: bool, plain: bool
) -> None:
    """``SILENT`` survives the restart: the words that carry it ask for no reply."""
    script = [Call("get_weather", {"city": "London"}), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(
            server,
            plain=plain,
            tool_behavior=NON_BLOCKING,
            tool_response_scheduling=Scheduling.SILENT,
        ) as call,
    ):
        await call.ask_and_hold()
        if restart:
            await restarts(server, call)
        call.tool_may_return.set()
        await server.until(lambda: server.knows(WEATHER), "the result", call.patience)
        if not plain:
            assert not call.realtime._conversation.ledger.reply_due
        await says_goodbye(server, call)
        assert [reply.trigger for reply in server.replies] == ["caller"]
        assert server.times_told(WEATHER) == 1


@pytest.mark.fault("A17")
@pytest.mark.parametrize("restart", [False, True], ids=["same connection", "restart"])
@pytest.mark.parametrize("profile", ["3.1-flash-live"])
async def test_a_model_that_blocks_in_spite_of_the_declaration_is_answered(
    profile: str, restart: bool
) -> None:
    """It accepts ``NON_BLOCKING`` and waits all the same (observed on 3.1)."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, tool_behavior=NON_BLOCKING) as call,
    ):
        await call.ask_and_hold()
        context = call.realtime.chat_ctx
        context.add_message(role="user", content="My dog is called Bruno.")
        await call.realtime.update_chat_ctx(context)
        if restart:
            await restarts(server, call)
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await server.until(lambda: server.knows("Bruno"), "the message")
        await says_goodbye(server, call)
        assert len(answers(server)) == 1


@pytest.mark.fault("A17")
@pytest.mark.skipif(not hasattr(llm, "ToolResult"), reason="LiveKit has no such result yet")
@pytest.mark.parametrize("restart", [False, True], ids=["same connection", "restart"])
@pytest.mark.parametrize("profile", SCHEDULES)
async def test_a_tool_that_wants_no_reply_gets_none(profile: str, restart: bool) -> None:
    """``ToolResult(reply_required=False)`` of newer agents."""
    script = [Call("get_weather", {"city": "London"}), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, tool_behavior=NON_BLOCKING) as call,
    ):
        call.returns = llm.ToolResult(WEATHER, reply_required=False)
        await call.ask_and_hold()
        if restart:
            await restarts(server, call)
        call.tool_may_return.set()
        await server.until(lambda: server.knows(WEATHER), "the result")
        await says_goodbye(server, call)
        assert [reply.trigger for reply in server.replies] == ["caller"]
        assert server.times_told(WEATHER) == 1


@pytest.mark.fault("C6")
@pytest.mark.parametrize("profile", SPEAK_ON)
async def test_a_reply_inside_a_tool_that_does_not_block_is_spoken_before_its_result(
    profile: str,
) -> None:
    """LiveKit withholds the result until the reply has ended, so the reply cannot wait for it."""
    script = [
        Call("get_weather", {"city": "London"}),
        Say(MEANWHILE),
        Say(ANSWER),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, tool_behavior=NON_BLOCKING) as call,
    ):

        async def in_tool() -> None:
            call.session.generate_reply(instructions="Say something about the day.")
            await call.says_within(MEANWHILE)

        call.in_tool = in_tool
        await server.caller_says("What is the weather in London?")
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await says_goodbye(server, call)
        assert call.errors == []
