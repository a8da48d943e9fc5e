"""What follows from each event, and in which order are things written?

The ties between the parts of the core (``parts``): one ``receive``, one ``next_deadline``. What a
frame of the server changes is in ``reception``, what one connection leaves to the next in
``succession``, what holds words of ours in ``floor``, by which way a change of the setup reaches
the server in ``changes``.

After every event the same questions are asked in the same order (``_pump``): is the connection to
be replaced? is a result to be answered on the connection that asked for it? is the model to be
told something in words? is a reply to be asked for? may the caller's audio flow? So the order in
which things are written does not depend on the order in which they happened.

While a resumed connection is being settled (see ``telling``) all other input is held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..options import ResilienceOptions
from . import evidence
from .behaviour import Observed
from .caller import Ear
from .changes import Changes
from .effects import (
    Effect,
    OurFrame,
    Outcome,
    ReportError,
    ReportLearned,
    ReportOutcome,
    SendInput,
)
from .errors import ToolsUnusable
from .events import (
    Activity,
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
    ToolResult,
    ToolsLeftOut,
    VoiceDetected,
)
from .floor import Floor
from .link import Link, LinkState
from .parts import assemble
from .reception import Reception
from .recovery import YOUNG
from .succession import Succession
from .suspects import Kind


class Conversation:
    """One LiveKit session, over as many connections as it takes.

    Args:
        options: Times and limits.
        new_id: Makes an id from a prefix.
        random: Makes a number from 0 to 1, for the jitter of the back-off.
        handle: A resumption handle to begin with.
        max_retry: How many dials may follow a failed one before the conversation is given up.
        retry_interval: Seconds between the first of them; see ``recovery.backoff``.
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
        observed: Observed | None = None,
        may_stay_silent: bool = False,
        final_at_reply: bool = False,
        young: float = YOUNG,
    ) -> None:
        link = Link(
            handle=handle,
            max_retry=max_retry,
            retry_interval=retry_interval,
            random=random,
            young=young,
        )
        parts = assemble(
            options,
            link=link,
            observed=observed or Observed(),
            new_id=new_id,
            may_stay_silent=may_stay_silent,
            final_at_reply=final_at_reply,
        )
        self.link, self.turn, self.uplink = link, parts.turn, parts.uplink
        self.ledger, self.history = parts.ledger, parts.history
        self._options, self._observed = options, parts.observed
        self._intake, self._audience, self._caller = parts.intake, parts.audience, parts.caller
        self._speech, self._telling, self._prompts = parts.speech, parts.telling, parts.prompts
        self._asking, self._requests, self._suspects = parts.asking, parts.requests, parts.suspects
        self._rotation, self._transitions = parts.rotation, parts.transitions
        self._floor, self._reception = Floor(parts), Reception(parts)
        self._changes = Changes(parts, self._floor)
        self._succession = Succession(parts, self._reception, self._floor)
        self._out: list[Effect] = []

    # ------------------------------------------------------------ the surface

    def start(self) -> list[Effect]:
        """Begin: the first dial."""
        if self.link.state is LinkState.DOWN:
            self._out.append(self.link.dial())
        return self._take()

    def receive(self, event: Event, *, now: float) -> list[Effect]:
        """Something happened."""
        self._dispatch(event, now)
        return self._go_on(now)

    def advance(self, *, now: float) -> list[Effect]:
        """A deadline may have passed."""
        self._out += self._reception.show(self.turn.advance(now=now), now=now)
        self._out += self._requests.advance(now=now)
        self.ledger.expire(now=now)
        if self._floor.reply_deadline is not None and now >= self._floor.reply_deadline:
            self._out += self._telling.ask_again(self.link.number, now=now)
        if self._floor.answer_deadline is not None and now >= self._floor.answer_deadline:
            self._unanswered()
        return self._go_on(now)

    def close(self, *, handed_over: bool = False) -> list[Effect]:
        """The conversation is over; say what becomes of what is pending.

        Args:
            handed_over: The session of another agent tells the results whose replies are due.
        """
        if not self.link.has_ended:
            self.link.end()
            self._transitions.dropped()
            why = "the session was closed"
            self._out += self._succession.given_up(why, handed_over=handed_over)
        return self._take()

    @property
    def next_deadline(self) -> float | None:
        """When ``advance`` has to be called, in loop seconds; ``None`` if nothing waits."""
        floor, waits = self._floor, self.link.settings.tools_block
        deadlines = [self.turn.next_deadline, self.ledger.next_deadline]
        deadlines += [self._requests.next_deadline, self._audience.next_deadline]
        deadlines += [floor.reply_deadline, floor.answer_deadline, self._caller.next_deadline]
        deadlines.append(self._transitions.next_deadline(self.turn.state, model_waits=waits))
        if self.link.state is LinkState.SETTLING:
            deadlines.append(self._telling.settled_at)
        if self.link.is_up:
            deadlines.append(self._rotation.next_deadline(floor.situation))
        if floor.may_speak_up:
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
    def functions_left_out(self) -> frozenset[str]:
        """Functions that the next setup is not to declare, if it is another."""
        return self.link.settings.left_out

    @property
    def generation_completed(self) -> bool:
        """Whether the model has said all that it has to say for now."""
        return self._floor.generation_completed

    # ------------------------------------------------------------ events

    def _dispatch(self, event: Event, now: float) -> None:
        match event:
            case ServerFrame():
                self._out += self._reception.frame(event, now=now)
            case SetupBuilt():
                self._succession.setup_built(event)
            case Connected():
                self._out += self._succession.connected(event, now=now)
            case ConnectionLost():
                self._out += self._succession.lost(event, now=now)
            case ContextUpdated():
                self._audience.handed_context(now=now)
                self._context(event, now)
                if event.leaving and self._floor.for_next_prompt:
                    self._audience.left(now=now)
            case MessageRecorded(item=item):
                self.history.recorded(item.item_id, item.text)
            case AudienceChanged():
                self._audience_changed(event, now)
            case GenerationSkipped(generation=generation):
                self._out += self._speech.skipped(generation)
                if self.ledger.unheard:
                    self._audience.left(now=now)
            case RestartRequested():
                self._out += self._changes.restart(event, now=now)
            case ToolsLeftOut(names=names, reason=reason):
                self._out.append(ReportError(error=ToolsUnusable(names, reason), recoverable=True))
            case InstructionsChanged():
                self._out += self._changes.instructions(event, now=now)
            case ReplyRequested():
                self._reply_requested(event, now)
            case ReplyWithdrawn(request=request):
                self._requests.withdraw(request)
            case InputPushed():
                listens = self.link.state is LinkState.OPEN and not self._floor.holds_input
                self.uplink.push(event, at_once=listens)
            case VoiceDetected(speaking=speaking):
                self._caller.detected(Ear.FRAMEWORK, speaking=speaking, now=now)

    def _audience_changed(self, event: AudienceChanged, now: float) -> None:
        for call, result in event.handed_over:
            self.ledger.produce(result, call)
            self._intake.taken(result.call_id)
        if event.handed_over or self.ledger.unheard or self._audience.is_away:
            self._audience.entered(now=now)

    def _context(self, event: ContextUpdated, now: float) -> None:
        if self.history.replace(event.items):
            self._succession.forget(now=now)
        owed, history = self._intake.updated(event.items, self.ledger, due=event.due)
        for result in history:
            self._outcome(result.call_id, Outcome.HISTORY)
        for result, call in owed:
            outcome = self.ledger.produce(result, call)
            if outcome is None and self.link.has_ended:
                outcome = Outcome.UNDELIVERED
            if outcome is not None:
                self._outcome(result.call_id, outcome)

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
            held=self._floor.holds_requests,
            ended=self.link.has_ended,
            now=now,
        )
        self._requests.ride_on(self.uplink.asks)

    # ------------------------------------------------------------ what is written, in order

    def _go_on(self, now: float) -> list[Effect]:
        self._pump(now)
        if any(isinstance(effect, OurFrame) for effect in self._out):
            self._suspects.sent(now=now)
        return self._take()

    def _pump(self, now: float) -> None:
        self._audience.advance(now=now)
        self._caller.advance(now=now)
        self._out += self._reception.let_go(now=now)
        self.ledger.watch(now=now, timeout=self._options.tool_answer_timeout)
        if self.link.state is LinkState.SETTLING and now >= self._telling.settled_at:
            evidence.settle_failed(self.ledger, self.link.number)
            self.link.settled()
        if self.link.tries_settings():
            self._rotation.request(RestartCause.TOOLS, call_open=False, now=now)
        if self.link.is_up and self._rotation.due(self._floor.situation, now=now):
            self._out.append(self.link.close())
        if self.link.state is not LinkState.OPEN:
            return
        responses = self._telling.respond(self.link.number, withhold=self._floor.withheld, now=now)
        if self._floor.reply_follows:
            responses = self._asking.along_with(responses, now=now)
        self._out += responses
        if self._requests.waiting and self._floor.holds_requests:
            self._out += self._asking.held_by_call(self.link.number, now=now)
        if not self._floor.call_open:
            answered = self.turn.answered(model_waits=self.link.settings.tools_block, now=now)
            self._out += self._reception.show(answered, now=now)
        if self._floor.may_speak_up:
            self._speak_up(now)
        self._prompts.history_is_told()
        for piece in () if self._floor.holds_input else self.uplink.drain():
            if piece.request is not None:
                self._out += self._asking.activity_ends(
                    piece.request, came_first=self.turn.at_rest, now=now
                )
            if piece.activity is Activity.START:
                self._suspects.wrote(Kind.ACTIVITY, str(self.uplink.activities), now=now)
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

    def _take(self) -> list[Effect]:
        learned = self._observed.take_news()
        if learned is not None:
            self._out.append(ReportLearned(behaviour=learned))
        out, self._out = self._out, []
        return out
