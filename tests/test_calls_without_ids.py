"""Calls that come without an id, on either API.

On Vertex AI the response carries none either. On the Gemini API the SDK sends no response without
an ``id`` field, so it carries the empty id, which in the JSON of a protobuf string is the same as
none. Which call a response is for then goes by the name, in the order of the calls.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Collection
from typing import Any

import pytest
from livekit.agents import function_tool

from livekit_gemini_resilient.testing import (
    PROFILES,
    Call,
    Calls,
    GeminiLiveServer,
    IssuedCall,
    Profile,
    Say,
)

from .direct import get_time
from .stack import ANSWER, WEATHER, OnCall, answers, book_table, on_call, ours_and_plain
from .test_calls_again import MADE_AGAIN, made_again

WITHOUT_IDS = {
    name.removesuffix("-no-ids"): dataclasses.replace(PROFILES[name], call_ids="none")
    for name in ("2.5-native-audio", "3.1-flash-live", "3.8-live", "vertex-live-2.5-no-ids")
}
BLOCKING = {name: p for name, p in WITHOUT_IDS.items() if p.default_behavior == "BLOCKING"}
"""Those that speak once all calls of a turn are answered."""

ASK = "How is the weather in London, and in Paris?"
SEEN_IN = {"London": WEATHER, "Paris": "sunny and 25 degrees"}
"""What the tool of ``both_cities`` answers."""


async def goes_on(server: GeminiLiveServer, call: OnCall) -> None:
    """The next turn works, on the connection that stands."""
    await server.caller_says("Thank you, goodbye.")
    await call.says_within("Goodbye.")
    assert len(answers(server)) == 1


def learnt(server: GeminiLiveServer, call: IssuedCall) -> list[str]:
    """What the model takes for the result of a call."""
    entries = [e for c in server.connections for e in c.context]
    return [e.text for e in entries if e.kind == "result" and e.call_id == call.key]


def weather_of(cities: list[str], slow: Collection[str], began: asyncio.Event) -> Any:
    """A tool that returns for the slow cities last."""
    quick_done = asyncio.Event()

    @function_tool
    async def get_weather(city: str) -> str:
        """Look up the weather.

        Args:
            city: The city.
        """
        cities.append(city)
        if len(cities) == len(SEEN_IN):
            began.set()
        if city in slow:
            await asyncio.wait_for(quick_done.wait(), 5)
        quick_done.set()
        return SEEN_IN[city]

    return get_weather


@pytest.mark.fault("A11")
@ours_and_plain(on=WITHOUT_IDS)
async def test_a_call_without_an_id_is_answered(profile: Profile, plain: bool) -> None:
    """By name, on the connection that asked; the connection survives."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await goes_on(server, call)
        assert [(r.id, r.name, r.verdict) for r in server.tool_responses] == [
            ("", "get_weather", "accepted")
        ]
        assert len(server.connections) == 1
        assert call.runs == 1


@pytest.mark.fault("A11")
@pytest.mark.parametrize("slow", ["London", "Paris"])
@pytest.mark.parametrize("messages", ["in one message", "in two messages"])
@ours_and_plain(on=BLOCKING)
async def test_calls_of_one_function_in_one_turn_get_each_their_own_result(
    profile: Profile, messages: str, slow: str, plain: bool
) -> None:
    """Whichever tool returns first: by their order nothing is mixed up."""
    cities: list[str] = []
    tool = weather_of(cities, [slow], asyncio.Event())
    london, paris = (Call("get_weather", {"city": city}) for city in SEEN_IN)
    batch = [Calls([london, paris])]
    if messages == "in two messages":
        batch = [dataclasses.replace(london, then_next=True), paris]
    script = [*batch, Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tools=[tool]) as call,
    ):
        await server.caller_says(ASK)
        await call.says_within(ANSWER)
        assert [learnt(server, issued) for issued in server.calls] == [
            [SEEN_IN["London"]],
            [SEEN_IN["Paris"]],
        ]
        await goes_on(server, call)
        assert sorted(cities) == ["London", "Paris"]


@pytest.mark.fault("A11")
@pytest.mark.parametrize("handles", ["profile", "never"])
@ours_and_plain(on=WITHOUT_IDS)
async def test_results_of_calls_without_ids_survive_a_restart(
    profile: Profile, handles: Any, plain: bool
) -> None:
    """Two of one batch: told and answered once on the new connection."""
    batch = Calls([Call("get_time"), Call("get_weather", {"city": "London"})], handle_first=True)
    script = [batch, Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile, handles=handles) as server,
        on_call(server, plain=plain, also=[get_time]) as call,
    ):
        await call.ask_and_hold()
        await call.agent.update_tools([*call.agent.tools, book_table])
        await server.connected(2)
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        assert answers(server)[0].knew("a quarter past nine")
        await goes_on(server, call)
        assert call.runs == 1


@pytest.mark.fault("A11")
@pytest.mark.fault("A15")
@ours_and_plain(on=WITHOUT_IDS)
async def test_a_call_without_an_id_that_is_made_again_runs_the_tool_once(
    profile: Profile, plain: bool
) -> None:
    """By name and arguments it is the same."""
    async with (
        GeminiLiveServer(MADE_AGAIN, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await made_again(server, call, returned=False)
