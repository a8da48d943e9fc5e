"""A ``RealtimeModelFallbackAdapter`` swaps its session for another with a result in flight.

What the adapter hands over is the agent's chat context: a result that is in it is known, and is
answered if the session before it still owed the reply.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.llm.realtime_fallback_adapter import RealtimeModelFallbackAdapter
from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from livekit_gemini_resilient import RealtimeModel
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .invariants import Watch
from .stack import ANSWER, PLUGIN, WEATHER, Speaker, answers, ours_and_plain, patience

SWAPPED = {"get_weather": "the session that is swapped in tells it"}
"""What becomes of the result on the session that is closed."""


@dataclass
class Swapping:
    """An agent on an adapter over two models of one kind."""

    server: GeminiLiveServer
    plain: bool
    tool_started: asyncio.Event = field(default_factory=asyncio.Event)
    tool_may_return: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> Swapping:
        @function_tool
        async def get_weather(city: str) -> str:
            """Look up the weather.

            Args:
                city: The city.
            """
            self.tool_started.set()
            await asyncio.wait_for(self.tool_may_return.wait(), 10)
            return WEATHER

        kind: Any = PluginModel if self.plain else RealtimeModel
        models = [kind(**self.server.model_options()) for _ in range(2)]
        self.watches = [Watch(model) for model in models]
        self.adapter = RealtimeModelFallbackAdapter(models)
        self.session: AgentSession[Any] = AgentSession(llm=self.adapter)
        self.session.output.audio = Speaker()
        await self.session.start(Agent(instructions="Be brief.", tools=[get_weather]))
        await self.server.connected()
        return self

    async def __aexit__(self, failed: object, *_: object) -> None:
        self.tool_may_return.set()
        if failed is None:
            await self.watches[1].nothing_pends({})
        await self.session.aclose()
        await self.adapter.aclose()
        if failed is None:
            await self.watches[0].all_is_over(self.server, SWAPPED)
            await self.watches[1].all_is_over(self.server, {})

    async def is_answered_once(self) -> None:
        """The session that is active afterwards knows the result and speaks about it, once."""
        await self.server.until(lambda: answers(self.server), "an answer", patience(self.plain))
        assert [r.connection for r in answers(self.server)] == [2]
        assert answers(self.server)[0].knew(WEATHER)
        await self.server.caller_says("Thank you, goodbye.")
        await self.server.until(lambda: self.server.replies[-1].text.strip() == "Goodbye.", "a bye")


@pytest.mark.fault("A18")
@ours_and_plain()
async def test_a_result_is_answered_by_the_model_that_is_swapped_in_before_the_reply(
    profile: str, plain: bool
) -> None:
    """It was told, and no word of the reply was heard."""
    gate = Gate()
    script = [
        Call("get_weather", {"city": "London"}),
        Say(ANSWER, gate=gate, gate_after=0),
        Say(ANSWER),
        Say("Goodbye."),
    ]
    async with GeminiLiveServer(script, profile=profile) as server, Swapping(server, plain) as call:
        call.tool_may_return.set()
        await server.caller_says("What is the weather in London?")
        await gate.reached()
        await call.adapter.restart_session(switch_model=True)
        gate.open()
        await call.is_answered_once()


@pytest.mark.fault("A18")
@pytest.mark.skipif(PLUGIN != "1.8.9", reason="LiveKit cancels the tool when the adapter swaps")
@ours_and_plain()
async def test_a_result_that_comes_after_the_swap_is_answered_by_the_model_that_is_active(
    profile: str, plain: bool
) -> None:
    """LiveKit lets the tool go on in the background, and hands its result over as a pair."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with GeminiLiveServer(script, profile=profile) as server, Swapping(server, plain) as call:
        await server.caller_says("What is the weather in London?")
        await asyncio.wait_for(call.tool_started.wait(), 10)
        await call.adapter.restart_session(switch_model=True)
        await server.connected(2)
        call.tool_may_return.set()
        await call.is_answered_once()
