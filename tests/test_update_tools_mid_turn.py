"""The regression test: a tool result survives ``update_tools()`` in mid-turn.

A full ``AgentSession`` with a function tool talks over a real TLS websocket to the simulated
server. The restart is requested before, with and after the result, by the tool itself and from
outside, with every kind of resumption handle, and the result arrives in every phase of the
replacement. What counts is the model's memory: it knows the result, it said so once, and the
conversation goes on with the new tools.

The same scenarios run against the google plugin itself and must fail there; so we know that the
test bites. Nothing is timed: barriers in the simulator hold the phase in which the result arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Profile, Say

from .stack import ANSWER, PLUGIN, PROFILES, WEATHER, OnCall, answers, on_call

Phase = Literal["open", "closing", "backing off", "dialing", "reconnected"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way in which a restart and a result can meet."""

    moment: Literal["before", "with, result first", "with, restart first", "mute", "speaking"]
    """When the restart is requested: before the result, in one tick with it, or after it, while
    the model has not begun (mute) or is in mid-sentence (speaking)."""
    by: Literal["tool", "outside"] = "outside"
    """Who requests it."""
    handle: Literal["covers the question", "older than the question", "none"]
    """The resumption handle that the client has by then."""
    arrives: Phase = "open"
    """Where the connection stands when the result arrives."""

    @property
    def faults(self) -> list[pytest.MarkDecorator]:
        """The rows of the fault table that the case belongs to."""
        if self.moment == "before":
            waits = {"A2"} if self.arrives in ("closing", "backing off", "dialing") else {"A5"}
            ids = waits | ({"A3"} if self.by == "tool" else set())
        else:
            ids = {"A1"} if self.moment == "with, result first" else {"A3"}
            ids = {"D2"} if self.moment in ("mute", "speaking") else ids
        return [pytest.mark.fault(id) for id in sorted(ids)]

    def __str__(self) -> str:
        return f"{self.moment}, by {self.by}, handle {self.handle}, result while {self.arrives}"


CASES = [
    Case(moment="before", by="tool", handle="covers the question", arrives="closing"),
    Case(moment="before", by="tool", handle="older than the question", arrives="dialing"),
    Case(moment="before", by="tool", handle="none", arrives="backing off"),
    Case(moment="before", by="tool", handle="covers the question", arrives="reconnected"),
    Case(moment="before", by="outside", handle="none", arrives="closing"),
    Case(moment="before", by="outside", handle="covers the question", arrives="dialing"),
    Case(moment="before", by="outside", handle="older than the question", arrives="backing off"),
    Case(moment="before", by="outside", handle="none", arrives="reconnected"),
    Case(moment="before", by="outside", handle="older than the question", arrives="closing"),
    Case(moment="with, result first", handle="covers the question"),
    Case(moment="with, result first", handle="none"),
    Case(moment="with, restart first", handle="older than the question"),
    Case(moment="with, restart first", handle="none"),
    Case(moment="mute", handle="covers the question"),
    Case(moment="mute", handle="none"),
    Case(moment="speaking", handle="older than the question"),
    Case(moment="speaking", handle="none"),
]


@contextlib.asynccontextmanager
async def phase(server: GeminiLiveServer, call: OnCall, where: Phase) -> AsyncIterator[None]:
    """Hold the connection in a phase until the result has arrived in it.

    The body waits for the phase; the result is on its way when the body ends.
    """
    if where == "reconnected":
        yield
        await server.connected(2)
        return
    barrier = {
        "closing": server.holding_closes,
        "backing off": lambda: server.refusing_dials(times=1),
        "dialing": server.holding_dials,
    }[where]()
    async with barrier as held:
        yield
        await held.reached()
        release_tool(call)
        await call.arrives()


def release_tool(call: OnCall) -> None:
    """Let the tool return."""
    call.tool_may_return.set()


async def restart_before_result(server: GeminiLiveServer, call: OnCall, case: Case) -> None:
    """Ask while the tool runs, and let it return in the wanted phase."""

    async def in_tool() -> None:
        if case.by == "tool":
            await call.add_tool()
        await call.hold_tool()

    call.in_tool = in_tool
    async with phase(server, call, case.arrives):
        await server.caller_says("What is the weather in London?")
        await asyncio.wait_for(call.tool_started.wait(), 10)
        if case.by == "outside":
            await call.add_tool()
    release_tool(call)


