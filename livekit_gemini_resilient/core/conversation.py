"""The ties between the parts of the core: one ``receive``, one ``next_deadline``.

After every event the same questions are asked in the same order (``_pump``): is the connection to
be replaced? is a result to be answered on the connection that asked for it? is the model to be
told something in words? is a reply to be asked for? may the caller's audio flow? So the order in
which things are written does not depend on the order in which they happened.

While a resumed connection is being settled (see ``telling``) all other input is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..options import ResilienceOptions
from . import wording
from .asking import Asking
from .audience import Audience
from .behaviour import Observed
from .delivery import Ledger
from .effects import (
    Effect,
    Outcome,
    ReportError,
    ReportLearned,
    ReportOutcome,
    ReportUsage,
    SendInput,
    UpdateContext,
)
from .errors import SettingsRefused, ToolsUnusable
from .events import (
    AudienceChanged,
    Connected,
    ConnectionLost,
    ContextUpdated,
    Event,
    GenerationSkipped,
    InputPushed,
    InstructionsChanged,
    MessageRecorded,
    ReplyRequested,
    ReplyWithdrawn,
    RestartCause,
    RestartRequested,
    ServerFrame,
    SetupBuilt,
    ToolCall,
    ToolResult,
    ToolsLeftOut,
)
from .history import History
from .intake import Intake
from .link import Link, LinkState
from .prompts import Prompts
from .recovery import FRAME_REFUSED, YOUNG
from .reports import Report, Started, TurnEnded
from .requests import Requests
from .rotation import HANDLE_GRACE, RestartWhen, Rotation, Situation, ToolUpdate
from .speech import Speech
from .telling import Telling
from .transitions import Transitions
from .turn import TurnTracker
from .turn_state import TurnState
from .uplink import Uplink

_INVALID = 1007
"""Close code by which the service refuses the bytes of a frame (observed)."""


class Conversation:
    """One LiveKit session, over as many connections as it takes.

    Args:
        options: Times and limits.
        new_id: Makes an id from a prefix.
        random: Makes a number from 0 to 1, for the jitter of the back-off.
        handle: A resumption handle to begin with.
        max_retry: How many dials may follow a failed one before the conversation is given up.
        retry_interval: Seconds between the first of them; see ``recovery.backoff``.
        tools_block: Whether the setup declares that the model waits for tool results.
        observed: What this server is known to do.
        may_stay_silent: Whether the model may leave the caller without an answer.
        final_at_reply: See ``Speech``.
        young: See ``recovery.YOUNG``.
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
        observed: Observed | None = None,
        may_stay_silent: bool = False,
        final_at_reply: bool = False,
        young: float = YOUNG,
    ) -> None:
        self.link = Link(
            handle=handle,
            max_retry=max_retry,
            retry_interval=retry_interval,
            random=random,
            young=young,
        )
        self.ledger = Ledger()
        self.history = History()
        self.uplink = Uplink(max_seconds=options.input_buffer)
        self.turn = TurnTracker(
            trailing_quiet=options.trailing_quiet,
            transcript_grace=options.transcript_grace,
            tools_block=tools_block,
            stalled_after=options.reply_timeout,
        )
        self._options = options
        self._tools_block = tools_block
        self._observed = observed or Observed()
        self._prompts = Prompts(self._observed)
        self._rotation = Rotation(
            when=RestartWhen(options.restart_when),
            max_defer=options.max_defer,
            margin=options.go_away_margin,
            max_age=options.max_connection_age,
        )
        self._transitions = Transitions(
            names=options.transition_names,
            quiet=options.trailing_quiet,
            patience=options.max_defer,
        )
        self._requests = Requests()
        self._audience = Audience(patience=options.reply_timeout)
        self._asking = Asking(
            options=options,
            ledger=self.ledger,
            requests=self._requests,
            prompts=self._prompts,
            tools_block=tools_block,
            may_stay_silent=may_stay_silent,
        )
        self._speech = Speech(
            ledger=self.ledger,
            history=self.history,
            requests=self._requests,
            asking=self._asking,
            new_id=new_id,
            tools_block=tools_block,
            final_at_reply=final_at_reply,
        )
        self._updated = False
        self._out: list[Effect] = []
        self._intake = Intake(max_result_bytes=options.max_result_bytes)
        self._telling = Telling(
            options=options,
            ledger=self.ledger,
            history=self.history,
            prompts=self._prompts,
            observed=self._observed,
            speech=self._speech,
            tools_block=tools_block,
        )

    # ------------------------------------------------------------ the surface

    def start(self, *, now: float) -> list[Effect]:
        """Begin: the first dial."""
        if self.link.state is LinkState.DOWN:
            self._out.append(self.link.dial())
        return self._take()

    def receive(self, event: Event, *, now: float) -> list[Effect]:
        """Something happened."""
        self._dispatch(event, now)
        self._pump(now)
        return self._take()

    def advance(self, *, now: float) -> list[Effect]:
        """A deadline may have passed."""
        self._show(self.turn.advance(now=now), now)
        self._out += self._requests.advance(now=now)
        self.ledger.expire(self.link.number if self.link.is_up else 0, now=now)
        if self._reply_deadline is not None and now >= self._reply_deadline:
            self._out += self._telling.ask_again(self.link.number, now=now)
        if self._answer_deadline is not None and now >= self._answer_deadline:
            self._unanswered()
        self._pump(now)
        return self._take()

    def close(self, *, handed_over: bool = False) -> list[Effect]:
        """The conversation is over; say what becomes of what is pending.

        Args:
            handed_over: The session of another agent tells the results whose replies are due.
        """
        if not self.link.has_ended:
            self.link.end()
            self._give_up("the session was closed", handed_over=handed_over)
        return self._take()

    @property
    def next_deadline(self) -> float | None:
        """When ``advance`` has to be called, in loop seconds; ``None`` if nothing waits."""
        deadlines = [self.turn.next_deadline, self._requests.next_deadline, self._reply_deadline]
        deadlines += [self.ledger.next_deadline, self._audience.next_deadline]
        deadlines.append(self._answer_deadline)
        deadlines.append(self._transitions.next_deadline(model_waits=self._tools_block))
        if self.link.state is LinkState.SETTLING:
            deadlines.append(self._telling.settled_at)
        if self.link.is_up:
            deadlines.append(self._rotation.next_deadline(self._situation))
        if self._may_speak_up:
            deadlines.append(self._telling.batch_deadline)
        return min((d for d in deadlines if d is not None), default=None)

    @property
    def pending_results(self) -> tuple[ToolResult, ...]:
        """Results that wait for a connection, or were told and not seen to arrive."""
        return () if self.link.has_ended else self.ledger.pending

    @property
    def announces_history(self) -> bool:
        """Whether the next setup is to announce that client content comes first, as history."""
        return not self._observed.behaviour.content_at_any_time

    @property
    def repeats_setup(self) -> bool:
        """Whether the next setup is to be the one that was accepted last, but for the handle."""
        return self.link.settings.as_accepted

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
                self.link.settings.built(event)
                self._declare(event.tools_block)
                self._prompts.connection_opened(announces_history=event.announces_history)
                self._telling.instructions = None
            case Connected():
                self._connected(event, now)
            case ConnectionLost():
                self._lost(event, now)
            case ContextUpdated():
                self._audience.handed_context(now=now)
                self._context(event, now)
            case MessageRecorded(item=item):
                self.history.recorded(item.item_id, item.text)
            case AudienceChanged(handed_over=handed_over):
                for call, result in handed_over:
                    self.ledger.produce(result, call)
                    self._intake.taken(result.call_id)
                if handed_over or self.ledger.unheard:
                    self._audience.entered(now=now)
            case GenerationSkipped(generation=generation):
                self._out += self._speech.skipped(generation)
                if self.ledger.unheard:
                    self._audience.left(now=now)
            case RestartRequested():
                self._restart_requested(event, now)
            case ToolsLeftOut(names=names, reason=reason):
                self._out.append(ReportError(error=ToolsUnusable(names, reason), recoverable=True))
            case InstructionsChanged(text=text):
                if self._prompts.can_inform and not self._held_by_call:
                    self._telling.instructions = text
                else:
                    # a model that waits for a tool takes no content, and its answer is to obey
                    event = RestartRequested(cause=RestartCause.INSTRUCTIONS)
                    self._restart_requested(event, now)
            case ReplyRequested():
                self._reply_requested(event, now)
            case ReplyWithdrawn(request=request):
                self._requests.withdraw(request)
            case InputPushed():
                self.uplink.push(event)

    def _restart_requested(self, event: RestartRequested, now: float) -> None:
        if event.unusable is not None:
            # what runs is not given up for what cannot be
            error = SettingsRefused((), event.unusable)
            self._out.append(ReportError(error=error, recoverable=True))
            return
        self.link.settings.changed()
        if self._updates_in_place(event):
            self._updated = True
            self._out.append(UpdateContext())
            return
        running = {c for c in self._transitions.let_go if self.ledger.runs(c)}
        self._rotation.request(
            event.cause, call_open=self.ledger.running, now=now, transition=bool(running)
        )

    def _updates_in_place(self, event: RestartRequested) -> bool:
        wanted = self._options.tool_update is ToolUpdate.CONTEXT_UPDATE and event.in_place
        possible = self.link.state is LinkState.OPEN and not self._rotation.requested
        return wanted and possible and self._observed.behaviour.context_updates

    def _declare(self, tools_block: bool) -> None:
        self._tools_block = self.turn.tools_block = tools_block
        self._speech.tools_block = self._telling.tools_block = tools_block
        self._asking.tools_block = tools_block

    def _frame(self, frame: ServerFrame, now: float) -> None:
        if frame.connection != self.link.number or not self.link.is_up:
            return
        self._telling.frame_received(now=now)
        self._transitions.frame_received(now=now)
        self._updated = False
        self._prompts.frame_received()
        called = frame.calls
        # a call that is delivered or issued again is no sign of the model
        new_input = self._speech.asked_on == self.link.number or bool(frame.user_words)
        calls = tuple(
            call
            for call in frame.calls
            if not self.ledger.rejoin(call, self.link.number, new_input=new_input)
        )
        speaking = bool(frame.audio or frame.text) or not self.generation_completed
        calls = self._transitions.arrived(
            (c for c in calls if not self._refused(c, frame)), speaking=speaking, now=now
        )
        frame = replace(frame, calls=calls)
        if frame.calls != called:
            self._asking.call_came()
        if frame.user_words and self._prompts.is_echo(frame.user_words):
            frame = replace(frame, user_words="")
        self._show(self.turn.receive(frame, now=now), now)
        unnamed = self.ledger.unnamed(self.link.number) if frame.cancels_unnamed else ()
        self._transitions.cancelled(frame.cancelled, unnamed=frame.cancels_unnamed)
        self.ledger.cancel((*frame.cancelled, *unnamed))
        if frame.handle is not None and not self.history.is_replaced:
            self.link.handle = frame.handle
            self.history.handle_received()
        if frame.time_left is not None:
            self._rotation.go_away(frame.time_left, now=now)
        if frame.usage is not None:
            self._out.append(ReportUsage(usage=frame.usage))

    def _show(self, happened: Iterable[Report], now: float) -> None:
        seen = list(happened)
        settling = self.link.state is LinkState.SETTLING
        self._out += self._speech.show(seen, connection=self.link.number, settling=settling)
        for report in seen:
            self._out += self._asking.show(
                report,
                spoken=self._speech.spoken,
                elsewhere=self.ledger.reply_due or self.uplink.activity_open,
                now=now,
            )
            if isinstance(report, Started):
                if settling and self._speech.answers_caller:
                    self._telling.settled_in_vain()
                elif settling:
                    # the settled response is being answered: that is the reply
                    self.link.settled()
            elif isinstance(report, TurnEnded) and report.empty and settling:
                self._telling.settled_in_vain()
            elif isinstance(report, TurnEnded) and not report.empty:
                self.link.progressed()

    def _refused(self, call: ToolCall, frame: ServerFrame) -> bool:
        """Whether a call may not run; it is answered so."""
        why = frame.calls_refused
        if why is None and call.name in frame.removed_functions:
            why = wording.removed(call.name)
        if why is None:
            return False
        if self.ledger.issue(call, self.link.number):
            self.ledger.produce(
                ToolResult(call_id=call.call_id, name=call.name, output=why, is_error=True)
            )
        return True

    def _context(self, event: ContextUpdated, now: float) -> None:
        if self.history.replace(event.items):
            self._forget(now)
        owed, history = self._intake.updated(event.items, self.ledger, due=event.due)
        for result in history:
            self._outcome(result.call_id, Outcome.HISTORY)
        for result, call in owed:
            outcome = self.ledger.produce(result, call)
            if outcome is None and self.link.has_ended:
                outcome = Outcome.UNDELIVERED
            if outcome is not None:
                self._outcome(result.call_id, outcome)

    def _forget(self, now: float) -> None:
        """The server knows what is not part of the conversation any more."""
        self.link.handle = None
        cause, call_open = RestartCause.HISTORY, self.ledger.running
        self._rotation.request(cause, call_open=call_open, now=now)

    def _outcome(self, call_id: str, outcome: Outcome) -> None:
        self._out.append(ReportOutcome(call_id=call_id, outcome=outcome))

    def _reply_requested(self, event: ReplyRequested, now: float) -> None:
        self._audience.asked()
        if event.activity_end is not None:
            # which makes the model answer: words of ours beside it would ask for two replies
            suffices = event.instructions is None or self._prompts.can_inform
            request = event.request if suffices else None
            self.uplink.push(replace(event.activity_end, request=request))
        self._out += self._asking.requested(
            event,
            connection=self.link.number if self.link.state is LinkState.OPEN else 0,
            held=self._holds_requests,
            ended=self.link.has_ended,
            now=now,
        )
        self._requests.ride_on(self.uplink.asks)

    # ------------------------------------------------------------ connections

    def _connected(self, event: Connected, now: float) -> None:
        if event.connection != self.link.number or self.link.state is not LinkState.DIALING:
            return
        from_outside = self.link.resumed and not self.link.ever_opened
        self._out += self.link.opened(now=now)
        self._rotation.connection_opened(now=now)
        self._telling.sign(now=now)
        self.history.connection_opened(resumed=self.link.resumed)
        if self.history.is_replaced:
            # its handle had been offered before
            self._forget(now)
        self._intake.connected(event.items)
        if from_outside:
            self.history.handle_supplied(event.items)
        if self.link.resumed:
            settling = self._telling.settle(self.link.number, now=now)
            self._out += settling
            if settling:
                self.link.settle()

    def _lost(self, event: ConnectionLost, now: float) -> None:
        gone = self.link.state in (LinkState.DOWN, LinkState.ENDED)
        if event.connection != self.link.number or gone:
            return
        self._let_go(now, speaking=False)
        self._show(self.turn.connection_lost(), now)
        if event.code in FRAME_REFUSED and self.link.state is LinkState.SETTLING:
            self._telling.settling_refused()
        if self._updated and event.code in FRAME_REFUSED:
            self._observed.refused_context_update()
        elif event.code in FRAME_REFUSED and self.link.is_up and not self._telling.may_be_refused:
            self._prompts.connection_refused()
        self._updated = False
        self._telling.connection_lost(invalid=event.code == _INVALID and self.link.is_up)
        self.ledger.connection_closed(self.link.number)
        self._asking.connection_lost()
        self.uplink.connection_lost(event.unsent)
        self._requests.ride_on(self.uplink.asks)
        self._out += self.link.lost(event, now=now)
        if self.link.has_ended:
            self._give_up("the connection was lost")

    def _give_up(self, why: str, *, handed_over: bool = False) -> None:
        self._out += self._requests.fail(why, "start a new session")
        left = {call.call_id for call, _ in self.ledger.due_replies} if handed_over else set()
        for call_id in self.ledger.undelivered:
            outcome = Outcome.HANDED_OVER if call_id in left else Outcome.UNDELIVERED
            self._outcome(call_id, outcome)

    # ------------------------------------------------------------ what is written, in order

    def _pump(self, now: float) -> None:
        self._audience.advance(now=now)
        self._let_go(now, speaking=not self.generation_completed)
        self.ledger.watch(now=now, timeout=self._options.tool_answer_timeout)
        if self.link.state is LinkState.SETTLING and now >= self._telling.settled_at:
            self.ledger.settle_failed(self.link.number)
            self.link.settled()
        if self.link.is_up and self._rotation.due(self._situation, now=now):
            self._out.append(self.link.close())
        if self.link.state is not LinkState.OPEN:
            return
        self._out += self._telling.respond(self.link.number, withhold=self._withheld, now=now)
        if self._requests.waiting and self._holds_requests:
            self._out += self._asking.held_by_call(self.link.number, now=now)
        if not self._call_open:
            self._show(self.turn.answered(now=now), now)
        if self._may_speak_up:
            self._speak_up(now)
        self._prompts.history_is_told()
        if self._holds_input:
            return
        for piece in self.uplink.drain():
            if piece.request is not None:
                self._out += self._asking.activity_ends(
                    piece.request, came_first=self.turn.at_rest, now=now
                )
            self._out.append(SendInput(piece=piece))

    def _speak_up(self, now: float) -> None:
        """Tell the model what it does not know, and ask it to speak where a reply is owed."""
        asked = self._requests.waiting
        before, turns, due = self._telling.gather(
            self.link.number, self._intake.items, speaks=self._asking.owed, now=now
        )
        self._out += before
        self._out += self._asking.put(due, turns, came_first=self.turn.at_rest, now=now)
        if asked:
            self._speech.asked_on = self.link.number

    def _unanswered(self) -> None:
        """The model was asked for the answer to the caller, and stayed silent."""
        error = self._asking.next_step()
        if error is not None:
            self._out += error
            return
        # it may hear and never speak again: a handle can be spoilt (observed)
        self.link.handle = None
        self._out.append(self.link.close())

    @property
    def _answer_deadline(self) -> float | None:
        return self._asking.answer_deadline if self.link.state is LinkState.OPEN else None

    def _let_go(self, now: float, *, speaking: bool) -> None:
        """Have the transitions run that were held back while the model spoke."""
        calls = self._transitions.release(speaking=speaking, model_waits=self._tools_block, now=now)
        if calls:
            frame = ServerFrame(connection=self.link.number, calls=calls)
            self._show(self.turn.receive(frame, now=now), now)

    @property
    def _call_open(self) -> bool:
        """Whether this connection waits for an answer."""
        return self.ledger.open_on(self.link.number) or self._transitions.holding

    @property
    def _withheld(self) -> frozenset[str]:
        """Calls whose results are left to the connection that follows this one."""
        if not self._rotation.waits_for_no_call:
            return frozenset()
        return self.ledger.owed_to(self.link.number) & self._transitions.let_go

    @property
    def _held_by_call(self) -> bool:
        """Whether the model waits for a tool that runs; on a new connection it would not."""
        waits = self.link.is_up and self._call_open
        return waits and self.ledger.running and self._tools_block

    @property
    def _holds_requests(self) -> bool:
        """Whether a request would wait for a tool whose result LiveKit withholds until the reply
        to the request has ended."""
        return self._held_by_call and not self._rotation.waits_for_no_call

    @property
    def _holds_input(self) -> bool:
        """Whether what the caller says waits for a tool. Not the end of an activity that asks for a
        reply: LiveKit withholds the tool's result until that reply has ended."""
        wanted = self._options.hold_input_during_call and self.uplink.asks is None
        return wanted and self._tools_block and self._call_open

    @property
    def _blocked(self) -> bool:
        """Whether words of ours would reach a server that is busy, or about to be left."""
        busy = self.ledger.reply_due or self._audience.is_away
        if self._call_open and self._requests.waiting and not self._tools_block:
            # neither the model nor a rotation that the call holds up can wait for that result
            return busy or self.turn.speaking or self._rotation.waits_for_no_call
        return self._rotation.requested or self._call_open or busy

    @property
    def _may_speak_up(self) -> bool:
        """Whether words of ours reach a server that listens, and interrupt nobody but where a
        reply is asked for."""
        silence = self.turn.quiet and not self._asking.asked
        if self.link.state is not LinkState.OPEN or self._blocked:
            return False
        return silence or self._requests.waiting

    @property
    def _reply_coming(self) -> bool:
        """Whether a reply to a result may come now: a blocking server waits for all results."""
        held = self._tools_block and self.ledger.open_on(self.link.number)
        return self.ledger.reply_due and not held

    @property
    def _someone_speaks(self) -> bool:
        model = self.turn.speaking and not self._speech.unheard
        return model or self.uplink.in_activity

    @property
    def _situation(self) -> Situation:
        return Situation(
            speaking=self._someone_speaks,
            turn_over=self.turn.quiet,
            call_open=self._call_open,
            reply_due=(self._reply_coming and not self._withheld) or self._asking.asked,
            settling=self.link.state is LinkState.SETTLING,
            resumable=self.link.handle is not None,
            handle_until=0.0 if self.history.is_covered else self.turn.ended_at + HANDLE_GRACE,
        )

    @property
    def _reply_deadline(self) -> float | None:
        waits = self.link.state is LinkState.OPEN and self._reply_coming
        return self._telling.reply_deadline if waits else None

    def _take(self) -> list[Effect]:
        learned = self._observed.take_news()
        if learned is not None:
            self._out.append(ReportLearned(behaviour=learned))
        out, self._out = self._out, []
        return out
