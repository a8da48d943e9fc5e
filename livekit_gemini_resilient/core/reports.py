"""What the turn tracker reports: what the caller and the model did, generation by generation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .events import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A generation began to exist."""

    generation: int
    """Its number."""
    continues: bool
    """It goes on with the turn before it: nobody spoke in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The first real content of a generation."""

    generation: int
    """Its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoke:
    """Audio of the model."""

    generation: int
    """Where it belongs."""
    data: bytes
    """24 kHz mono s16le."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """Transcript of the model."""

    generation: int
    """Where it belongs."""
    text: str
    """The next piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The model called functions."""

    generation: int
    """The generation that carries them."""
    calls: tuple[ToolCall, ...]
    """In order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioEnded:
    """No more audio in that generation."""

    generation: int
    """Which one."""


class Ending(Enum):
    """How a generation ended."""

    COMPLETED = "completed"
    """By itself."""
    INTERRUPTED = "interrupted"
    """The server stopped it."""
    CUT = "cut"
    """Its connection ended, or it stopped in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """A generation is over."""

    generation: int
    """Which one."""
    ending: Ending
    """How it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Words of the caller."""

    text: str
    """The next piece."""
    new_turn: bool
    """They do not belong to what the caller said before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BargedIn:
    """The server reported that the caller interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """The server ended a turn."""

    empty: bool
    """The model said and called nothing in it."""


class Lack(Enum):
    """What the caller waits for in vain."""

    ANSWER = "answer"
    """Nothing came after the caller's words."""
    REST = "rest"
    """The model stopped in the middle."""
    LINK = "link"
    """The connection ended between the caller's words and the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """What the caller waits for will not come by itself any more."""

    lack: Lack
    """What it is."""


Report = (
    Opened
    | Started
    | Spoke
    | Wrote
    | Called
    | AudioEnded
    | Closed
    | Heard
    | BargedIn
    | TurnEnded
    | Missed
)
