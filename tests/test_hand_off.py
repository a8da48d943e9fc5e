"""A tool hands over to another agent and returns a result: ``return Agent(...), result``.

LiveKit lets the reply to that result pass by. With equal tools it goes on with the same realtime
session, with different ones it gives the next agent one of its own.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.genai import types
from livekit.agents import Agent, function_tool

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .direct import get_time
from .stack import (
    EVERY,
    PLUGIN,
    WEATHER,
    book_table,
    connected_client,
    eventually,
    on_call,
    ours_and_plain,
)

ACCOUNT = "account 4711 is settled"
"""What the tool returns beside the next agent."""

WELCOME = "Billing here. Your account is settled."
"""What the model says for the next agent."""


class Billing(Agent):
    """The agent that takes over."""

    def __init__(self, *, tools: list[Any], greets: bool) -> None:
        super().__init__(instructions="You are the billing desk.", tools=tools)
        self._greets = greets

    async def on_enter(self) -> None:
        if self._greets:
            self.session.generate_reply(instructions="Welcome the caller.")


def transfer_to(
    call_tools: str, *, greets: bool, spare: list[Any], result: str | None = ACCOUNT
) -> Any:
    """A tool that hands over to ``Billing``, with the tools of the agent before it or with others.

    Args:
        call_tools: ``equal`` or ``different``.
        greets: Whether the next agent asks for a reply when it enters.
        spare: What the agent before it has besides.
        result: What is returned beside the agent, ``None`` for nothing.
    """

    @function_tool
    async def transfer(desk: str) -> Any:
        """Transfer the caller.

        Args:
            desk: Where to.
        """
        its_tools = [transfer, *spare] if call_tools == "equal" else [book_table]
        billing = Billing(tools=its_tools, greets=greets)
        return billing if result is None else (billing, result)

    return transfer


async def hears_one_reply(profile: str, plain: bool, tools: str, *, greets: bool) -> None:
    """One reply is heard after the hand-off, and it knows what the tool returned."""
    transfer = transfer_to(tools, greets=greets, spare=[])
    script = [
        Call("transfer", {"desk": "billing"}),
        Say("I am transferring you."),
        Say(WELCOME),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tools=[transfer], unheard=1) as call,
    ):
        await server.caller_says("Is my account settled?")
        await call.says_within(WELCOME)
        assert call.spoken == [WELCOME]
        (reply,) = [r for r in server.replies if r.text.strip() == WELCOME]
        assert reply.knew(ACCOUNT)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert call.spoken == [WELCOME, "Goodbye."]
        assert call.errors == []


@pytest.mark.fault("A9")
@pytest.mark.parametrize("tools", ["equal", "different"])
@ours_and_plain()
async def test_the_next_agent_replies_to_the_result_of_the_tool_that_handed_over(
    profile: str, plain: bool, tools: str
) -> None:
    """The reply that LiveKit let pass by is asked for once more, of the next prompt."""
    await hears_one_reply(profile, plain, tools, greets=False)


@pytest.mark.fault("A9")
@ours_and_plain()
async def test_one_reply_greets_and_knows_the_result_when_the_next_agent_has_a_session_of_its_own(
    profile: str, plain: bool
) -> None:
    """The result and the instructions of ``on_enter`` go out together."""
    await hears_one_reply(profile, plain, "different", greets=True)


@pytest.mark.fault("A9")
@ours_and_plain(plain_survives=[PLUGIN])
async def test_one_reply_greets_and_knows_the_result_when_the_session_goes_on(
    profile: str, plain: bool
) -> None:
    """The plugin passes: the model was told on the same connection, and ``on_enter`` asks it."""
    await hears_one_reply(profile, plain, "equal", greets=True)


@pytest.mark.fault("A12")
@pytest.mark.parametrize("tools", ["equal", "different"])
@ours_and_plain()
async def test_a_call_that_an_agent_on_its_way_out_lets_pass_by_is_answered_with_an_error(
    profile: str, plain: bool, tools: str
) -> None:
    """The model is not muted, the tool does not run, and the next agent speaks about both."""
    leaving, may_leave, runs = asyncio.Event(), asyncio.Event(), 0

    @function_tool(name="get_weather")
    async def weather(city: str) -> str:
        """Look up the weather.

        Args:
            city: The city.
        """
        nonlocal runs
        runs += 1
        return WEATHER

    async def on_exit() -> None:
        leaving.set()
        await asyncio.wait_for(may_leave.wait(), 10)

    script = [
        Call("transfer", {"desk": "billing"}),
        Say("I am transferring you."),
        Call("get_weather", {"city": "London"}),
        Say("I could not look it up."),
        Say(WELCOME),
        Say("Goodbye."),
    ]
    transfer = transfer_to(tools, greets=False, spare=[weather])
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tools=[transfer, weather], unheard=1) as call,
    ):
        call.agent.on_exit = on_exit  # type: ignore[method-assign]
        await server.caller_says("Is my account settled?")
        await server.replied(1)
        await asyncio.wait_for(leaving.wait(), 10)
        await server.caller_says("And how is the weather?")
        await server.called("get_weather")
        try:
            await server.until(lambda: len(server.replies) == 2, "an answer", call.patience)
        finally:
            may_leave.set()
        await call.says_within(WELCOME)
        assert runs == 0
        assert "error" in server.tool_responses[-1].response
        assert call.spoken == [WELCOME]
        reply = server.replies[2]
        assert reply.knew(ACCOUNT)
        assert reply.knew("get_weather was not run")
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")


@pytest.mark.fault("A9")
@pytest.mark.parametrize("tools", ["equal", "different"])
async def test_what_an_agent_leaves_when_the_call_ends_is_no_part_of_the_next_call(
    tools: str,
) -> None:
    """The hand-off never takes place; the same ``AgentSession`` then begins another call."""
    handing_over = asyncio.Event()
    script = [Call("transfer", {"desk": "billing"}), Say("I am transferring you.")]
    transfer = transfer_to(tools, greets=False, spare=[])
    lost = {"transfer": "the call ends"}
    async with (
        GeminiLiveServer(script, strict=False) as server,
        on_call(server, tools=[transfer], excused=lost) as call,
    ):
        call.session.on("function_tools_executed", lambda _: handing_over.set())
        await server.caller_says("Is my account settled?")
        await asyncio.wait_for(handing_over.wait(), 10)
        await call.session.aclose()
        call.agent = Billing(tools=[book_table], greets=False)
        await call.session.start(call.agent)
        await server.connected(2)
        assert call.realtime._pending_tool_result == ()
        assert not server.knows(ACCOUNT)


async def test_a_call_keeps_no_agent_that_has_left_it() -> None:
    """However many take part: what listens for the end of the call goes with each of them."""
    script = [Say("Goodbye.")]
    async with GeminiLiveServer(script) as server, on_call(server) as call:
        listeners = []
        for number, tools in enumerate([[book_table], [get_time], [book_table]], start=2):
            call.session.update_agent(Billing(tools=tools, greets=False))
            await server.connected(number)
            await eventually(
                lambda: not server.connections[-2].open, "the end of the session before"
            )
            listeners.append(len(call.session._events["close"]))
        assert len(set(listeners)) == 1
        call.agent = call.session.current_agent
        await connected_client(call.realtime)
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")


NAMED = ResilienceOptions(transition_tools=["transfer"])
FIRST, REST = "One moment, please.", " I am transferring you."


@pytest.mark.fault("A9")
@pytest.mark.parametrize("tools", ["equal", "different"])
@pytest.mark.parametrize("returns", ["agent", "agent and result"])
@ours_and_plain(on=EVERY)
async def test_a_hand_over_waits_for_the_end_of_the_sentence_and_the_next_prompt_answers(
    profile: str, plain: bool, returns: str, tools: str
) -> None:
    """The call comes in mid-sentence; the result is told once, and by no prompt but the next."""
    greets = returns == "agent"
    transfer = transfer_to(tools, greets=greets, spare=[], result=None if greets else ACCOUNT)
    script = [
        Call("transfer", {"desk": "billing"}, say_first=FIRST, trailing=REST),
        Say(WELCOME),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tools=[transfer], resilience=NAMED) as call,
    ):
        await server.caller_says("Is my account settled?")
        await call.says_within(WELCOME)
        assert call.spoken == [f"{FIRST}{REST}", WELCOME]
        assert call.said("assistant", interrupted=True) == []
        (reply,) = [r for r in server.replies if r.text.strip() == WELCOME]
        assert reply.connection == len(server.connections) == 2
        assert "billing desk" in str(server.connections[1].setup)
        assert greets or server.times_told(ACCOUNT) == 1
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert call.errors == []


@pytest.mark.fault("A9")
@pytest.mark.parametrize("tools", ["equal", "different"])
@ours_and_plain(on=["2.5-native-audio", "3.8-live"])
async def test_a_hand_over_waits_for_a_model_that_goes_on_after_its_call(
    profile: str, plain: bool, tools: str
) -> None:
    """A model that does not wait for its tools tells its story to the end before it is replaced."""
    gate = Gate()
    transfer = transfer_to(tools, greets=False, spare=[])
    script = [
        Call("transfer", {"desk": "billing"}, say_first=FIRST, goes_on=True),
        Say(REST, audio_seconds=0.4, gate=gate, gate_after=2),
        Say(WELCOME),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(
            server,
            plain=plain,
            tools=[transfer],
            resilience=NAMED,
            tool_behavior=types.Behavior.NON_BLOCKING,
        ) as call,
    ):
        await server.caller_says("Is my account settled?")
        await gate.reached()
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        gate.open()
        await call.says_within(WELCOME)
        assert call.spoken == [f"{FIRST}{REST}", WELCOME]
        assert call.said("assistant", interrupted=True) == []
        (reply,) = [r for r in server.replies if r.text.strip() == WELCOME]
        assert reply.connection == len(server.connections) == 2
        assert server.times_told(ACCOUNT) == 1
