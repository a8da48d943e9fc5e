"""LiveKit keeps the realtime session across a hand-off to an agent with equal tools."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents import Agent, AgentTask

from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .stack import ANSWER, EVERY, WEATHER, OnCall, answers, on_call

SCRIPT = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]


def successor(call: OnCall, *, knows_history: bool) -> Agent:
    """An agent with equal tools and other instructions."""
    context = call.agent.chat_ctx.copy() if knows_history else None
    return Agent(instructions="Be kind.", tools=list(call.agent.tools), chat_ctx=context)


async def hand_over(call: OnCall, agent: Agent) -> None:
    """Let the agent take the call, and wait until it has."""
    reused = call.realtime
    call.session.update_agent(agent)
    call.tool_may_return.set()
    took_over = call.session._update_activity_atask
    assert took_over is not None
    await asyncio.wait_for(asyncio.shield(took_over), 20)
    call.agent = agent
    assert call.realtime is reused


@pytest.mark.fault("A9")
@pytest.mark.parametrize("knows_history", [True, False], ids=["with history", "without history"])
@pytest.mark.parametrize("profile", EVERY)
async def test_the_result_of_an_open_call_is_answered_by_the_agent_that_takes_over(
    profile: str, knows_history: bool
) -> None:
    """The tool runs while another agent takes over: LiveKit hands its result over and lets the
    reply pass by, so it is asked for once more, of the new instructions."""
    script = [SCRIPT[0], Say("Nobody hears that."), *SCRIPT[1:]]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, unheard=1) as call,
    ):
        await call.ask_and_hold()
        await hand_over(call, successor(call, knows_history=knows_history))
        await call.says(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        if server.profile.api == "gemini":
            # on Vertex AI instructions are replaced in place
            assert answers(server)[0].connection == 2
        await server.caller_says("Thank you, goodbye.")
        await call.says("Goodbye.")
        assert call.spoken == [ANSWER, "Goodbye."]
        assert len(server.tool_responses) == 1
        assert call.runs == 1


class Consent(AgentTask[bool]):
    """Asks the caller for consent, with the tools of the agent that waits for it."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(instructions="Ask for consent.", tools=list(agent.tools))

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Ask for consent.")


@pytest.mark.parametrize("profile", EVERY)
async def test_a_task_with_equal_tools_speaks_while_the_call_that_awaits_it_is_open(
    profile: str,
) -> None:
    """It is given the session of the open call; the result is told and answered once."""
    script = [*SCRIPT[:1], Say("Do you agree?"), *SCRIPT[1:]]
    async with GeminiLiveServer(script, profile=profile) as server, on_call(server) as call:
        outer = call.realtime
        task: Consent | None = None

        async def in_tool() -> None:
            nonlocal task
            task = Consent(call.agent)
            await task

        call.in_tool = in_tool
        await server.caller_says("What is the weather in London?")
        await call.says("Do you agree?")
        assert task is not None
        assert task._get_activity_or_raise().realtime_llm_session is outer
        task.complete(True)
        await call.says(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await server.caller_says("Thank you, goodbye.")
        await call.says("Goodbye.")
        assert len(answers(server)) == 1
        assert server.times_told(WEATHER) == 1
        assert call.runs == 1
