"""The ties between the parts of the core: one ``receive``, one ``next_deadline``.

After every event the same questions are asked in the same order (``_pump``): is the connection to
be replaced? is a result to be answered on the connection that asked for it? is the model to be
told something in words? is a reply to be asked for? may the caller's audio flow? So the order in
which things are written does not depend on the order in which they happened.

A connection that resumes with exchanges left open is *settled* first: their responses go out, all
other input is held, and what had no effect is said in words afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum

from ..options import ResilienceOptions
from . import recovery, wording
from .behaviour import Behaviour, Trigger
from .delivery import Ledger, Reply, Route
from .effects import (
    CloseConnection,
    Dial,
    Effect,
    FailReply,
    Outcome,
    ReportError,
    ReportOutcome,
    ReportReconnected,
    ReportUsage,
    SendContent,
    SendInput,
    SendText,
    SendToolResponse,
)
from .errors import ConnectionFailed, ReplyRefused, ResultUnanswered
from .events import (
    Connected,
    ConnectionLost,
    ContextUpdated,
    Event,
    HistoryItem,
    InputPushed,
    InstructionsChanged,
    ReplyRequested,
    ReplyWithdrawn,
    RestartRequested,
    ServerFrame,
    SetupBuilt,
    ToolResult,
    Turn,
)
from .history import History
from .requests import Requests
from .rotation import RestartWhen, Rotation, Situation
from .speech import Speech
from .turn import Report, Started, TurnEnded, TurnState, TurnTracker
from .uplink import Uplink


class Link(Enum):
    """Where the connection of a conversation stands."""

    DOWN = "down"
    """Not started."""
    DIALING = "dialing"
    """Waiting to dial, or dialing."""
    SETTLING = "settling"
    """Resumed; the exchanges left open are being closed."""
    OPEN = "open"
    """Anything may be written."""
    CLOSING = "closing"
    """Being replaced on purpose."""
    ENDED = "ended"
    """Given up."""


class Conversation:
    """One LiveKit session, over as many connections as it takes.

    Args:
        options: Times and limits.
        new_id: Makes an id from a prefix.
        random: Makes a number from 0 to 1, for the jitter of the back-off.
        handle: A resumption handle to begin with.
        max_retry: How many dials may follow a failed one before the conversation is given up.
        retry_interval: Seconds between them.
        tools_block: Whether the setup declares that the model waits for tool results.
        behaviour: What this server is known to do.
    """

    def __init__(
        self,
        options: ResilienceOptions,
        *,
        new_id: Callable[[str], str],
        random: Callable[[], float],
        handle: str | None = None,
        max_retry: int = 3,
        retry_interval: float = 2.0,
        tools_block: bool = True,
        behaviour: Behaviour | None = None,
    ) -> None:
        self.link = Link.DOWN
        self.handle = handle
        self.ledger = Ledger()
        self.history = History()
        self.behaviour = behaviour or Behaviour()
        self.uplink = Uplink(max_seconds=options.input_buffer)
        self.turn = TurnTracker(
            trailing_quiet=options.trailing_quiet, transcript_grace=options.transcript_grace
        )
        self._options = options
        self._random = random
        self._max_retry = max_retry
        self._retry_interval = retry_interval
        self._tools_block = tools_block
        self._rotation = Rotation(
            when=RestartWhen(options.restart_when),
            max_defer=options.max_defer,
            margin=options.go_away_margin,
        )
        self._requests = Requests()
        self._speech = Speech(
            ledger=self.ledger,
            history=self.history,
            requests=self._requests,
            new_id=new_id,
            tools_block=tools_block,
        )
        self._out: list[Effect] = []
        self._items: tuple[HistoryItem, ...] = ()
        self._had_context = False
        self._seen: set[str] = set()
        self._instructions: str | None = None
        self._connection = 0
        self._resumed = False
        self._opened_at: float | None = None
        self._ever_opened = False
        self._attempts = 0
        self._last_sign = 0.0
        self._settled_at = 0.0
        self._caller_turn_open = False
        self._written_text: list[str] = []
        self._echo = ""
        self._last_trigger: Trigger | None = None

    # ------------------------------------------------------------ the surface

    def start(self, *, now: float) -> list[Effect]:
        """Begin: the first dial."""
        if self.link is Link.DOWN:
            self._dial(delay=0.0)
        return self._take()

    def receive(self, event: Event, *, now: float) -> list[Effect]:
        """Something happened."""
        self._dispatch(event, now)
        self._pump(now)
        return self._take()

    def advance(self, *, now: float) -> list[Effect]:
        """A deadline may have passed."""
        self._show(self.turn.advance(now=now))
        self._out += self._requests.advance(now=now)
        if self._reply_deadline is not None and now >= self._reply_deadline:
            self._ask_again(now)
        self._pump(now)
        return self._take()

    @property
    def next_deadline(self) -> float | None:
        """When ``advance`` has to be called, in loop seconds; ``None`` if nothing waits."""
        deadlines = [self.turn.next_deadline, self._requests.next_deadline, self._reply_deadline]
        if self.link is Link.SETTLING:
            deadlines.append(self._settled_at)
        if self.link in (Link.OPEN, Link.SETTLING):
            deadlines.append(self._rotation.next_deadline(self._situation))
        return min((d for d in deadlines if d is not None), default=None)

    @property
    def pending_results(self) -> tuple[ToolResult, ...]:
        """Results that wait for a connection, or were told and not seen to arrive."""
        return self.ledger.pending

    @property
    def generation_completed(self) -> bool:
        """Whether the model has said all that it has to say for now."""
        return self.turn.state is TurnState.GENERATION_COMPLETED or self.turn.generation is None

    # ------------------------------------------------------------ events

    def _dispatch(self, event: Event, now: float) -> None:
        match event:
            case ServerFrame():
                self._frame(event, now)
            case SetupBuilt():
                self._rotation.connection_ended()
                self._instructions = None
            case Connected():
                self._connected(event, now)
            case ConnectionLost():
                self._lost(event, now)
            case ContextUpdated(items=items):
                self._context(items)
            case RestartRequested(cause=cause):
                self._rotation.request(cause, call_open=self.ledger.running, now=now)
            case InstructionsChanged(text=text):
                self._instructions = text
            case ReplyRequested():
                self._reply_requested(event, now)
            case ReplyWithdrawn(request=request):
                self._requests.withdraw(request)
            case InputPushed():
                self.uplink.push(event)

    def _frame(self, frame: ServerFrame, now: float) -> None:
        if frame.connection != self._connection or self.link not in (Link.OPEN, Link.SETTLING):
            return
        self._last_sign = now
        self._last_trigger = None
        if frame.calls_refused is not None:
            self._refuse_calls(frame)
            frame = replace(frame, calls=())
        if frame.user_words and self._is_echo(frame.user_words):
            frame = replace(frame, user_words="")
        self._show(self.turn.receive(frame, now=now))
        self.ledger.cancel(frame.cancelled)
        if frame.handle is not None:
            self.handle = frame.handle
            self.history.handle_received()
        if frame.time_left is not None:
            self._rotation.go_away(frame.time_left, now=now)
        if frame.usage is not None and self._speech.last_generation is not None:
            self._out.append(
                ReportUsage(generation=self._speech.last_generation, usage=frame.usage)
            )

    def _is_echo(self, words: str) -> bool:
        """Whether the server repeats realtime text of ours as if the caller had said it."""
        self._echo += words
        if wording.is_echo(self._echo, self._written_text):
            return True
        self._echo = ""
        return False

    def _show(self, reports: Iterable[Report]) -> None:
        seen = list(reports)
        self._out += self._speech.show(seen, connection=self._connection)
        for report in seen:
            if isinstance(report, Started):
                self._caller_turn_open = False
                self._echo = ""
                if self.link is Link.SETTLING:
                    # the settled response is being answered: that is the reply
                    self.link = Link.OPEN
            elif isinstance(report, TurnEnded):
                self._attempts = 0 if not report.empty else self._attempts
                if self.link is Link.SETTLING and report.empty:
                    self._settled_at = self._last_sign

    def _refuse_calls(self, frame: ServerFrame) -> None:
        for call in frame.calls:
            if self.ledger.issue(call, self._connection):
                self.ledger.produce(
                    ToolResult(
                        call_id=call.call_id,
                        name=call.name,
                        output=frame.calls_refused or "",
                        is_error=True,
                    )
                )

    def _context(self, items: tuple[HistoryItem, ...]) -> None:
        first, self._had_context = not self._had_context, True
        new = [item for item in items if item.item_id not in self._seen]
        arriving = {item.call.call_id for item in new if item.call is not None}
        self._seen.update(item.item_id for item in new)
        self._items = items
        for item in new:
            if item.result is None:
                continue
            record = self.ledger.get(item.result.call_id)
            issued_here = record is not None
            alone = not first and item.result.call_id not in arriving
            if issued_here or alone:
                self._result(item.result)
            else:
                self._outcome(item.result.call_id, Outcome.HISTORY)

    def _result(self, result: ToolResult) -> None:
        fitting = wording.fitting(result, max_bytes=self._options.max_result_bytes)
        outcome = self.ledger.produce(fitting)
        if outcome is not None:
            self._outcome(result.call_id, outcome)

    def _outcome(self, call_id: str, outcome: Outcome) -> None:
        self._out.append(ReportOutcome(call_id=call_id, outcome=outcome))

    def _reply_requested(self, event: ReplyRequested, now: float) -> None:
        if self.link is Link.ENDED:
            refused = ReplyRefused("the session has no connection", "start a new session")
        elif self.ledger.running and self._tools_block:
            refused = ReplyRefused(
                "a tool is running and the model waits for its result",
                "return from the tool first, or declare tools as NON_BLOCKING",
            )
        else:
            self._out += self._requests.add(event.request, event.instructions, now=now)
            return
        self._out.append(FailReply(request=event.request, error=refused))

    # ------------------------------------------------------------ connections

    def _dial(self, *, delay: float) -> None:
        self._connection += 1
        self.link = Link.DIALING
        self._opened_at = None
        self._resumed = self.handle is not None
        self._out.append(Dial(connection=self._connection, delay=delay, handle=self.handle))

    def _connected(self, event: Connected, now: float) -> None:
        if event.connection != self._connection or self.link is not Link.DIALING:
            return
        self._opened_at = self._last_sign = now
        self._caller_turn_open = False
        self._written_text.clear()
        self.history.connection_opened(resumed=self._resumed)
        if self._resumed and not self._ever_opened:
            # a handle from outside: what it covers is taken to be the context it came with
            for item in event.items:
                self.history.heard(item.result.call_id if item.result else item.item_id)
        self._ever_opened = True
        self._items = event.items
        self._seen.update(item.item_id for item in event.items)
        self.link = Link.OPEN
        if self._connection > 1:
            self._out.append(ReportReconnected(connection=self._connection, resumed=self._resumed))
        if self._resumed:
            self._settle(now)

    def _settle(self, now: float) -> None:
        responses = self.ledger.settle(self._connection, wording.still_running)
        if not responses:
            return
        self._out.append(SendToolResponse(results=responses))
        self.link = Link.SETTLING
        self._settled_at = now + self._options.settle_grace

    def _lost(self, event: ConnectionLost, now: float) -> None:
        if event.connection != self._connection or self.link in (Link.DOWN, Link.ENDED):
            return
        planned = self.link is Link.CLOSING
        self._show(self.turn.connection_lost())
        self.ledger.connection_closed(self._connection)
        self._requests.connection_lost()
        self.uplink.put_back(event.unsent)
        if planned:
            self._dial(delay=0.0)
        else:
            self._recover(event, now)

    def _recover(self, event: ConnectionLost, now: float) -> None:
        alive = 0.0 if self._opened_at is None else now - self._opened_at
        if alive >= recovery.STABLE:
            self._attempts = 0
        self._attempts += 1
        if self._last_trigger is not None and event.code in (1007, 1008):
            self.behaviour.refused(self._last_trigger)
        failure = recovery.Failure(
            code=event.code,
            invalid=event.invalid,
            first=not self._ever_opened,
            resumed=self._resumed,
            young=alive < recovery.YOUNG,
        )
        verdict = recovery.judge(failure, attempts=self._attempts, max_retry=self._max_retry)
        fatal = verdict is recovery.Verdict.FATAL
        error = ConnectionFailed(event.code, self._attempts, recovery.advice(failure))
        self._out.append(ReportError(error=error, recoverable=not fatal))
        if fatal:
            self.link = Link.ENDED
            self._out += self._requests.fail("the connection was lost", "start a new session")
            return
        if verdict is recovery.Verdict.FRESH:
            self.handle = None
        self._dial(
            delay=recovery.backoff(
                self._attempts, interval=self._retry_interval, jitter=self._random()
            )
        )

    # ------------------------------------------------------------ what is written, in order

    def _pump(self, now: float) -> None:
        if self.link is Link.SETTLING and now >= self._settled_at:
            self.ledger.settle_failed(self._connection)
            self.link = Link.OPEN
        if self.link in (Link.OPEN, Link.SETTLING) and self._rotation.due(self._situation, now=now):
            self.link = Link.CLOSING
            self._out.append(CloseConnection(connection=self._connection))
        if self.link is not Link.OPEN:
            return
        self._respond(now)
        if not self.ledger.open_on(self._connection):
            self.turn.answered()
        if not self._blocked:
            if self.turn.quiet:
                self._speak_up(now)
            if self._requests.waiting and not self._blocked:
                self._ask_for_reply(now)
        for piece in self.uplink.drain():
            self._out.append(SendInput(piece=piece))

    @property
    def _blocked(self) -> bool:
        """Whether words of ours would reach a server that is busy, or about to be left."""
        waits = self.ledger.open_on(self._connection)
        return self._rotation.requested or waits or self.ledger.reply_due

    @property
    def _reply_coming(self) -> bool:
        """Whether a reply to a result may come now: a blocking server waits for all results."""
        held = self._tools_block and self.ledger.open_on(self._connection)
        return self.ledger.reply_due and not held

    @property
    def _situation(self) -> Situation:
        return Situation(
            speaking=self.turn.speaking,
            turn_over=self.turn.quiet,
            call_open=self.ledger.open_on(self._connection),
            reply_due=self._reply_coming,
            settling=self.link is Link.SETTLING,
        )

    def _respond(self, now: float) -> None:
        results = self.ledger.tell_by_response(self._connection)
        if not results:
            return
        self._out.append(SendToolResponse(results=results))
        self._speech.told()
        self._last_sign = now

    def _missing(self) -> tuple[Turn, ...]:
        """What this connection does not know; it does once this has been called."""
        turns, ids = self.history.missing(self._items, skip=self.ledger.untold)
        self.history.sent(ids)
        return turns

    def _speak_up(self, now: float) -> None:
        if self._instructions is not None:
            system = Turn(role="system", parts=(self._instructions,))
            self._out.append(SendContent(turns=(system,), turn_complete=False))
            self._instructions = None
        turns = self._missing()
        records = self.ledger.to_say(self._connection)
        if not records:
            if turns:
                self._caller_turn_open = turns[-1].role == "user"
                self._out.append(SendContent(turns=turns, turn_complete=False))
            return
        reply = any(r.reply is Reply.DUE for r in records)
        self.ledger.said(records, self._connection)
        self._say(wording.say(records, reply=reply), turns, reply=reply, now=now)

    def _say(self, text: str, turns: tuple[Turn, ...], *, reply: bool, now: float) -> None:
        self._speech.told()
        if reply and self.behaviour.trigger is Trigger.REALTIME_TEXT:
            if turns:
                self._out.append(SendContent(turns=turns, turn_complete=False))
            self._trigger(Trigger.REALTIME_TEXT, text, (), now)
        elif reply:
            self._trigger(Trigger.CLIENT_CONTENT, text, turns, now)
        else:
            said = Turn(role="user", parts=(text,))
            self._out.append(SendContent(turns=(*turns, said), turn_complete=False))

    def _trigger(
        self, trigger: Trigger, text: str | None, turns: tuple[Turn, ...], now: float
    ) -> None:
        """Make the model speak, by words of ours or by ending the caller's open turn."""
        self._last_sign = now
        self._last_trigger = trigger
        self._caller_turn_open = False
        if trigger is Trigger.REALTIME_TEXT:
            self._written_text.append(text or "")
            self._out.append(SendText(text=text or ""))
            return
        words = () if text is None else (Turn(role="user", parts=(text,)),)
        self._out.append(SendContent(turns=(*turns, *words), turn_complete=True))

    def _ask_for_reply(self, now: float) -> None:
        turns = self._missing()
        instructions = self._requests.instructions
        open_turn = turns[-1].role == "user" if turns else self._caller_turn_open
        text = wording.reply_now(instructions)
        if self.behaviour.trigger is Trigger.REALTIME_TEXT:
            if turns:
                self._out.append(SendContent(turns=turns, turn_complete=False))
            self._trigger(Trigger.REALTIME_TEXT, text, (), now)
        else:
            silent = open_turn and instructions is None
            self._trigger(Trigger.CLIENT_CONTENT, None if silent else text, turns, now)
        self._requests.mark_written(now=now)

    # ------------------------------------------------------------ a reply that does not come

    @property
    def _reply_deadline(self) -> float | None:
        silent = any(r.waits_for_reply and r.reply is Reply.DUE for r in self.ledger)
        if self.link is not Link.OPEN or not silent or not self._reply_coming:
            return None
        return self._last_sign + self._options.reply_timeout

    def _ask_again(self, now: float) -> None:
        records = self.ledger.ask_again()
        if records:
            said = any(r.route is Route.SAY for r in records)
            usual, other = self.behaviour.trigger, self.behaviour.other_trigger
            self._trigger(other if said else usual, wording.remind(records), (), now)
            return
        lost = self.ledger.give_up()
        for call_id in lost:
            self.history.heard(call_id)
            self._outcome(call_id, Outcome.UNANSWERED)
        if lost:
            error = ResultUnanswered(lost, self._options.reply_timeout)
            self._out.append(ReportError(error=error, recoverable=True))

    def _take(self) -> list[Effect]:
        out, self._out = self._out, []
        return out
