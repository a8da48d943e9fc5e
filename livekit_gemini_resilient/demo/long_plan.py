"""A long conversation, turn by turn: what the caller says, what the model does, what happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from ..testing import Call, Gate, Say
from ..testing.script import Step


class Event(Enum):
    """What happens in one turn."""

    NOTHING = "nothing"
    NOTICE_IN_REPLY = "goAway in mid-sentence"
    NOTICE_IN_TOOL = "goAway while a tool runs"
    VOICE = "another voice, in mid-sentence"
    TOOLS = "a tool adds a tool"
    TASK = "a tool awaits an AgentTask"
    HAND_OFF = "a tool hands over to another agent"
    DROP_IDLE = "drop after a reply"
    DROP_UNANSWERED = "drop between the caller's words and the answer"
    DROP_IN_REPLY = "drop in mid-sentence"
    DROP_IN_TOOL = "drop while a tool runs"
    DROP_AT_RESPONSE = "drop at a tool response"
    DROP_AFTER_RESPONSE = "drop right after a tool response"
    DROP_IN_ANSWER = "drop while the result is told"

    @property
    def is_drop(self) -> bool:
        """Whether the connection is lost."""
        return self.name.startswith("DROP")

    @property
    def replaces(self) -> bool:
        """Whether another connection of the same session follows."""
        return self not in (Event.NOTHING, Event.TASK, Event.HAND_OFF)


DROPS = [event for event in Event if event.is_drop]

NOTICES = [Event.NOTICE_IN_REPLY, Event.NOTICE_IN_TOOL]

TURNS_A_MINUTE = 3
"""The server announces its end once in as many turns that are otherwise left alone."""

_IN_SENTENCE = 10
"""Chunks of audio before the gate, of 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of the caller."""

    number: int
    """From 1."""
    event: Event
    """What happens in it."""
    gate: Gate = field(default_factory=Gate)
    """Where the model stops for it, if it happens in mid-sentence."""

    @property
    def words(self) -> str:
        """What the caller says."""
        return f"This is question {self.number:02}."

    @property
    def fact(self) -> str:
        """What the tool returns."""
        return f"fact {self.number:02}"

    @property
    def cut(self) -> str:
        """What the model says until the connection is lost."""
        return f"This is cut {self.number:02}."

    @property
    def reply(self) -> str:
        """What the model says to the end."""
        return f"This is answer {self.number:02}."

    @property
    def is_cut(self) -> bool:
        """Whether what the model says cannot but be cut."""
        return self.event in (Event.DROP_IN_REPLY, Event.DROP_IN_ANSWER)

    @property
    def tellings(self) -> int:
        """How often the model may hear of the result: where its words about it are cut and it is
        asked to go on, the request names the result, which the handle may hold as well."""
        return 2 if self.event is Event.DROP_IN_ANSWER else 1

    @property
    def is_answered(self) -> bool:
        """Whether the model says something to the end."""
        return self.event is not Event.DROP_IN_REPLY

    @property
    def uses_tool(self) -> bool:
        """Whether a result is to be told."""
        return any(isinstance(step, Call) for step in self.script)

    @property
    def script(self) -> list[Step]:
        """What the model does."""
        call, reply = Call("look_up", {"number": self.number}), Say(self.reply)
        cut = Say(self.cut, audio_seconds=0.8, gate=self.gate, gate_after=_IN_SENTENCE)
        unheard = Say("Nobody hears this.")
        match self.event:
            case Event.NOTICE_IN_REPLY | Event.VOICE:
                return [Say(self.reply, audio_seconds=0.8, gate=self.gate, gate_after=10)]
            case Event.DROP_UNANSWERED:
                return [Say(self.cut, gate=self.gate, gate_after=0), reply]
            case Event.DROP_IN_REPLY:
                return [cut]
            case Event.DROP_IN_ANSWER:
                return [call, cut, reply]
            case Event.NOTHING | Event.DROP_IDLE:
                return [reply]
            case Event.HAND_OFF:
                return [Call("transfer", {"number": self.number}), unheard, reply]
            case Event.TASK:
                return [call, Say("Do you agree?"), Call("agree"), unheard, reply]
        return [call, reply]


def plan(seed: int, *, drops: int = 10, minutes: int = 4) -> list[Turn]:
    """A conversation.

    Args:
        seed: The same seed, the same conversation.
        drops: How often the connection is lost.
        minutes: How often the server announces its end.
    """
    random = Random(seed)
    others = [*random.choices(DROPS, k=drops), Event.VOICE, Event.TOOLS, Event.TASK, Event.HAND_OFF]
    random.shuffle(others)
    events = list(_with_notices(others, minutes, random))
    return [Turn(number=n, event=event) for n, event in enumerate([*events, Event.NOTHING], 1)]


def _with_notices(events: list[Event], minutes: int, random: Random) -> Iterator[Event]:
    for number, event in enumerate(events, 1):
        yield event
        if number % TURNS_A_MINUTE == 0 and number // TURNS_A_MINUTE <= minutes:
            yield random.choice(NOTICES)
