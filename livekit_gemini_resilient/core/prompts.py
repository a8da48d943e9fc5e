"""How are words of ours put before the model, and which of them did it hear?

Words that ask for speech go out as client content or, where this server was seen to need it, as
realtime text. Realtime text is repeated by newer families as if the caller had said it
(observed); such an echo is recognised here.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import wording
from .behaviour import Behaviour, Trigger
from .effects import Effect, SendContent, SendText
from .events import Turn
from .record import Record, Reply, Route


class Prompts:
    """The words of ours on one connection.

    Args:
        behaviour: What this server is known to do.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._last: Trigger | None = None
        self._on_trial: Trigger | None = None
        self._caller_turn_open = False
        self._texts: list[str] = []
        self._echo = ""

    # ------------------------------------------------------------ what happened

    def connection_opened(self) -> None:
        """A new connection heard nothing of ours yet."""
        self._last = None
        self._caller_turn_open = False
        self._on_trial = None
        self._texts.clear()
        self._echo = ""

    def frame_received(self) -> None:
        """The server said something after our last words."""
        self._last = None

    def model_spoke(self) -> None:
        """The model answers: no turn of the caller is open any more."""
        if self._on_trial is not None:
            self._behaviour.trigger, self._on_trial = self._on_trial, None
        self._caller_turn_open = False
        self._echo = ""

    def caller_spoke(self) -> None:
        """What the model says next tells nothing about words of ours."""
        self._on_trial = None

    def connection_refused(self) -> None:
        """The connection was closed for what it was sent, straight after words of ours or not."""
        if self._last is not None:
            self._behaviour.refused(self._last)

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
        return [SendContent(turns=turns, turn_complete=False)]

    def say(self, records: Sequence[Record], turns: tuple[Turn, ...]) -> list[Effect]:
        """Put results before the model in words, after what it does not know of the rest."""
        reply = any(record.reply is Reply.DUE for record in records)
        text = wording.say(records, reply=reply)
        if reply:
            return self._trigger(self._behaviour.trigger, text, turns)
        said = Turn(role="user", parts=(text,))
        return [SendContent(turns=(*turns, said), turn_complete=False)]

    def remind(self, records: Sequence[Record]) -> list[Effect]:
        """Ask a silent model again: by the other way if words were tried already."""
        said = any(record.route is Route.SAY for record in records)
        trigger = self._behaviour.other_trigger if said else self._behaviour.trigger
        return self._trigger(trigger, wording.remind(records), ())

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
        if otherwise:
            effects = self._trigger(
                self._behaviour.other_trigger, wording.reply_now(instructions), turns
            )
            self._on_trial = self._last
            return effects
        if instructions is None and self._ends_turn(turns):
            return self._trigger(Trigger.CLIENT_CONTENT, None, turns)
        return self._trigger(self._behaviour.trigger, wording.reply_now(instructions), turns)

    def answer_caller(self, begun: str, turns: tuple[Turn, ...]) -> list[Effect]:
        """Ask for the answer that the caller waits for.

        Args:
            begun: What the model had said before it stopped.
            turns: What the model does not know of the conversation.
        """
        if not begun and self._ends_turn(turns):
            return self._trigger(Trigger.CLIENT_CONTENT, None, turns)
        return self._trigger(self._behaviour.trigger, wording.answer_now(begun), turns)

    def _ends_turn(self, turns: tuple[Turn, ...]) -> bool:
        """Whether to end the caller's turn is enough to have it answered."""
        open_turn = turns[-1].role == "user" if turns else self._caller_turn_open
        return open_turn and self._behaviour.trigger is Trigger.CLIENT_CONTENT

    def _trigger(self, trigger: Trigger, text: str | None, turns: tuple[Turn, ...]) -> list[Effect]:
        if trigger is Trigger.REALTIME_TEXT and text is not None:
            effects = self.inform(turns)
            self._texts.append(text)
            effects.append(SendText(text=text))
        else:
            words = () if text is None else (Turn(role="user", parts=(text,)),)
            effects = [SendContent(turns=(*turns, *words), turn_complete=True)]
        self._last = trigger
        self._caller_turn_open = False
        return effects
