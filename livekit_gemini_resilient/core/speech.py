"""From what the tracker reports to what the framework is shown.

Binds each generation to its ids, to the ``generate_reply`` that it answers and to the results
that it is evidence for, and each of the caller's words to one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from . import evidence, reports, wording
from .asking import Asking
from .delivery import Ledger
from .effects import (
    Effect,
    EndAudio,
    EndGeneration,
    OpenGeneration,
    Outcome,
    PushAudio,
    PushCall,
    PushText,
    ReportOutcome,
    ReportSpeechStarted,
    ReportSpeechStopped,
    Transcribe,
)
from .events import ToolCall
from .history import History
from .requests import Requests
from .settings import Settings


@dataclass(slots=True)
class _Generation:
    number: int
    response_id: str
    input_id: str
    evidence: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    spoken: str = ""
    has_speech: bool = False
    has_words: bool = False
    is_open: bool = True
    answers_caller: bool = False
    is_skipped: bool = False
    calls: list[ToolCall] = field(default_factory=list)


@dataclass(slots=True)
class _CallerTurn:
    item_id: str
    text: str = ""
    is_final: bool = False


class Speech:
    """What is being said, by whom, in which generation.

    Args:
        ledger: Told what the model shows.
        history: Told what the server heard and said.
        requests: Asked which request a generation answers.
        asking: Asked whether the model speaks because it was asked to.
        new_id: Makes an id from a prefix.
        settings: What the setup declares.
        final_at_reply: The framework stamps the caller's message when it is final, so it has to be
            before the reply begins (LiveKit 1.6.5); elsewhere it carries a time of its own.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        history: History,
        requests: Requests,
        asking: Asking,
        new_id: Callable[[str], str],
        settings: Settings,
        final_at_reply: bool,
    ) -> None:
        self._ledger = ledger
        self._history = history
        self._requests = requests
        self._asking = asking
        self._final_at_reply = final_at_reply
        self._new_id = new_id
        self._settings = settings
        self._generation: _Generation | None = None
        self._caller: _CallerTurn | None = None
        self._caller_spoke = False
        self._shown: list[Effect] = []
        self._caller_first = False
        self.asked_on = 0
        """Connection on which the caller, or the framework, last said something new."""

    @property
    def answers_caller(self) -> bool:
        """Whether the last generation is about the caller's words, not about what was told."""
        return self._generation is not None and self._generation.answers_caller

    @property
    def unheard(self) -> bool:
        """Whether nobody took the last generation."""
        return self._generation is not None and self._generation.is_skipped

    @property
    def spoken(self) -> str:
        """What the model said in the last generation."""
        return self._generation.spoken if self._generation else ""

    def skipped(self, number: int) -> list[Effect]:
        """Nobody took a generation: its calls will not run, and what it says is not heard."""
        generation = self._generation
        if generation is None or generation.number != number:
            return []
        generation.is_skipped = True
        for call in generation.calls:
            self._ledger.produce(wording.not_run(call))
        return self._unheard(generation)

    def _unheard(self, generation: _Generation) -> list[Effect]:
        generation.evidence, lost = evidence.reply_unheard(self._ledger, generation.evidence)
        return self._decide((call_id, Outcome.KNOWN) for call_id in lost)

    def told(self) -> None:
        """A result was put before the model: words heard from now on are newer."""
        self._caller_spoke = False

    def show(
        self, happened: Iterable[reports.Report], *, connection: int, settling: bool = False
    ) -> list[Effect]:
        """Effects of what happened on a connection, in order.

        Args:
            happened: What did.
            connection: Where it did.
            settling: What is told there may be ignored.
        """
        # only a model that waits for results speaks about them before it answers the caller
        self._caller_first = settling or not self._settings.tools_block
        for report in happened:
            self._show(report, connection)
        shown, self._shown = self._shown, []
        return shown

    def _show(self, report: reports.Report, connection: int) -> None:
        match report:
            case reports.Opened():
                self._opened(report, connection)
            case reports.Started():
                self._started(connection)
            case reports.Spoke(generation=number, data=data):
                if self._generation:
                    self._generation.has_speech = True
                self._shown.append(PushAudio(generation=number, data=data))
            case reports.Wrote(generation=number, text=text):
                if self._generation:
                    self._generation.has_speech = True
                    self._generation.spoken += text
                self._shown.append(PushText(generation=number, text=text))
            case reports.Called():
                self._called(report, connection)
            case reports.AudioEnded(generation=number):
                self._shown.append(EndAudio(generation=number))
                self._completed()
            case reports.Heard(new_turn=new_turn):
                self._heard(report)
                if new_turn:
                    self.asked_on = connection
            case reports.BargedIn():
                # words of ours interrupt as well; the caller's own are heard afterwards
                ours = self._asking.asked or self._ledger.reply_due
                if not ours and not self._ledger.running:
                    self._shown.append(ReportSpeechStarted())
            case reports.Closed():
                self._closed(report)
            case reports.TurnEnded() | reports.Missed():
                pass

    def _opened(self, report: reports.Opened, connection: int) -> None:
        asked = self._asking.asked
        # a model that does not wait for its tools is asked while one runs, and not while it speaks
        in_between = not self._settings.tools_block and self._ledger.open_on(connection)
        goes_on = report.continues and not in_between
        request = None if goes_on else self._requests.answer()
        # LiveKit stops playout at this event and 1.6.5 also throws away what a running tool
        # returns, so it is shown only where the caller can have caused the generation
        ours = asked or evidence.expects_reply(self._ledger, connection)
        if not ours and not report.continues and not self._ledger.running:
            self._shown.append(ReportSpeechStarted())
        self._generation = _Generation(
            number=report.generation,
            response_id=self._new_id("GR_"),
            input_id=self._new_id("GI_"),
        )
        self._shown.append(
            OpenGeneration(
                generation=report.generation,
                response_id=self._generation.response_id,
                input_id=self._generation.input_id,
                request=request,
            )
        )

    def _started(self, connection: int) -> None:
        self._history.consumed()
        if self._final_at_reply and self._caller is not None and not self._caller.is_final:
            self._transcribe(is_final=True)
        # a blocking model waits for all results: what it says before the last one is older
        open_call = self._settings.tools_block and self._ledger.open_on(connection)
        to_caller = self._caller_spoke and self._caller_first
        if self._generation:
            self._generation.answers_caller = to_caller
            if not open_call:
                self._generation.follows = self._ledger.responded_on(connection)
                self._generation.evidence = evidence.generation_started(
                    self._ledger, connection, about_other=to_caller
                )
            if self._generation.is_skipped:
                self._shown += self._unheard(self._generation)
        self._caller_spoke = False

    def _called(self, report: reports.Called, connection: int) -> None:
        generation = self._generation
        if generation is not None and not generation.has_speech:
            # a mere call is no reply: it may have crossed the result on the wire
            evidence.generation_cut(self._ledger, generation.evidence, "")
            generation.evidence = generation.follows = ()
        for call in report.calls:
            if not self._ledger.issue(call, connection):
                continue
            self._shown.append(PushCall(generation=report.generation, call=call))
            if generation is not None and generation.is_skipped:
                self._ledger.produce(wording.not_run(call))
            elif generation is not None:
                generation.calls.append(call)

    def _heard(self, report: reports.Heard) -> None:
        if report.new_turn or self._caller is None:
            self._caller_spoke = True
            fits = self._generation is not None and not self._generation.has_words
            item_id = (
                self._generation.input_id if self._generation and fits else self._new_id("GI_")
            )
            self._caller = _CallerTurn(item_id=item_id)
        if self._generation:
            self._generation.has_words = True
        # the first piece may begin with a space (recorded on 2.5)
        self._caller.text = (self._caller.text + report.text).lstrip()
        self._history.heard(self._caller.item_id)
        # late words belong to a message that was recorded already: record it again, longer
        nothing_open = self._generation is None or not self._generation.is_open
        self._transcribe(is_final=self._caller.is_final or nothing_open)

    def _transcribe(self, *, is_final: bool) -> None:
        if self._caller is None:
            return
        self._caller.is_final = is_final
        if is_final:
            self._history.recorded(self._caller.item_id, self._caller.text)
        self._shown.append(
            Transcribe(item_id=self._caller.item_id, text=self._caller.text, is_final=is_final)
        )

    def _closed(self, report: reports.Closed) -> None:
        generation = self._generation
        if generation is None:
            return
        generation.is_open = False
        cut = report.ending is reports.Ending.CUT and generation.has_speech
        if cut and not self._ledger.running:
            # LiveKit records what it is made to interrupt as interrupted
            self._shown.append(ReportSpeechStarted())
        self._shown.append(ReportSpeechStopped())
        if self._caller is not None and not self._caller.is_final:
            self._transcribe(is_final=True)
        match report.ending:
            case reports.Ending.COMPLETED:
                self._completed()
            case reports.Ending.INTERRUPTED:
                decided = evidence.generation_interrupted(self._ledger, generation.evidence)
                self._shown += self._decide(decided)
            case reports.Ending.CUT:
                evidence.generation_cut(self._ledger, generation.evidence, generation.spoken)
        self._history.heard(generation.response_id)
        interrupted = report.ending is not reports.Ending.COMPLETED
        self._shown.append(EndGeneration(generation=generation.number, interrupted=interrupted))

    def _completed(self) -> None:
        """All of it was generated: from now on a handle covers it, and what it is evidence for."""
        if self._generation is None:
            return
        self._history.heard(self._generation.response_id)
        evidence.exchanges_closed(self._ledger, self._generation.follows)
        decided = evidence.generation_completed(self._ledger, self._generation.evidence)
        self._shown += self._decide(decided)

    def _decide(self, decided: Iterable[tuple[str, Outcome]]) -> list[Effect]:
        effects: list[Effect] = []
        for call_id, outcome in decided:
            self._history.heard(call_id)
            if self._ledger.conclude(call_id):
                effects.append(ReportOutcome(call_id=call_id, outcome=outcome))
        return effects
