"""How servers treat a response to a call that another connection issued.

Whatever a resumed or fresh connection does with it, the result is known and answered once. The
session is told nothing of the treatment beforehand: it tries, and remembers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from livekit_gemini_resilient import Behaviour, ResilienceOptions
from livekit_gemini_resilient.testing import PROFILES, Call, GeminiLiveServer, Say

from .direct import connected, get_time, get_weather
from .stack import NEWER, book_table
from .test_update_tools_mid_turn import CASES, Case, survives

TREATMENTS = ["answer", "empty_turn", "swallow", 1007, 1008]


@pytest.mark.parametrize("family", NEWER)
@pytest.mark.parametrize("case", [pytest.param(c, marks=c.faults, id=str(c)) for c in CASES])
async def test_result_survives_update_tools_on_newer_families(case: Case, family: str) -> None:
    """Non-blocking tools, several utterances, calls without ids: the same promise."""
    await survives(case, family)


@pytest.mark.parametrize("treatment", TREATMENTS)
@pytest.mark.parametrize("case", [pytest.param(c, marks=c.faults, id=str(c)) for c in CASES])
async def test_result_survives_every_treatment_of_foreign_responses(
    case: Case, treatment: Any
) -> None:
    """A server may ignore, answer, swallow or refuse a response to a call it did not issue."""
    profile = replace(PROFILES["2.5-native-audio"], foreign_response=treatment)
    # a server that answers such responses also speaks to "still running"
    placeholder = treatment == "answer" and case.arrives == "reconnected" and case.handle != "none"
    await survives(case, profile, interim=placeholder, refusals=isinstance(treatment, int))


@pytest.mark.parametrize("case", [pytest.param(c, marks=c.faults, id=str(c)) for c in CASES])
async def test_result_survives_where_client_content_is_taken_as_initial_history_only(
    case: Case,
) -> None:
    """The first guess is wrong: it costs one connection, and history goes out with the setup."""
    profile = replace(PROFILES["3.1-flash-live"], client_content="initial_only")
    await survives(case, profile, refusals=True)


WRONG = {
    "realtime text does not make it speak": (
        {"realtime_text": "context"},
        Behaviour(trigger="realtime_text"),
    ),
    "content is taken at any time": ({}, Behaviour(content_at_any_time=False)),
    "it waits for the responses to lost calls": (
        {"foreign_response": "swallow"},
        Behaviour(foreign_responses=False),
    ),
    "it refuses responses to lost calls": ({"foreign_response": 1007}, Behaviour()),
}
"""How a server behaves, and what it is wrongly known to do."""


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("case", [pytest.param(c, marks=c.faults, id=str(c)) for c in CASES])
async def test_result_survives_a_wrong_record_of_the_servers_behaviour(
    case: Case, wrong: str
) -> None:
    """A wrong guess costs time or a connection, once, and never a result."""
    does, known = WRONG[wrong]
    profile = replace(PROFILES["2.5-native-audio"], **does)
    # long enough for a busy machine: who is asked twice answers twice
    resilience = ResilienceOptions(behaviour=known, reply_timeout=2.0)
    await survives(case, profile, refusals=True, resilience=resilience)


@pytest.mark.parametrize("code", [1007, 1008])
async def test_result_survives_what_was_learned_from_an_unrelated_close(code: int) -> None:
    """A close straight after words of ours, on a server that nothing else makes speak."""
    profile = replace(PROFILES["2.5-native-audio"], realtime_text="context")
    script = [Call("get_weather"), Say("It is foggy.")]
    resilience = ResilienceOptions(reply_timeout=2.0)
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        connected(server, resilience=resilience) as direct,
    ):
        await server.caller_says("What is the weather?")
        asked = await direct.call()
        await server.drop()
        await server.connected(2)
        server.drop_on("client_content", code=code)
        await direct.answer(asked, "foggy and 12 degrees")
        reply = await server.replied()
        assert reply.knew("foggy and 12 degrees")
        assert reply.trigger == "client_content"


@pytest.mark.fault("A5")
@pytest.mark.parametrize("code", [1007, 1008])
async def test_a_server_that_refuses_foreign_responses_is_not_sent_one_again(code: int) -> None:
    """One connection is the price of learning it, for the life of the session."""
    profile = replace(PROFILES["2.5-native-audio"], foreign_response=code)
    call = Call("get_weather", handle_first=True)
    script = [call, Say("It is foggy."), call, Say("It is still foggy.")]
    async with GeminiLiveServer(script, profile=profile) as server, connected(server) as direct:
        for turn, tools in enumerate(([get_weather], [get_weather, get_time]), start=1):
            await server.caller_says("What is the weather?")
            asked = await direct.call()
            await direct.session.update_tools([*tools, book_table])
            before = direct.reconnected
            await direct.until(lambda b=before: direct.reconnected > b, "a reconnect")
            await direct.answer(asked, f"foggy, {turn}")
            reply = await server.replied(turn)
            assert reply.knew(f"foggy, {turn}")
        refused = [r for c in server.connections for r in c.tool_responses]
        assert len(refused) == 1
        server.forgive("")
