"""The turn tracker: whose turn is it, and which generation does a frame belong to?

Theory of operation
===================

The wire has no turn ids, so every frame is read against one explicit state. ``turn_state`` names
the next state for each pair; what is done on the way stands in ``TurnTracker``.

* The caller's words or real content (audio, text, a call) open a generation. Empty and usage-only
  content never does.
* A call closes its generation at once: LiveKit hands over no result while the generation that
  carried the call is open, and a blocking server ends nothing before it has the result. What
  trails the call opens a *further* generation, which closes ``trailing_quiet`` seconds after its
  last frame, or when a blocking server gets its result: what follows that is the reply. The
  caller's words join the turn they belong to and open nothing.
* ``generationComplete`` ends the audio, and the generation ``transcript_grace`` seconds later, for
  which words may trail it; the server may end the turn only when it thinks that all was heard.
  Audio that follows in the same turn is a generation of its own.
* ``interrupted`` ends the message. What trails it is dropped until the turn ends, the caller
  speaks, or ``interrupted_pause`` seconds pass without a frame. A late ``turnComplete`` of the
  interrupted turn is not the end of what came after (``_owed_ends`` counts them).
* A turn may end and say that the interaction goes on (``interactionStatus``): what follows
  continues it. That is no safe point until the server is idle or the turn stalls.
* The caller's words are *unanswered* until the model shows anything, or ends a turn without a
  word, its own decision unless it was interrupted. They outlive a call that they cancel; those
  that follow a call soon are taken for what prompted it.
* A turn in which no sign of life arrives for ``stalled_after`` seconds is taken to be over, since
  nothing is put before the model while it lasts: a reply that stops in the middle is cut, the
  caller's unanswered words are closed. Its end may still come, and is owed.

Which frame belongs where after an interruption is a judgement, made here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import turn_state
from .events import ServerFrame, ToolCall
from .reports import (
    AudioEnded,
    BargedIn,
    Called,
    Closed,
    Ending,
    Heard,
    Lack,
    Missed,
    Opened,
    Report,
    Spoke,
    Started,
    TurnEnded,
    Wrote,
)
from .turn_state import Sign, TurnState


@dataclass(slots=True)
class _Open:
    number: int
    has_content: bool = False


class TurnTracker:
    """Reads the frames of one conversation.

    Args:
        trailing_quiet: Seconds after the last frame at which a generation that trails a call ends.
        transcript_grace: Seconds for which words may trail ``generationComplete``.
        stalled_after: Seconds without a sign of life after which a turn is over; longer than
            the pauses of healthy replies.
    """

    interrupted_pause = 1.0
    """Seconds without a frame after which an interrupted turn is taken to be over although no end
    was seen. Stale frames follow an interruption within a round trip."""

    late_words = 2.0
    """Seconds within which words belong to what the caller said before a call in the same turn.
    Transcripts were observed to trail the model's reaction, and there is no order between the two
    (documented)."""

    def __init__(
        self, *, trailing_quiet: float, transcript_grace: float, stalled_after: float
    ) -> None:
        self.state = TurnState.IDLE
        self.ended_at = float("-inf")
        """When the server last ended a turn, in loop seconds."""
        self._trailing_quiet = trailing_quiet
        self._transcript_grace = transcript_grace
        self._stalled_after = stalled_after
        self._numbers = 0
        self._open: _Open | None = None
        self._deadline: float | None = None
        self._stalls_at: float | None = None
        self._last_words = self._called_at = float("-inf")
        self._words_over = True
        self._turn_has_content = self._turn_has_speech = self._unanswered = self._was_hushed = False
        self._owed_ends = 0

    # ------------------------------------------------------------ questions

    @property
    def next_deadline(self) -> float | None:
        """When ``advance`` has to be called, ``None`` if only a frame can change anything."""
        deadlines = [self._deadline, self._stalls_at]
        return min((d for d in deadlines if d is not None), default=None)

    @property
    def generation(self) -> int | None:
        """The open generation, ``None`` if there is none."""
        return self._open.number if self._open else None

    @property
    def speaking(self) -> bool:
        """Whether the model is in the middle of a generation, or the caller waits for one."""
        return self.state in turn_state.SPEAKING or self._answer_to_come

    @property
    def quiet(self) -> bool:
        """Whether words put before the model now interrupt nothing."""
        return self.state in (TurnState.IDLE, TurnState.HUSHED) and not self._unanswered

    @property
    def at_rest(self) -> bool:
        """Whether the next end of a turn is that of a turn that has not begun yet."""
        return self.state is TurnState.IDLE and not self._owed_ends and not self._unanswered

    @property
    def _answer_to_come(self) -> bool:
        """Whether the caller waits although no turn is open."""
        return self._unanswered and self.state in (TurnState.IDLE, TurnState.HUSHED)

    # ------------------------------------------------------------ inputs

    def receive(self, frame: ServerFrame, *, now: float) -> Iterator[Report]:
        """Read one frame of the present connection."""
        if frame.interrupted:
            yield from self._interrupt(now)
        if frame.user_words.strip() or (frame.user_words and not self._words_over):
            # a blank between words is one of them; by itself it is nobody's turn
            yield from self._words(frame.user_words, now)
        for data in frame.audio:
            yield from self._content(Sign.AUDIO, data, "", now)
        if frame.text:
            yield from self._content(Sign.TEXT, b"", frame.text, now)
        if frame.calls:
            self._called_at = now
            yield from self._calls(frame.calls)
        if frame.generation_complete:
            yield from self._complete(now)
        if frame.turn_complete:
            yield from self._turn_end(now, more_follows=frame.more_follows)
        if frame.is_sign_of_life:
            self._stalls_at = None
        self._watch(now)

    def answered(self, *, model_waits: bool, now: float) -> Iterator[Report]:
        """Every call of this connection has been answered.

        Args:
            model_waits: The model says nothing more before it has the answers.
            now: Loop seconds.
        """
        if self.state is TurnState.TRAILING and not model_waits:
            # the model did not wait: what it is saying goes on, and is not about the result
            self.state, self._deadline = TurnState.GENERATING, None
        elif self.state is TurnState.TRAILING:
            yield from self._close(Ending.COMPLETED)
            self._deadline = None
        self._step(Sign.ANSWERED)
        self._watch(now)

    def advance(self, *, now: float) -> Iterator[Report]:
        """A deadline may have passed."""
        if self._deadline is not None and now >= self._deadline:
            yield from self._fell_quiet()
        if self._stalls_at is not None and now >= self._stalls_at:
            yield from self._stalled()
        self._watch(now)

    def _watch(self, now: float) -> None:
        """What only the server ends is not waited for without end."""
        if self.state not in turn_state.MAY_STALL and not self._answer_to_come:
            self._stalls_at = None
        elif self._stalls_at is None:
            self._stalls_at = now + self._stalled_after

    def connection_lost(self, *, model_waits: bool) -> Iterator[Report]:
        """Nothing more will come of what is open; for ``model_waits`` see ``answered``."""
        # the reply to the results that it waits for is about both
        unanswered = self._unanswered and not (model_waits and self.state in turn_state.WAITING)
        if self._open and self.state is TurnState.GENERATION_COMPLETED:
            yield from self._close(Ending.COMPLETED)
        elif self._open:
            yield from self._close(Ending.CUT)
        self.state = TurnState.IDLE
        self._deadline = self._stalls_at = None
        self._owed_ends = 0
        self._words_over = True
        self._turn_has_content = self._turn_has_speech = self._unanswered = self._was_hushed = False
        if unanswered:
            yield Missed(lack=Lack.LINK)

    # ------------------------------------------------------------ what happens on the way

    def _step(self, sign: Sign) -> None:
        self.state = turn_state.TABLE.get((self.state, sign), self.state)

    def _fell_quiet(self) -> Iterator[Report]:
        self._deadline = None
        if self.state in (TurnState.GENERATION_COMPLETED, TurnState.TRAILING):
            yield from self._close(Ending.COMPLETED)
        if self.state is TurnState.INTERRUPTED:
            self._owed_ends += 1
        self._step(Sign.QUIET)

    def _stalled(self) -> Iterator[Report]:
        cut = self.state is TurnState.GENERATING
        unanswered, self._unanswered = self._unanswered, False
        self._owed_ends += self.state in turn_state.MAY_STALL
        yield from self._close(Ending.CUT if cut else Ending.COMPLETED)
        self._deadline = self._stalls_at = None
        self._turn_has_content = False
        self._words_over = True
        self._step(Sign.STALLED)
        if cut or unanswered:
            # where more may follow, none need
            yield Missed(lack=Lack.REST if cut else Lack.ANSWER)

    def _interrupt(self, now: float) -> Iterator[Report]:
        self._was_hushed = self.state is TurnState.LISTENING
        if not self._was_hushed:
            yield from self._close(Ending.INTERRUPTED)
            self._turn_has_content = False
        self._step(Sign.INTERRUPT)
        if self.state is TurnState.INTERRUPTED:
            self._deadline = now + self.interrupted_pause
        yield BargedIn()

    def _words(self, text: str, now: float) -> Iterator[Report]:
        late = now - self._last_words < self.late_words
        if self.state is TurnState.GENERATION_COMPLETED and self._open is None and not late:
            # a new turn of the caller, before the server ended the one that has been said
            self.state = TurnState.IDLE
            self._owed_ends += 1
        between_turns = self.state in turn_state.NOBODYS
        new_turn = self._words_over and (between_turns or not late)
        if self.state in turn_state.WAITING:
            self._unanswered |= new_turn and now - self._called_at >= self.late_words
        self._last_words = now
        self._words_over = False
        if self.state is TurnState.INTERRUPTED:
            self._owed_ends += 1
        if between_turns:
            self._unanswered = True
            yield from self._open_generation(continues=False)
        self._step(Sign.WORDS)
        yield Heard(text=text, new_turn=new_turn)

    def _content(self, sign: Sign, data: bytes, text: str, now: float) -> Iterator[Report]:
        if self.state is TurnState.INTERRUPTED:
            self._deadline = now + self.interrupted_pause
            return
        if sign is Sign.TEXT and self.state is TurnState.GENERATION_COMPLETED:
            if self._open:
                yield Wrote(generation=self._open.number, text=text)
            return
        if self.state is TurnState.GENERATION_COMPLETED:
            yield from self._close(Ending.COMPLETED)
            yield from self._open_generation(continues=True)
        elif self._open is None:
            yield from self._open_generation(continues=self.state in turn_state.SAME_TURN)
        self._step(sign)
        self._turn_has_speech = True
        yield from self._start()
        assert self._open is not None
        if sign is Sign.AUDIO:
            yield Spoke(generation=self._open.number, data=data)
        else:
            yield Wrote(generation=self._open.number, text=text)
        trailing = self.state is TurnState.TRAILING
        self._deadline = now + self._trailing_quiet if trailing else None

    def _calls(self, calls: tuple[ToolCall, ...]) -> Iterator[Report]:
        if self._open is None:
            yield from self._open_generation(continues=self.state in turn_state.SAME_TURN)
        assert self._open is not None
        yield from self._start()
        yield Called(generation=self._open.number, calls=calls)
        yield from self._close(Ending.COMPLETED)
        self._step(Sign.CALLS)
        self._deadline = None

    def _complete(self, now: float) -> Iterator[Report]:
        if self.state is TurnState.TRAILING:
            yield from self._close(Ending.COMPLETED)
            self._deadline = None
        elif self.state is TurnState.GENERATING and self._open:
            yield AudioEnded(generation=self._open.number)
            self._deadline = now + self._transcript_grace
        self._step(Sign.COMPLETE)

    def _turn_end(self, now: float, *, more_follows: bool) -> Iterator[Report]:
        if self._owed_ends and self.state in turn_state.BEFORE_ITS_OWN_END:
            self._owed_ends -= 1
            return
        self._owed_ends = 0
        tail = self.state in (TurnState.INTERRUPTED, TurnState.HUSHED)
        waiting = self.state in turn_state.WAITING
        yield from self._close(Ending.COMPLETED)
        self._step(Sign.MORE_FOLLOWS if more_follows else Sign.TURN_END)
        self.ended_at = now
        self._deadline = None
        if self._turn_has_speech:
            # the caller was answered: words from now on are none that trail the question
            self._last_words = float("-inf")
        self._turn_has_speech = False
        empty = not self._turn_has_content
        self._turn_has_content = False
        self._words_over = True
        if not tail and not waiting and not (empty and more_follows):
            self._unanswered &= self._was_hushed or not empty
            yield TurnEnded(empty=empty)
        self._was_hushed = False

    def _open_generation(self, *, continues: bool) -> Iterator[Report]:
        self._numbers += 1
        self._open = _Open(number=self._numbers)
        yield Opened(generation=self._numbers, continues=continues)

    def _start(self) -> Iterator[Report]:
        assert self._open is not None
        self._turn_has_content = True
        self._words_over = True
        self._unanswered = self._was_hushed = False
        if not self._open.has_content:
            self._open.has_content = True
            yield Started(generation=self._open.number)

    def _close(self, ending: Ending) -> Iterator[Report]:
        if self._open is None:
            return
        number, self._open = self._open.number, None
        yield Closed(generation=number, ending=ending)
