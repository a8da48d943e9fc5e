"""One call in the demo, from the greeting to the last words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from ..testing import Call, Gate, GeminiLiveServer, Say
from .faults import Fault, Moment
from .line import WEATHER, Line, open_line
from .scribe import Row, Scribe
from .verdict import FAREWELL, Verdict, judge

_SCENE = 0.3
"""Seconds for which a tool works, or a model speaks on, after the fault."""

_QUIET = 0.8
"""Seconds after the answer in which a second one would show: longer than ``settle_grace``."""

_SENTENCE = 2.0
"""Seconds of speech in which the result is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A call that is over."""

    rows: list[Row]
    """What happened, in order."""
    verdict: Verdict
    """What became of the result."""


async def play(
    model_type: type[PluginModel],
    fault: Fault,
    *,
    profile: str,
    patience: float,
    start: float,
) -> Played:
    """Lead a call through a fault.

    Args:
        model_type: The realtime model that the agent uses.
        fault: What happens to it.
        profile: How the simulator behaves.
        patience: Seconds for which an answer, or a new connection, is waited for.
        start: Loop time that counts as zero.
    """
    gate = Gate() if fault.moment is Moment.DURING_ANSWER else None
    script = [
        Say("Hello, how can I help?"),
        Call("get_weather", {"city": "London"}),
        Say("It is foggy in London.", audio_seconds=_SENTENCE, gate=gate, gate_after=20),
        Say("Goodbye."),
    ]
    async with GeminiLiveServer(script, profile=profile, strict=False) as server:
        scribe = Scribe(server, start)
        await _Play(server, scribe, fault, gate, patience).lead(model_type)
        return Played(
            rows=scribe.rows, verdict=judge(server, adds_tool=fault.adds_tool, patience=patience)
        )


class _Play:
    def __init__(
        self,
        server: GeminiLiveServer,
        scribe: Scribe,
        fault: Fault,
        gate: Gate | None,
        patience: float,
    ) -> None:
        self._server = server
        self._scribe = scribe
        self._fault = fault
        self._gate = gate
        self._patience = patience
        self._tool_may_return = asyncio.Event()

    async def lead(self, model_type: type[PluginModel]) -> None:
        self._scribe.begin("the caller is greeted")
        async with (
            open_line(
                self._server,
                model_type,
                in_tool=self._work,
                on_error=lambda text: self._scribe.write("error", text),
            ) as line,
            self._scribe.watching(),
        ):
            await self._say("Hello?")
            await self._comes(self._server.replied(1, self._patience), "reply")
            self._scribe.begin("the caller asks, and a tool is called")
            await self._say("What is the weather in London?")
            await self._comes(asyncio.wait_for(line.tool_running.wait(), self._patience), "call")
            if await self._strike_from_outside(line):
                await self._answer()
            await self._later_turn()

    async def _work(self, line: Line) -> None:
        """What the tool does before it returns."""
        self._scribe.write("tool", "runs")
        if self._fault.moment is Moment.BY_TOOL:
            await self._strike(line)
            await asyncio.sleep(_SCENE)
            self._scribe.begin("the tool returns")
        elif self._fault.moment is Moment.DURING_TOOL:
            await self._tool_may_return.wait()
        self._scribe.write("tool", f'returns "{WEATHER}"')

    async def _strike_from_outside(self, line: Line) -> bool:
        """Let the fault strike when it is time; whether the call came so far."""
        if self._gate is not None:
            spoke = await self._comes(self._gate.reached(self._patience), "reply")
            if spoke:
                await self._strike(line)
                await asyncio.sleep(_SCENE)
                self._scribe.begin("the model goes on")
            self._gate.open()
            return spoke
        if self._fault.moment is Moment.DURING_TOOL:
            await self._strike(line)
            await asyncio.sleep(_SCENE)
            self._scribe.begin("the tool returns")
            self._tool_may_return.set()
        return True

    async def _strike(self, line: Line) -> None:
        self._scribe.begin(self._fault.summary)
        self._scribe.write("fault", self._fault.label)
        await self._fault.strike(line)

    async def _answer(self) -> None:
        answered = self._server.until(
            lambda: any(r.completed and r.knew(WEATHER) for r in self._server.replies),
            "an answer that knows the result",
            self._patience,
        )
        if await self._comes(answered, "reply"):
            await asyncio.sleep(_QUIET)

    async def _later_turn(self) -> None:
        self._scribe.begin("the caller speaks again")
        replaced = self._server.until(
            lambda: self._server.current and self._server.current.number > 1,
            "the connection that takes the place of the first",
            self._patience,
        )
        await self._comes(replaced, "restart")
        if self._server.current is None:
            return
        await self._say(FAREWELL)
        answered = self._server.until(
            lambda: any(r.completed and r.knew(FAREWELL) for r in self._server.replies),
            "an answer to the caller's last words",
            self._patience,
        )
        await self._comes(answered, "reply")

    async def _comes(self, waiting: Awaitable[object], kind: str) -> bool:
        """Whether what is waited for comes; a row says if it does not."""
        try:
            await waiting
        except (AssertionError, asyncio.TimeoutError):
            self._scribe.write(kind, f"none within {self._patience:g} s")
            return False
        return True

    async def _say(self, words: str) -> None:
        self._scribe.write("caller", f'"{words}"')
        await self._server.caller_says(words)
