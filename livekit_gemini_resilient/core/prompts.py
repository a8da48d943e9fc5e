"""How are words of ours put before the model, and which of them did it hear?

Words that ask for speech go out as client content or, where this server was seen to need it, as
realtime text. Realtime text is repeated by newer families as if the caller had said it
(observed); such an echo is recognised here.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import wording
from .behaviour import Observed, Trigger
from .effects import Effect, SendContent, SendText
from .events import Turn
from .record import Record, Route


class Prompts:
    """The words of ours on one connection.

    Args:
        observed: What this server is known to do.
    """

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._last: Trigger | None = None
        self._on_trial: Trigger | None = None
        self._history_phase = False
        self._caller_turn_open = False
        self._texts: list[str] = []
        self._echo = ""

    # ------------------------------------------------------------ what happened

    @property
    def can_inform(self) -> bool:
        """Whether the model can be told something without being asked to speak."""
        return self._history_phase or self._observed.behaviour.content_at_any_time

    def connection_opened(self, *, announces_history: bool = False) -> None:
        """A new connection heard nothing of ours yet.

        Args:
            announces_history: Its setup announced that client content comes first, as history.
        """
        self._history_phase = announces_history
        self._last = None
        self._caller_turn_open = False
        self._on_trial = None
        self._texts.clear()
        self._echo = ""

    def frame_received(self) -> None:
        """The server said something after our last words."""
        if self._last is not None:
            self._observed.taken()
        self._last = None

    def history_is_told(self) -> None:
        """Anything may be written from now on: what comes is no initial history."""
        self._history_phase = False

    def model_spoke(self) -> None:
        """The model answers: no turn of the caller is open any more."""
        if self._on_trial is not None:
            self._observed.answered(self._on_trial)
            self._on_trial = None
        self._caller_turn_open = False
        self._echo = ""

    def caller_spoke(self) -> None:
        """What the model says next tells nothing about words of ours."""
        self._on_trial = None

    def connection_refused(self) -> None:
        """The connection was closed for what it was sent, straight after words of ours or not."""
        if self._last is not None:
            self._observed.refused(self._last)

    def is_echo(self, words: str) -> bool:
        """Whether the caller's words are realtime text of ours, piece by piece."""
        self._echo += words
        if wording.is_echo(self._echo, self._texts):
            return True
        self._echo = ""
        return False

    # ------------------------------------------------------------ what is written

    def inform(self, turns: tuple[Turn, ...]) -> list[Effect]:
        """Tell the model what it does not know of the conversation, without asking for speech."""
        if not turns:
            return []
        self._caller_turn_open = turns[-1].role == "user"
        self._last = Trigger.CLIENT_CONTENT
        # the end of the announced history is marked, and starts no inference (documented)
        ends, self._history_phase = self._history_phase, False
        return [SendContent(turns=turns, turn_complete=ends)]

    def say(
        self, records: Sequence[Record], turns: tuple[Turn, ...], request: str | None = None
    ) -> list[Effect]:
        """Put results before the model in words, after what it does not know of the rest.

        Args:
            records: What to tell.
            turns: The rest.
            request: Instructions for the reply, ``None`` if there are none.
        """
        text = wording.say(records, request)
        return self._trigger(self._observed.trigger, text, turns)

    def remind(self, records: Sequence[Record]) -> list[Effect]:
        """Ask a silent model again: by the other way if words were tried already."""
        said = any(record.route is Route.SAY for record in records)
        trigger = self._observed.other_trigger if said else self._observed.trigger
        effects = self._trigger(trigger, wording.remind(records), ())
        self._on_trial = trigger if said else None
        return effects

    def ask(
        self, instructions: str | None, turns: tuple[Turn, ...], *, otherwise: bool = False
    ) -> list[Effect]:
        """Ask for a reply; ending the caller's open turn is enough if there is one.

        Args:
            instructions: What the reply is to be about, ``None`` for what was said last.
            turns: What the model does not know of the conversation.
            otherwise: The usual way was answered by an empty turn; if the other is answered by
                speech, it becomes the usual one.
        """
        words = wording.reply_now(instructions)
        if not otherwise:
            return self._end_turn(words, turns, with_words=instructions is not None)
        effects = self._trigger(self._observed.other_trigger, words, turns)
        self._on_trial = self._last
        return effects

    def steer(self, instructions: str | None) -> list[Effect]:
        """Say what a reply that is asked for otherwise is to be about.

        Args:
            instructions: See ``ask``; ``can_inform`` if there are any.
        """
        if instructions is None:
            return []
        return self.inform((Turn(role="user", parts=(wording.reply_now(instructions),)),))

    def answer_caller(self, begun: str, turns: tuple[Turn, ...]) -> list[Effect]:
        """Ask for the answer that the caller waits for.

        Args:
            begun: What the model had said before it stopped.
            turns: What the model does not know of the conversation.
        """
        return self._end_turn(wording.answer_now(begun), turns, with_words=bool(begun))

    def _end_turn(self, words: str, turns: tuple[Turn, ...], *, with_words: bool) -> list[Effect]:
        """Have the caller's turn answered: where one is open, to end it is enough, unless the
        words say more than that."""
        open_turn = turns[-1].role == "user" if turns else self._caller_turn_open
        trigger = self._observed.trigger
        suffices = open_turn and trigger is Trigger.CLIENT_CONTENT and not with_words
        return self._trigger(trigger, None if suffices else words, turns)

    def _trigger(self, trigger: Trigger, text: str | None, turns: tuple[Turn, ...]) -> list[Effect]:
        if trigger is Trigger.REALTIME_TEXT and text is not None:
            effects = self.inform(turns) if self.can_inform else []
            if turns and not effects:
                text = wording.retold(turns, text)
            self._texts.append(text)
            effects.append(SendText(text=text))
        else:
            words = () if text is None else (Turn(role="user", parts=(text,)),)
            effects = [SendContent(turns=(*turns, *words), turn_complete=True)]
        self._last = trigger
        self._caller_turn_open = False
        return effects
