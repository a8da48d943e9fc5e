"""A long call, scaled down in time: everything that can happen to it, at random moments.

The server announces its end every "minute" and the connection is lost ten times, at rest, while
tools run, while their results are written, and in mid-sentence; in between the voice and the tools
change, a tool awaits an ``AgentTask``, and one hands over to another agent.
"""

from __future__ import annotations

from typing import Any

from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from livekit_gemini_resilient import RealtimeModel
from livekit_gemini_resilient.demo.long import LongCall
from livekit_gemini_resilient.demo.long_plan import DROPS, NOTICES, Event, plan
from livekit_gemini_resilient.testing import PROFILES as SIMULATED
from livekit_gemini_resilient.testing import GeminiLiveServer

from .invariants import Watch
from .stack import EVERY, ours_and_plain

SEED = 1

SESSIONS = 4
"""The agent's, the task's, the agent's again, and that of the agent after the hand-off."""

BEFORE_ANY_HANDLE = 1
"""The connection is lost in the first exchange of this conversation."""

EXCUSED = {"agree": "it completes the task, whose session closes before it is answered"}


def test_a_plan_has_everything_and_is_the_same_for_the_same_seed() -> None:
    """So a loss can be played again."""
    events = [turn.event for turn in plan(SEED)]
    assert events == [turn.event for turn in plan(SEED)]
    assert events != [turn.event for turn in plan(SEED + 1)]
    assert sum(event in DROPS for event in events) == 10
    assert sum(event in NOTICES for event in events) == 4
    assert set(events) >= {Event.VOICE, Event.TOOLS, Event.TASK, Event.HAND_OFF}


@ours_and_plain(on=EVERY)
async def test_nothing_is_lost_repeated_or_cut_in_a_long_conversation(
    profile: str, plain: bool
) -> None:
    """Each result is told once (and named once more where words about it were cut) and answered
    once, the caller's words are heard once and in order, no reply is cut that the notice left time
    for, and nothing is left at the end. Every connection is resumed but the first of a session, and
    one before any handle had come."""
    model_type: type[Any] = PluginModel if plain else RealtimeModel
    async with GeminiLiveServer(profile=profile, strict=False) as server:
        model = model_type(**server.model_options())
        watch = Watch(model)
        call = LongCall(server, model, patience=1.5 if plain else 10.0)
        try:
            await call.lead(plan(SEED))
        finally:
            await model.aclose()
        assert call.losses == []
        resumed = [c for c in server.connections if c.resumed_from is not None]
        fresh = len(server.connections) - len(resumed)
        at_once = SIMULATED[profile].handle_after_setup
        assert fresh == SESSIONS + (0 if at_once else BEFORE_ANY_HANDLE)
        assert len([c for c in server.connections if c.accepted]) == len(server.connections)
        # LiveKit lets the reply pass by that the tool which hands over would get
        await watch.all_is_over(server, EXCUSED, unheard=1)
        await server.until(lambda: all(c.closed for c in server.connections), "every close")
