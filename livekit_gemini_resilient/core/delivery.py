"""The delivery ledger: which result does the model have, and is a reply to it still due?

Theory of operation
===================

There is one record per call, with two facts that are tracked apart, because they come apart: a
model may know a result and never speak about it, or be cut while it does.

``known``, does the model have the result::

    NO ──told on connection n──▶ TOLD ──a generation that began after it completed on n──▶ KNOWN
    ▲                             │
    └──── n ends first ───────────┘

Whether a handle covers what is known is one question for results and messages alike; it is
answered in ``history``.

``reply``, is the caller still owed words about it::

    NONE (none wanted)      DUE ──such a generation begins──▶ STARTED ──it completes──▶ DONE
                             ▲                                   │
                             └── cut by anything but the caller ─┘

Rules that will not fit the two tables:

* A ``tool_response`` with a call's id is written at most once per connection. The connection that
  issued the call gets the result that way and no other. A later connection gets it as words (the
  *say*), since servers were observed to ignore or to swallow a response to a call that they did
  not issue; where it was resumed it first gets a response that *settles* the dead exchange.
* What proves that a result arrived, and what does not, stands in ``evidence``.
* A result of a call that was never issued here is owed if it arrives alone; see ``intake``.
* A call that is not answered in time is answered with "still running", so that a blocking model is
  not mute for good; its result, if it comes, is put into words.
* A call that is issued again, since a snapshot forgot it, is answered from the first run.
* Calls without ids are told apart by name and order alone: their responses keep the order.
* A cancelled call gets no response. If its tool completed all the same, the model is told what
  was done, without being asked for a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from .effects import Outcome
from .events import ToolCall, ToolResult
from .record import Known, Record, Reply, Route


class Ledger:
    """All calls of a conversation. Every method is total: an unknown id is never an error."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._asked_as: dict[str, Record] = {}

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def get(self, call_id: str) -> Record | None:
        """The record of a call, also by an id under which it was issued again."""
        return self._records.get(call_id) or self._asked_as.get(call_id)

    # ------------------------------------------------------------ what happens to a call

    def rejoin(self, call: ToolCall, connection: int, *, new_input: bool) -> bool:
        """Whether a call is an earlier one, delivered or issued again; its tool runs once.

        A connection that was resumed from an older snapshot, or is fresh, does not know what was
        asked before it; a call that it issues by itself (``new_input`` is false), with the name
        and the arguments of one whose result it was not told, is that call. So is one with an id
        that is known.
        """
        known = self.get(call.call_id)
        if known is not None and known.issued_on == connection:
            return True
        record = known or (None if new_input else self._forgotten(call, connection))
        if record is None:
            return False
        self._asked_as[call.call_id] = record
        record.issued_again(call.call_id, connection)
        return True

    def _forgotten(self, call: ToolCall, connection: int) -> Record | None:
        for record in self:
            elsewhere = record.issued_on not in (0, connection)
            failed = record.result is not None and record.result.is_error
            same = (record.call.name, record.call.arguments) == (call.name, call.arguments)
            # a server that was settled and makes the call again took no notice of that
            settled = record.route is Route.SETTLE and record.reply is not Reply.STARTED
            told = record.known is not Known.NO and not (record.known is Known.TOLD and settled)
            if elsewhere and same and not told and not failed and not record.cancelled:
                return record
        return None

    def in_order(self, calls: Iterable[ToolCall]) -> None:
        """Note the order in which the server waits for answers: its own, not that of the runs."""
        for record in map(self.get, [call.call_id for call in calls]):
            if record is not None:
                self._records[record.call.call_id] = self._records.pop(record.call.call_id)

    def issue(self, call: ToolCall, connection: int) -> bool:
        """Note a call of the server; ``False`` if that id is known already (a duplicate)."""
        if call.call_id in self._records:
            return False
        self._records[call.call_id] = Record(call=call, issued_on=connection)
        return True

    def produce(self, result: ToolResult, call: ToolCall | None = None) -> Outcome | None:
        """Note a result; ``DUPLICATE`` if its call has one already, else ``None``.

        Args:
            result: What the tool answered.
            call: The call, as far as it is known; for one that was not issued here.
        """
        record = self._records.get(result.call_id)
        if record is None:
            call = call or ToolCall(call_id=result.call_id, name=result.name, arguments="")
            record = self._records[result.call_id] = Record(call=call, issued_on=0)
        if record.result is not None:
            return Outcome.DUPLICATE
        # an output may come without a name, and a response must have the name of its call
        record.result = replace(result, name=record.call.name)
        if result.reply_required and not record.cancelled:
            record.reply = Reply.DUE
        return None

    def cancel(self, call_ids: Iterable[str]) -> None:
        """Note that the server wants no answer to these calls any more.

        A response that crossed the cancellation was ignored, so its result is untold.
        """
        for call_id in call_ids:
            record = self.get(call_id)
            if record is None or record.known is Known.KNOWN or record.reply is Reply.STARTED:
                continue
            if record.known is Known.TOLD and record.route is not Route.RESPONSE:
                continue
            record.known = Known.NO
            record.cancelled = True
            record.reply = Reply.NONE

    def unnamed(self, connection: int) -> tuple[str, ...]:
        """Ids of the calls that a cancellation without ids is about.

        Those that this connection waits for; if there are none, those whose responses crossed it.
        """
        issued = [r for r in self if r.issued_on == connection and not r.call.has_id]
        waiting = [r for r in issued if r.waits_on(connection)]
        return tuple(r.call.call_id for r in waiting or issued)

    def watch(self, *, now: float, timeout: float | None) -> None:
        """Give every running tool its deadline; ``None`` gives none."""
        for record in self:
            if timeout is not None and record.running and record.answer_by is None:
                record.answer_by = now + timeout

    def expire(self, *, now: float) -> None:
        """Stop waiting for tools whose deadline has passed."""
        for record in self:
            late = record.answer_by is not None and now >= record.answer_by
            record.released |= record.running and late

    def release(self, connection: int) -> bool:
        """Stop waiting for every tool that runs; whether this connection waits for one of them."""
        running = [record for record in self if record.running]
        for record in running:
            record.released = True
        return any(record.waits_on(connection) for record in running)

    # ------------------------------------------------------------ telling

    def responded_on(self, connection: int) -> tuple[str, ...]:
        """Ids of the calls of which this connection got a response."""
        return tuple(r.call.call_id for r in self if connection in r.responded_on)

    def owed_to(self, connection: int) -> frozenset[str]:
        """Ids of the calls of this connection whose results it has not been told."""
        return frozenset(r.call.call_id for r in self if r.waits_on(connection) and r.owed)

    def tell_by_response(
        self,
        connection: int,
        still_running: Callable[[ToolCall], ToolResult],
        *,
        withhold: frozenset[str] = frozenset(),
    ) -> tuple[ToolResult, ...]:
        """What to write as responses to the connection that issued their calls, once.

        Args:
            connection: That connection.
            still_running: Makes the answer for a tool that is not waited for any more.
            withhold: Ids of calls whose results are for the next connection.
        """
        told: list[ToolResult] = []
        unfinished: set[str] = set()
        for record in [r for r in self if r.waits_on(connection)]:
            # calls without ids are answered in their order, or the server would mix them up
            in_order = record.call.has_id or record.call.name not in unfinished
            if in_order and record.owed and record.call.call_id not in withhold:
                told.append(self._tell(record, connection, Route.RESPONSE))
            elif in_order and record.released:
                record.responded_on.add(connection)
                told.append(still_running(record.call_as_asked))
            else:
                unfinished.add(record.call.name)
        return tuple(told)

    def settle(
        self, connection: int, still_running: Callable[[ToolCall], ToolResult]
    ) -> tuple[ToolResult, ...]:
        """Responses that close the exchanges which a resumed connection may still wait for.

        Args:
            connection: The resumed connection.
            still_running: Makes the answer for a tool that has not finished.
        """
        sent: list[ToolResult] = []
        for record in self:
            if record.cancelled or record.known is not Known.NO or record.issued_on == 0:
                continue
            over = record.is_closed and (record.result is None or record.unheard)
            if connection in record.responded_on or over:
                continue
            if record.result is None:
                record.responded_on.add(connection)
                sent.append(still_running(record.call_as_asked))
            else:
                sent.append(self._tell(record, connection, Route.SETTLE))
        return tuple(sent)

    def settle_late(self, connection: int) -> tuple[ToolResult, ...]:
        """Responses for results that this connection was told in words, and that may be swallowed
        since it waits for the response of a call that it did not issue."""
        sent: list[ToolResult] = []
        for record in self:
            foreign = record.issued_on not in (0, connection) and not record.unheard
            if record.is_silent and foreign and record.result is not None:
                record.responded_on.add(connection)
                sent.append(replace(record.result, call_id=record.asked_as))
        return tuple(sent)

    def to_say(self, connection: int) -> tuple[Record, ...]:
        """Records whose results this connection can only be told in words."""
        return tuple(r for r in self if r.owed and not r.waits_on(connection))

    def is_whole(self, record: Record) -> bool:
        """Whether every tool has finished that was asked for on the same connection.

        A blocking server issues no call while one is open, so those calls are one batch, and it
        would have spoken about none of them before it had all results.
        """
        return all(not sibling.running for sibling in self if sibling.issued_on == record.issued_on)

    def said(self, records: Iterable[Record], connection: int) -> None:
        """Note that these results were put into words for this connection."""
        for record in records:
            self._tell(record, connection, Route.SAY)

    def ask_again(self) -> tuple[Record, ...]:
        """Records to put before the model once more; each is named here once in its life."""
        again = tuple(r for r in self if r.is_silent and not r.asked_again)
        for record in again:
            record.asked_again = True
        return again

    def give_up(self) -> tuple[str, ...]:
        """Ids of results that stayed without a reply although the model was asked twice."""
        lost = [r for r in self if r.is_silent and r.asked_again]
        for record in lost:
            record.reply = Reply.DONE
            record.known = Known.KNOWN
        return tuple(r.call.call_id for r in lost)

    def conclude(self, call_id: str) -> bool:
        """Note that an outcome of a result is reported; ``False`` if one was before: a result that
        is told again to a server that makes its call again has the outcome of the first time."""
        record = self.get(call_id)
        if record is None or record.has_outcome:
            return False
        record.has_outcome = True
        return True

    def _tell(self, record: Record, connection: int, route: Route) -> ToolResult:
        assert record.result is not None
        record.known, record.told_on, record.route = Known.TOLD, connection, route
        if route is not Route.SAY:
            record.responded_on.add(connection)
        return replace(record.result, call_id=record.asked_as)

    # ------------------------------------------------------------ questions

    @property
    def pending(self) -> tuple[ToolResult, ...]:
        """Results that the model is owed and has not been told, oldest first."""
        return tuple(r.result for r in self if r.owed and r.result is not None)

    @property
    def due_replies(self) -> tuple[tuple[ToolCall, ToolResult], ...]:
        """Results, with their calls, to which the caller has not heard a reply.

        An empty result is nothing to speak about: LiveKit 1.6.5 does not mark the one of a tool
        that returned nothing but the next agent.
        """
        due = (r for r in self if r.reply in (Reply.DUE, Reply.STARTED))
        return tuple((r.call, r.result) for r in due if r.result and r.result.output.strip())

    @property
    def unheard(self) -> bool:
        """Whether a reply found nobody who took it, and is due once more."""
        return any(r.owed and r.unheard for r in self)

    @property
    def undelivered(self) -> tuple[str, ...]:
        """Ids of calls whose results the model was not seen to know."""
        return tuple(
            r.call.call_id for r in self if r.result is not None and r.known is not Known.KNOWN
        )

    @property
    def running(self) -> bool:
        """Whether a tool is running, on whatever connection it was asked for."""
        return any(r.running for r in self)

    def runs(self, call_id: str) -> bool:
        """Whether that tool is running."""
        record = self._records.get(call_id)
        return record is not None and record.running

    @property
    def next_deadline(self) -> float | None:
        """When the first running tool is no longer waited for."""
        return min(
            (r.answer_by for r in self if r.running and r.answer_by is not None), default=None
        )

    def open_on(self, connection: int) -> bool:
        """Whether this connection waits for an answer to a call that it issued."""
        return any(r.waits_on(connection) for r in self)

    @property
    def reply_due(self) -> bool:
        """Whether the model was told a result and has not finished speaking about it."""
        return any(r.waits_for_reply for r in self)

    @property
    def untold(self) -> frozenset[str]:
        """Ids of calls whose exchange is not history yet: open, owed, or told without a sign."""
        return frozenset(r.call.call_id for r in self if r.known is not Known.KNOWN)