async def restart_with_result(server: GeminiLiveServer, call: OnCall, case: Case) -> None:
    """Ask in the very tick in which the result is handed over."""
    if case.moment == "with, result first":
        call.after_delivery = call.add_tool_at_once
    else:
        call.before_delivery = call.add_tool_at_once
    await server.caller_says("What is the weather in London?")


async def restart_after_result(
    server: GeminiLiveServer, call: OnCall, gate: Gate, *, plain: bool
) -> None:
    """Ask while the model is about to speak, or in mid-sentence."""
    await server.caller_says("What is the weather in London?")
    await gate.reached()
    await call.add_tool()
    if plain:
        # it gives the connection up at once; which frames it still reads would be a race
        await server.until(lambda: server.connections[0].closing, "the close of the old socket")
    gate.open()


async def survives(
    case: Case,
    profile: str | Profile,
    *,
    plain: bool = False,
    interim: bool = False,
    refusals: bool = False,
    **options: Any,
) -> None:
    """Play a case and judge it by the model's memory.

    Args:
        case: What happens.
        profile: How the server behaves.
        plain: Play it with the google plugin's own model.
        interim: The model speaks once before it knows the result.
        refusals: The server may close a connection for a response that it does not take.
        **options: Arguments of the model.

    Raises:
        AssertionError: The result was lost, doubled or misrouted.
    """
    gate = Gate()
    gated = {"mute": {"gate": gate, "gate_after": 0}, "speaking": {"gate": gate, "gate_after": 2}}
    script = [
        Call("get_weather", {"city": "London"}, handle_first="covers" in case.handle),
        Say(ANSWER, **gated.get(case.moment, {})),
        Say("Goodbye."),
    ]
    if interim:
        script.insert(1, Say("One moment."))
    if case.handle.startswith("older"):
        script.insert(0, Say("Hello."))
    handles: Literal["never", "profile"] = "never" if case.handle == "none" else "profile"
    async with (
        GeminiLiveServer(script, profile=profile, handles=handles) as server,
        on_call(server, plain=plain, **options) as call,
    ):
        patience = call.patience
        if case.handle.startswith("older"):
            await server.caller_says("Hello?")
            await server.replied()
        if case.moment == "before":
            await restart_before_result(server, call, case)
        elif case.moment.startswith("with"):
            await restart_with_result(server, call, case)
        else:
            await restart_after_result(server, call, gate, plain=plain)

        await server.until(lambda: answers(server), "an answer to the result", patience)
        assert answers(server)[0].knew(WEATHER)
        await call.says(ANSWER, patience)
        await server.until(
            lambda: (
                server.current
                and "book_table" in server.current.declared_tools
                and server.current.knows(WEATHER)
            ),
            "a connection with the new tool that knows the result",
            patience,
        )
        await server.caller_says("Thank you, goodbye.")
        await call.says("Goodbye.", patience)
        assert len(answers(server)) == 1
        assert call.spoken.count(ANSWER) == 1
        assert call.runs == 1
        for connection in server.connections:
            ids = [r.id for r in connection.tool_responses]
            assert len(ids) == len(set(ids)), f"told twice on connection {connection.number}"
        if not plain:
            assert call.realtime._pending_tool_result == ()
        if refusals and server.breaches:
            assert len(server.forgive("")) == 1


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", [pytest.param(c, marks=c.faults, id=str(c)) for c in CASES])
async def test_result_survives_update_tools_in_mid_turn(case: Case, profile: str) -> None:
    """The result is known, answered and heard once, and later turns have the new tools."""
    await survives(case, profile)


# these answer no call at all on Vertex AI, so that a failure there would prove nothing
PLAIN_PROFILES = PROFILES[:2] if PLUGIN in ("1.6.5", "1.7.1", "1.8.3") else PROFILES
PLAIN_CASES = [
    pytest.param(case, profile, marks=case.faults, id=f"{case}-{profile}")
    for case, profile in zip(CASES, itertools.cycle(PLAIN_PROFILES))
]


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason=f"livekit-plugins-google {PLUGIN}: livekit/agents #6479, #7153",
)
@pytest.mark.parametrize(("case", "profile"), PLAIN_CASES)
async def test_plain_plugin_fails_where_ours_survives(case: Case, profile: str) -> None:
    """The test bites: the google plugin itself does not survive the same conversation."""
    await survives(case, profile, plain=True)
