"""How does a result reach the model on this connection, and what if the model stays silent?

On the connection that issued the call: by a ``tool_response``, and nothing else. On a later one:
settle, then say. A connection that resumes with exchanges left open gets their responses first;
until it is known whether they had an effect, nothing else is written. What had none is put into
words, results of one batch together, while the model is idle.

So a model may be told a result that its handle covers: where the reply was cut, and a handle had
come after the response. Nothing that is read says that it covers it: Vertex AI was observed to
issue handles in mid-answer too, what one restores that crossed an open call was never seen, and
the index of the last message consumed comes in Vertex AI's transparent mode only. A result that is
told twice costs less than one that is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..options import ResilienceOptions
from . import wording
from .behaviour import Observed
from .delivery import Ledger
from .effects import Effect, Outcome, ReportError, ReportOutcome, SendContent, SendToolResponse
from .errors import ResultUnanswered
from .events import HistoryItem, ToolResult, Turn
from .history import History
from .prompts import Prompts
from .record import Record, Reply, Route
from .settings import Settings
from .speech import Speech
from .suspects import Kind, Suspects

_SPARED = 2
"""Closes with 1008 that a result is forgiven: one for each way of telling it but the last."""


class Telling:
    """Puts before the model what it is owed, and remembers since when nothing came back.

    Args:
        options: Times.
        ledger: What is owed.
        history: What the model knows of the conversation.
        prompts: Puts things into words.
        observed: What this server is known to do.
        speech: Told when something was put before the model.
        settings: What the setup declares.
        suspects: Told what was written.
    """

    def __init__(
        self,
        *,
        options: ResilienceOptions,
        ledger: Ledger,
        history: History,
        prompts: Prompts,
        observed: Observed,
        speech: Speech,
        settings: Settings,
        suspects: Suspects,
    ) -> None:
        self._options = options
        self._ledger = ledger
        self._history = history
        self._prompts = prompts
        self._observed = observed
        self._settled_late = False
        self._on_trial = False
        self._speech = speech
        self._settings = settings
        self._suspects = suspects
        self._last_sign = 0.0
        self._batch_until: float | None = None
        self._unproven: dict[str, Record] = {}
        self.settled_at = 0.0
        """When responses that settle are taken to have had no effect, in loop seconds."""
        self.instructions: str | None = None
        """A system instruction that is to be replaced in place."""
        self._replaced_by: str | None = None

    def sign(self, *, now: float) -> None:
        """The server showed life, or was asked for some."""
        self._last_sign = now

    def setup_built(self, *, as_accepted: bool) -> None:
        """The next setup carries the instructions, unless it is the one that was accepted last:
        then they are put in the place of its own, once more or for the first time."""
        self._replaced_by = self.instructions or self._replaced_by
        may = as_accepted and not self._suspects.guilty(Kind.INSTRUCTIONS)
        self.instructions = self._replaced_by if may else None

    def setup_accepted(self, *, as_accepted: bool) -> None:
        """The server answered it: only now is it sure that what it carries is in force."""
        if not as_accepted:
            self._replaced_by = None

    def frame_received(self, *, now: float) -> None:
        """The model or the caller did something after what was told: the server took that."""
        self._last_sign = now
        for record in self._unproven.values():
            record.refusals = 0
        self._unproven.clear()
        if self._on_trial:
            self._on_trial = False
            self._observed.saw_foreign_response(taken=True)

    def settling_refused(self) -> None:
        """The server closed the connection for responses to calls that it did not issue."""
        self._observed.saw_foreign_response(taken=False)
        self._unproven.clear()

    @property
    def may_be_refused(self) -> bool:
        """Whether the last thing written was a response that the record says is refused: a close
        says nothing about the words that went with it."""
        return self._on_trial

    def connection_lost(self, *, refused: bool, invalid: bool) -> bool:
        """The connection ended.

        What closed a connection straight away is not sent again by any route. Words are given a
        second chance, since it may be the way of saying them that was refused; and 1008 is no sure
        sign, since it also comes at random after a response (observed).

        Args:
            refused: By a code that refuses a frame.
            invalid: By the code that says that the bytes of one are invalid.

        Returns:
            Whether a result is to blame.
        """
        self._on_trial = False
        blamed = False
        for record in self._unproven.values():
            record.refusals += refused
            spared = int(record.route is Route.SAY) if invalid else _SPARED
            if record.result is not None and record.refusals > spared:
                record.result = wording.refused(record.result)
                blamed = True
        self._unproven.clear()
        return blamed

    # ------------------------------------------------------------ telling

    def settle(self, connection: int, *, now: float) -> list[Effect]:
        """Close the exchanges that a resumed connection may wait for; empty if there are none."""
        if not self._observed.behaviour.foreign_responses:
            return []
        responses = self._ledger.settle(connection, wording.still_running)
        if not responses:
            return []
        self.settled_at = now + self._options.settle_grace
        self._told(responses, now)
        return [SendToolResponse(results=responses)]

    def settled_in_vain(self) -> None:
        """The server ended a turn without a word, or speaks of something else: there is nothing
        left to wait for."""
        self.settled_at = self._last_sign

    def respond(self, connection: int, *, withhold: frozenset[str], now: float) -> list[Effect]:
        """Answer what this connection asked for; see ``Ledger.tell_by_response``."""
        results = self._ledger.tell_by_response(
            connection, wording.still_running, withhold=withhold
        )
        if not results:
            return []
        self._last_sign = now
        # that a tool is still running tells nothing
        told = [r for r in results if not self._is_released(r.call_id)]
        if told:
            self._told(told, now)
        return [SendToolResponse(results=results)]

    def _is_released(self, call_id: str) -> bool:
        record = self._ledger.get(call_id)
        return record is not None and record.result is None

    def _missing(
        self, items: tuple[HistoryItem, ...], quiet: Sequence[Record], now: float
    ) -> tuple[Turn, ...]:
        """What this connection does not know; once this was called, it is told.

        Args:
            items: The chat context.
            quiet: Results that are owed and want no reply: told in the order of the context, or
                after it.
            now: In loop seconds.
        """
        told = tuple(map(self._as_told, items))
        skip = self._ledger.untold - {r.call.call_id for r in quiet}
        skip |= self._suspects.guilty(Kind.MESSAGE)
        bare = self._suspects.guilty(Kind.PICTURES)
        turns, ids = self._history.missing(told, skip=skip, bare=bare)
        self._history.sent(ids)
        pictures = (i for i, t in zip(ids, turns, strict=True) if t.has_pictures)
        self._suspects.wrote(Kind.PICTURES, *pictures, now=now)
        self._suspects.wrote(Kind.MESSAGE, *ids, now=now)
        others = (r for r in quiet if r.call.call_id not in ids)
        notes = [wording.exchange(r.call, r.result) for r in others if r.result is not None]
        return (*turns, *(Turn(role="user", parts=(note,)) for note in notes))

    def _as_told(self, item: HistoryItem) -> HistoryItem:
        """An output as the model was given it, which is not always as the tool gave it."""
        record = self._ledger.get(item.result.call_id) if item.result is not None else None
        return item if record is None else replace(item, result=record.result)

    def gather(
        self, connection: int, items: tuple[HistoryItem, ...], *, speaks: bool, now: float
    ) -> tuple[list[Effect], tuple[Turn, ...], Sequence[Record]]:
        """What the model does not know; once this was called, it is told.

        Args:
            connection: The present connection.
            items: The chat context.
            speaks: The model is asked to speak in any case.
            now: In loop seconds.

        Returns:
            What goes out first, the turns that tell the rest, and the results that want a reply.
        """
        effects: list[Effect] = []
        if self.instructions is not None:
            system = Turn(role="system", parts=(wording.clean(self.instructions),))
            effects.append(SendContent(turns=(system,), turn_complete=False))
            self.instructions, self._replaced_by = None, self.instructions
            self._suspects.wrote(Kind.INSTRUCTIONS, "", now=now)
        records = self._to_say(connection, now)
        due = [r for r in records if r.reply is Reply.DUE]
        if not (self._prompts.can_inform or due or speaks):
            # it waits for the next words that ask the model to speak, and goes out with them
            return effects, (), ()
        turns = self._missing(items, [r for r in records if r.reply is not Reply.DUE], now)
        self._ledger.said(records, connection)
        if records:
            self._told([r.result for r in records if r.result is not None], now)
        elif speaks:
            self._last_sign = now
        return effects, turns, due

    def _to_say(self, connection: int, now: float) -> tuple[Record, ...]:
        """Results to put into words: those of one batch together, but not without end."""
        records = self._ledger.to_say(connection)
        whole = tuple(
            r for r in records if self._ledger.is_whole(r) or not self._settings.tools_block
        )
        if self._batch_until is None:
            self._batch_until = now + self._options.reply_timeout
        if len(whole) < len(records) and now < self._batch_until:
            return whole
        self._batch_until = None
        return records

    def _told(self, results: Iterable[ToolResult], now: float) -> None:
        self._speech.told()
        self._last_sign = now
        told = (self._ledger.get(result.call_id) for result in results)
        self._unproven |= {r.call.call_id: r for r in told if r is not None}

    # ------------------------------------------------------------ what does not come

    @property
    def batch_deadline(self) -> float | None:
        """When a result no longer waits for the others of its batch."""
        return self._batch_until

    @property
    def reply_deadline(self) -> float | None:
        """When a model that was told a result and does not begin to speak is asked again."""
        silent = any(r.is_silent for r in self._ledger)
        return self._last_sign + self._options.reply_timeout if silent else None

    def ask_again(self, connection: int, *, now: float) -> list[Effect]:
        """Ask a silent model once more; the second time give up and say so."""
        records = self._ledger.ask_again()
        if records:
            self._told([r.result for r in records if r.result is not None], now)
            return [*self._settle_late(connection), *self._prompts.remind(records)]
        lost = self._ledger.give_up()
        if not lost:
            return []
        self._history.sent(lost)
        new = filter(self._ledger.conclude, lost)
        outcomes = [ReportOutcome(call_id=i, outcome=Outcome.UNANSWERED) for i in new]
        error = ResultUnanswered(lost, self._options.reply_timeout)
        return [*outcomes, ReportError(error=error, recoverable=True)]

    def _settle_late(self, connection: int) -> list[Effect]:
        """Close what was left open after all: the record that says not to may be wrong."""
        if self._observed.behaviour.foreign_responses or self._settled_late:
            return []
        responses = self._ledger.settle_late(connection)
        if not responses:
            return []
        self._settled_late = self._on_trial = True
        return [SendToolResponse(results=responses)]
