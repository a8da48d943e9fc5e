"""What the core asks for: effects in the imperative, to be carried out in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .behaviour import Behaviour
from .errors import ResilienceError
from .events import InputPushed, ToolCall, ToolResult, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Dial:
    """Open a connection."""

    connection: int
    """Its number."""
    delay: float
    """Seconds to wait first."""
    handle: str | None
    """Resume from here; ``None`` opens a fresh session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseConnection:
    """Close the connection; ``ConnectionLost`` is expected when that is done."""

    connection: int
    """The connection to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToolResponse:
    """Write one ``tool_response`` message."""

    results: tuple[ToolResult, ...]
    """One function response each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendContent:
    """Write one ``client_content`` message."""

    turns: tuple[Turn, ...]
    """May be empty: then it only ends the turn."""
    turn_complete: bool
    """Whether the model is to answer now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendText:
    """Write realtime text, which newer families answer like typed speech (observed)."""

    text: str
    """What to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """Write what asks for a ``generate_reply``, if anybody waits for it still."""

    request: int
    """Its number."""
    frame: SendContent | SendText
    """What to write."""
    otherwise: SendContent | SendText | None
    """What to write if nobody does: the history and the results that went along, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateContext:
    """Write the tools and the instructions as they are now: they replace those of the setup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendInput:
    """Write one piece of realtime input."""

    piece: InputPushed
    """As pushed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGeneration:
    """Create a generation and announce it."""

    generation: int
    """Its number."""
    response_id: str
    """Id of the message it will become."""
    input_id: str
    """Id of the caller's message it answers."""
    request: int | None
    """The ``generate_reply`` it answers, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushAudio:
    """Play audio."""

    generation: int
    """Where it belongs."""
    data: bytes
    """24 kHz mono s16le."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushText:
    """Show the transcript of the model's speech."""

    generation: int
    """Where it belongs."""
    text: str
    """The next piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushCall:
    """Have a tool run."""

    generation: int
    """The generation that carries the call."""
    call: ToolCall
    """The call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAudio:
    """No more audio will come for that generation."""

    generation: int
    """Which one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndGeneration:
    """The generation is over: close its streams and record what was said."""

    generation: int
    """Which one."""
    interrupted: bool
    """It was cut before it was complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcribe:
    """Report what the caller said."""

    item_id: str
    """Id of the caller's message."""
    text: str
    """All of it so far."""
    is_final: bool
    """Whether it is to be recorded. A late word may make a message final a second time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSpeechStarted:
    """Tell the framework that the caller spoke: it stops playout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSpeechStopped:
    """Tell the framework that the caller's turn is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportUsage:
    """Emit metrics of the generation that was opened last."""

    usage: object
    """As received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReconnected:
    """The conversation goes on over another connection."""

    connection: int
    """Its number."""
    resumed: bool
    """Whether the server restored the conversation from a handle."""


class Outcome(Enum):
    """What became of one answer to a call. Each ends in exactly one of these.

    A second answer to the same call is one of its own, as is the answer that refuses a call.
    """

    REPLIED = "replied"
    """The model knows it and finished its reply."""
    KNOWN = "known"
    """The model knows it; no reply was wanted, or the caller interrupted it."""
    HISTORY = "history"
    """It came as a part of an older conversation and was recorded as such."""
    DUPLICATE = "duplicate"
    """The call had an answer already; this one was dropped."""
    HANDED_OVER = "handed over"
    """The agent was replaced before the caller heard a reply; it is left to the session of the
    agent that follows."""
    UNANSWERED = "unanswered"
    """The model stayed silent, also when asked a second time; an error was reported."""
    UNDELIVERED = "undelivered"
    """The conversation ended before anything showed that the model knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOutcome:
    """Say what became of a tool result."""

    call_id: str
    """The call."""
    outcome: Outcome
    """What became of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailReply:
    """Fail a ``generate_reply``."""

    request: int
    """Which one."""
    error: ResilienceError
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportError:
    """Emit an error event; the conversation is over unless it is recoverable."""

    error: ResilienceError
    """What happened."""
    recoverable: bool
    """Whether the conversation goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLearned:
    """Say what this server was seen to do otherwise than was taken for granted."""

    behaviour: Behaviour
    """All that is known of it now."""


OurFrame = SendToolResponse | SendContent | SendText | SendRequest | UpdateContext
"""What is written of ours: all but the caller's input."""

Effect = (
    Dial
    | CloseConnection
    | OurFrame
    | SendInput
    | OpenGeneration
    | PushAudio
    | PushText
    | PushCall
    | EndAudio
    | EndGeneration
    | Transcribe
    | ReportSpeechStarted
    | ReportSpeechStopped
    | ReportUsage
    | ReportReconnected
    | ReportOutcome
    | FailReply
    | ReportError
    | ReportLearned
)
