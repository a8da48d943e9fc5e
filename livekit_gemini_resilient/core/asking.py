"""When is the model asked to speak, and what if it does not?

For a ``generate_reply``, and for a caller who waits for an answer that will not come by itself:

===========================================  ===================================================
what was seen                                what follows
===========================================  ===================================================
the link is lost after the caller's words    they are asked about once on the next connection
nothing comes for ``reply_timeout``          the model is asked once, unless it may stay silent
the model stops in the middle                it is asked to go on
it was asked to, and stops there again       a fresh session, as if nothing had come
it was asked, and nothing came               a fresh session, where it is asked once more
nothing came there either                    an error event
===========================================  ===================================================

An empty turn after the caller's words is the model's own decision not to speak. Not every server
says that the caller has finished; words that were heard, and no reaction of the model, is what is
taken for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ..options import ResilienceOptions
from . import wording
from .delivery import Ledger
from .effects import (
    Effect,
    FailReply,
    ReportError,
    SendContent,
    SendRequest,
    SendText,
    SendToolResponse,
)
from .errors import CallerUnanswered, ReplyRefused
from .events import ReplyRequested, Turn
from .prompts import Prompts
from .record import Record
from .reports import Heard, Lack, Missed, Report, Started, TurnEnded
from .requests import ReplyDuringCall, Requests
from .settings import Settings
from .suspects import Kind, Suspects

_HELD = (
    "a tool is running and the model waits for its result",
    "return from the tool first, declare tools as NON_BLOCKING, or let the model speak "
    'before it has the result (ResilienceOptions(reply_during_call="interim"))',
)
"""Why a request fails, and what to do. LiveKit withholds the result until the reply has ended."""

_REFUSED = (
    "the server closed two connections for it",
    "change the instructions, or ask for it with none",
)
"""Why a request fails, and what to do."""


class Answer(Enum):
    """Where the answer to the caller stands."""

    NOT_MISSED = "not_missed"
    """It came, or may yet come by itself."""
    MISSED = "missed"
    """It will not come by itself."""
    ASKED_FOR = "asked_for"
    """The model was asked for it."""


class Asking:
    """What the model is asked for beside tool results.

    Args:
        options: Times, and what becomes of a request while a tool runs.
        ledger: Told when a call is not waited for any more.
        requests: The ``generate_reply`` under way.
        prompts: Puts things into words.
        settings: What the setup declares.
        may_stay_silent: The user lets the model decide whether to answer (proactive audio).
        suspects: Told what was written.
    """

    def __init__(
        self,
        *,
        options: ResilienceOptions,
        ledger: Ledger,
        requests: Requests,
        prompts: Prompts,
        settings: Settings,
        may_stay_silent: bool,
        suspects: Suspects,
    ) -> None:
        self._timeout = options.reply_timeout
        self._interim = options.reply_during_call is ReplyDuringCall.INTERIM
        self._ledger = ledger
        self._settings = settings
        self._requests = requests
        self._prompts = prompts
        self._may_stay_silent = may_stay_silent
        self._suspects = suspects
        self._answer = Answer.NOT_MISSED
        self._begun = ""
        self._answer_by = 0.0
        # no states of the answer: a reply that has begun may stop as well
        self._on_fresh = self._asked_to_go_on = False

    # ------------------------------------------------------------ what happened

    def requested(
        self, event: ReplyRequested, *, connection: int, held: bool, ended: bool, now: float
    ) -> list[Effect]:
        """Take a ``generate_reply``.

        Args:
            event: What is asked for.
            connection: The connection that anything may be written to, 0 if there is none.
            held: The model waits there for a tool that runs.
            ended: There will be no other connection.
            now: Loop seconds.
        """
        if ended:
            refused = ReplyRefused("the session has no connection", "start a new session")
        elif held and not self._interim:
            refused = ReplyRefused(*_HELD)
        else:
            failed = self._requests.add(event.request, event.instructions, now=now)
            return failed + (self._freed(connection, now) if held else [])
        return [FailReply(request=event.request, error=refused)]

    def held_by_call(self, connection: int, *, now: float) -> list[Effect]:
        """The model called before a request could be written, and waits for the tool."""
        return self._freed(connection, now) if self._interim else self._requests.fail(*_HELD)

    def _freed(self, connection: int, now: float) -> list[Effect]:
        """A model that waits for tools is freed, by answers that ask for the reply."""
        if not connection or not self._settings.tools_block or not self._interim:
            return []
        if not self._ledger.release(connection):
            return []
        answers = self._ledger.tell_by_response(connection, wording.still_running)
        asks = self._requests.instructions
        results = (
            wording.interim(a, asks) if n == len(answers) - 1 else a for n, a in enumerate(answers)
        )
        self._requests.mark_written(now=now)
        return [SendToolResponse(results=tuple(results))]

    def along_with(self, responses: list[Effect], *, now: float) -> list[Effect]:
        """One reply serves the results that free the model, and a request that waits: what the
        reply is to be like stands in the last of them. Results that want no reply get none.

        Args:
            responses: What is about to be written; the model waits for nothing else.
            now: Loop seconds.
        """
        if not self._requests.waiting or not responses:
            return responses
        *before, last = responses
        assert isinstance(last, SendToolResponse)
        *results, freeing = last.results
        if not freeing.reply_required:
            return responses
        freeing = wording.reply_to(freeing, self._requests.instructions)
        self._requests.mark_written(now=now)
        return [*before, SendToolResponse(results=(*results, freeing))]

    def activity_ends(self, request: int, *, came_first: bool, now: float) -> list[Effect]:
        """The end of the caller's activity is written, and asks for that ``generate_reply``: what
        the reply is to be about goes before it. See ``put``."""
        if not self._requests.rides(request):
            return []
        steering = self._prompts.steer(self._requests.instructions)
        self._requests.mark_written(now=now, came_first=came_first)
        return steering

    def show(self, report: Report, *, spoken: str, elsewhere: bool, now: float) -> list[Effect]:
        """Take a report of the turn tracker.

        Args:
            report: What happened.
            spoken: What the model said in its last generation.
            elsewhere: The caller is owed a reply to a tool result, which is asked for elsewhere, or
                has not finished.
            now: Loop seconds.
        """
        match report:
            case Started():
                self._prompts.model_spoke()
                self._answer = Answer.NOT_MISSED
            case Heard(new_turn=new_turn):
                self._prompts.caller_spoke()
                if new_turn:
                    self._answer = Answer.NOT_MISSED
                    self._on_fresh = self._asked_to_go_on = False
            case Missed(lack=lack) if not elsewhere:
                self._missed(lack, spoken, now)
            case TurnEnded(empty=True):
                if self._answer is Answer.ASKED_FOR:
                    self._answer_by = now
                return self._requests.answered_by_nothing()
            case TurnEnded():
                self._on_fresh = self._asked_to_go_on = False
        return []

    def _missed(self, lack: Lack, spoken: str, now: float) -> None:
        if lack is Lack.ANSWER and self._may_stay_silent:
            return
        self._begun, self._answer = "", Answer.MISSED
        if lack is Lack.REST:
            self._begun = spoken.strip()
            if self._asked_to_go_on:
                self._answer, self._answer_by = Answer.ASKED_FOR, now
            self._asked_to_go_on = True

    def call_came(self) -> None:
        """The model called a function that does not run: it is at work, and owes a reply to the
        answer of that call."""
        self._requests.call_came()
        self._answer = Answer.NOT_MISSED

    def refused(self, kind: Kind | None) -> list[Effect]:
        """The server closed two connections for what asks for something: it is not asked again."""
        if kind is Kind.REQUEST:
            return self._requests.fail(*_REFUSED)
        if kind is Kind.ANSWER:
            self._answer = Answer.NOT_MISSED
            return [ReportError(error=CallerUnanswered(self._timeout), recoverable=True)]
        return []

    def connection_lost(self) -> None:
        """What was asked for there is to be asked for again."""
        self._requests.connection_lost()
        if self._answer is Answer.ASKED_FOR:
            self._answer = Answer.MISSED

    # ------------------------------------------------------------ what is written

    @property
    def owed(self) -> bool:
        """Whether the model is to be asked to speak, beside what is due to results."""
        missed = self._answer is Answer.MISSED and not self._requests.under_way
        return self._requests.waiting or missed

    @property
    def asked(self) -> bool:
        """Whether the model was asked to speak, and has not begun to."""
        return self._requests.written or self._answer is Answer.ASKED_FOR

    def put(
        self, due: Sequence[Record], turns: tuple[Turn, ...], *, came_first: bool, now: float
    ) -> list[Effect]:
        """What goes out: one reply serves the results that are due, a request, and the caller.

        Args:
            due: Results that want a reply.
            turns: What the model does not know of the rest.
            came_first: Nothing older is unfinished on the server's side.
            now: Loop seconds.
        """
        if due:
            self._answer = Answer.NOT_MISSED
        if self._requests.waiting:
            return self._for_request(due, turns, came_first=came_first, now=now)
        if due:
            return self._prompts.say(due, turns)
        if self.owed:
            self._answer, self._answer_by = Answer.ASKED_FOR, now + self._timeout
            self._suspects.wrote(Kind.ANSWER, "", now=now)
            return self._prompts.answer_caller(self._begun, turns)
        return self._prompts.inform(turns)

    def _for_request(
        self, due: Sequence[Record], turns: tuple[Turn, ...], *, came_first: bool, now: float
    ) -> list[Effect]:
        """Ask for the ``generate_reply`` under way; nothing of it goes out if it is withdrawn."""
        request = self._requests.instructions
        otherwise: Effect | None = None
        if due:
            *before, trigger = self._prompts.say(due, turns, request)
            *_, otherwise = self._prompts.say(due, () if before else turns)
        else:
            *before, trigger = self._prompts.ask(
                request, turns, otherwise=self._requests.asked_otherwise
            )
            if turns and isinstance(trigger, SendContent):
                otherwise = SendContent(turns=turns, turn_complete=False)
            elif turns and not before:
                # the words carry what the model does not know, and nothing else can
                (otherwise,) = self._prompts.ask(None, turns)
        assert isinstance(trigger, SendContent | SendText)
        assert isinstance(otherwise, SendContent | SendText | None)
        number = self._requests.mark_written(now=now, came_first=came_first and not due)
        self._suspects.wrote(Kind.REQUEST, str(number), now=now)
        return [*before, SendRequest(request=number, frame=trigger, otherwise=otherwise)]

    # ------------------------------------------------------------ what does not come

    @property
    def answer_deadline(self) -> float | None:
        """When a model that was asked for the answer is not waited for any more."""
        return self._answer_by if self._answer is Answer.ASKED_FOR else None

    def next_step(self) -> list[Effect] | None:
        """The model was asked, and nothing came: ``None`` asks for a fresh session."""
        if not self._on_fresh:
            self._answer, self._on_fresh = Answer.MISSED, True
            return None
        self._answer, self._on_fresh = Answer.NOT_MISSED, False
        return [ReportError(error=CallerUnanswered(self._timeout), recoverable=True)]
