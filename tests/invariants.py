"""What holds at the end of every test with a session of ours, whatever the test is about.

``on_call`` and ``connected`` check it when their block ends without an error. What the simulator
can judge by itself (breaches, steps that were not played, a second response to one call) it judges
in ``GeminiLiveServer.verify``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from livekit.agents import llm

from livekit_gemini_resilient import Outcome, RealtimeModel, ReportOutcome
from livekit_gemini_resilient.testing import GeminiLiveServer, Reply

LOST = frozenset({Outcome.UNDELIVERED, Outcome.UNANSWERED})
"""Outcomes that no result ends in unless the test says so."""

_TICKS = 10
"""Of the loop, in which what was cancelled and the transports that were aborted come to an end; how
many that takes depends on the Python."""

Excuses = Mapping[str, str]
"""By function: why its results may be lost in this test."""


class _Watched:
    """One session: the results that it was handed, and what became of them."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.handed: dict[str, llm.FunctionCallOutput] = {}
        self.settled: list[ReportOutcome] = []
        self.something_settled = asyncio.Event()
        session.on("tool_result_settled", self._settle)
        hand_over = session.update_chat_ctx

        async def update_chat_ctx(chat_ctx: llm.ChatContext) -> None:
            outputs = (i for i in chat_ctx.items if i.type == "function_call_output")
            self.handed.update({output.id: output for output in outputs})
            await hand_over(chat_ctx)

        session.update_chat_ctx = update_chat_ctx

    def _settle(self, report: ReportOutcome) -> None:
        self.settled.append(report)
        self.something_settled.set()

    def pending(self, excused: Excuses) -> set[str]:
        """Ids of calls whose results have not ended in anything."""
        handed = Counter(o.call_id for o in self.handed.values() if o.name not in excused)
        return set(handed - Counter(report.call_id for report in self.settled))

    async def settles(self, excused: Excuses) -> None:
        """Wait until every result has ended in something."""
        while self.pending(excused):
            self.something_settled.clear()
            await self.something_settled.wait()

    def faults(self, excused: Excuses) -> Iterable[str]:
        """What is wrong with a session that was closed."""
        handed = Counter(output.call_id for output in self.handed.values())
        settled = Counter(report.call_id for report in self.settled)
        for call_id in handed | settled:
            # a call that tool_choice forbids is answered by the session itself
            if settled[call_id] != (handed[call_id] or 1):
                yield f"{handed[call_id]} results of {call_id}, {settled[call_id]} outcomes"
        names = {output.call_id: output.name for output in self.handed.values()}
        for report in self.settled:
            name = names.get(report.call_id, report.call_id)
            if report.outcome in LOST and name not in excused:
                yield f"the result of {name} ended as {report.outcome.value}"
        if self.session._feed.is_armed:
            yield "a timer is armed"
        if self.session._stage._open:
            yield "a generation is open"


class Watch:
    """Every session of a model, from its first to its last moment.

    Args:
        model: The model, before it has made a session. That of the google plugin is not watched.
    """

    def __init__(self, model: Any) -> None:
        self._before = asyncio.all_tasks()
        self._sessions: list[_Watched] = []
        if not isinstance(model, RealtimeModel):
            return
        make = model.session

        def session(**options: Any) -> Any:
            made = make(**options)
            self._sessions.append(_Watched(made))
            return made

        model.session = session  # type: ignore[method-assign]

    async def nothing_pends(self, excused: Excuses) -> None:
        """Before the end: every result that a session was handed ends in something by itself.

        Raises:
            AssertionError: One has not within 10 s.
        """
        for watched in self._sessions:
            try:
                await asyncio.wait_for(watched.settles(excused), 10)
            except asyncio.TimeoutError:
                pending = sorted(watched.pending(excused))
                raise AssertionError(f"no outcome of {pending} within 10 s") from None
            pending = [r.name for r in watched.session._pending_tool_result]
            if set(pending) - set(excused):
                raise AssertionError(f"pending although all have an outcome: {pending}")

    async def all_is_over(
        self, server: GeminiLiveServer, excused: Excuses, unheard: int = 0
    ) -> None:
        """After the end: each result has one outcome and at most one reply, and nothing is left.

        Args:
            server: What the sessions talked to.
            excused: Whose results may have been lost.
            unheard: Replies to one result that LiveKit let pass by, and that were asked for again.

        Raises:
            AssertionError: Names every fault.
        """
        for _ in range(_TICKS):
            await asyncio.sleep(0)
        faults = [fault for watched in self._sessions for fault in watched.faults(excused)]
        if self._sessions:
            left = asyncio.all_tasks() - self._before
            faults += [f"a task is left: {task.get_name()}" for task in left if not task.done()]
        outputs = {o.id: o for watched in self._sessions for o in watched.handed.values()}
        faults += answered_twice(
            server, [output.output for output in outputs.values()], unheard=unheard
        )
        if faults:
            raise AssertionError("\n".join(["at the end of the test:", *faults]))


def answered_twice(
    server: GeminiLiveServer, results: list[str], *, unheard: int = 0
) -> Iterable[str]:
    """Results that more completed replies were asked for than there were calls with it."""
    asked = [text for reply in server.replies if reply.completed for text in _asked(server, reply)]
    for result, calls in Counter(results).items():
        # one that is a part of another cannot be told from it
        if not result or any(result in other for other in results if other != result):
            continue
        replies = sum(result in text for text in asked)
        if replies > calls + unheard:
            yield f"{replies} completed replies to {result!r:.60}"


def _asked(server: GeminiLiveServer, reply: Reply) -> Iterable[str]:
    """What was put before the model to be spoken about, since it spoke last on the connection."""
    earlier = [r for r in server.replies if r.connection == reply.connection]
    before = earlier[: earlier.index(reply)]
    known = server.connections[reply.connection - 1].restored
    news = reply.context[len(before[-1].context) if before else known :]
    if reply.trigger == "tool_response":
        yield from (entry.text for entry in news if entry.kind == "result")
    elif reply.trigger in ("client_content", "realtime_text"):
        yield from [entry.text for entry in news if entry.kind == "user"][-1:]
