"""What the server has seen and done, for the test to judge."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

Trigger: TypeAlias = Literal[
    "client_content", "realtime_text", "caller", "activity_end", "tool_response"
]
"""What made the model think: client content with ``turn_complete``, realtime text, the caller's
words, a manual end of activity, or the answer to the last open call."""


class Closed(NamedTuple):
    """How a connection ended."""

    code: int
    """Websocket close code; 1006 when the socket went without a close frame."""

    reason: str
    """Reason in the close frame."""

    by: Literal["client", "server"]
    """Who began it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing the model knows."""

    kind: Literal["user", "model", "call", "result", "system"]
    """Whose: said by the caller or in a user turn, said by the model, a call of the model, its
    result, or a turn of the role ``system``."""

    text: str
    """The words; of a result, the values in it, line by line."""

    call_id: str = ""
    """Of a call and of its result: `IssuedCall.key`."""


def times_in(context: list[Entry] | tuple[Entry, ...], text: str) -> int:
    """Return how many results and user entries of ``context`` contain ``text``."""
    return sum(entry.kind in ("user", "result") and text in entry.text for entry in context)


@dataclass(slots=True, eq=False)
class IssuedCall:
    """A function call that the model issued."""

    id: str
    """In the family's style; empty where calls carry none."""

    name: str
    """The function."""

    args: dict[str, Any]
    """Its arguments."""

    connection: int
    """Number of the connection it was issued on."""

    blocking: bool = True
    """Whether the model is silent until it is answered."""

    key: str = ""
    """Tells it apart from every other call: its id, or a made-up one if it has none."""

    answered: bool = False
    """Whether a response was accepted that was not marked ``will_continue``."""

    cancelled: bool = False
    """Whether the server cancelled it."""

    def __post_init__(self) -> None:
        self.key = self.key or self.id or str(uuid.uuid4())

    @property
    def open(self) -> bool:
        """Whether the model still waits for it, as long as its connection lives."""
        return not (self.answered or self.cancelled)


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """One function response that a client sent."""

    connection: int
    """Number of the connection it came on."""

    id: str
    """As sent; empty if there was none."""

    name: str
    """As sent; empty if there was none."""

    response: Any
    """The result, as sent."""

    verdict: Literal["accepted", "ignored", "duplicate", "adopted", "settled"]
    """Accepted: it answered an open call of its own connection. Ignored: no such call there, or it
    was cancelled. Duplicate: the call had been answered on this connection. No such call there, but
    the profile says so: adopted, the model took the result all the same; settled, it took the
    response without the result."""

    scheduling: str = ""
    """As sent, in the response or inside its result; empty if it was not."""

    will_continue: bool = False
    """Whether more responses to the call were announced."""


@dataclass(slots=True, eq=False)
class Reply:
    """One speech of the model that a `Say` step produced."""

    connection: int
    """Number of the connection it was spoken on."""

    trigger: Trigger
    """What started the inference, or the part of the turn after a tool response."""

    context: tuple[Entry, ...]
    """All that the model knew when it began to speak."""

    text: str = ""
    """What has been said so far."""

    completed: bool = False
    """Whether ``generationComplete`` was sent."""

    interrupted: bool = False
    """Whether it was cut short by the caller or by client content."""

    def knew(self, text: str) -> bool:
        """Return whether a result or the user's side had told the model ``text`` by then."""
        return times_in(self.context, text) > 0


@dataclass(frozen=True, slots=True)
class Breach:
    """Something that the client, or the script, should not have done."""

    connection: int | None
    """Number of the connection; ``None`` if it concerns none."""

    what: str
    """What was wrong."""

    code: int | None = None
    """The close code it was refused with; ``None`` if the service lets it pass."""


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One thing that happened."""

    at: float
    """Seconds since the server started."""

    connection: int | None
    """Number of the connection; ``None`` if it concerns none."""

    what: str
    """The event, as in ``"received client_content"`` or ``"sent serverContent.turnComplete"``."""

    detail: str = ""
    """More about it, cut short; ``"x7"`` for a run of seven audio messages."""

    def __str__(self) -> str:
        who = "server" if self.connection is None else f"connection {self.connection}"
        return f"{self.at:8.3f}  {who:<14}{self.what}" + (f"  {self.detail}" if self.detail else "")


@dataclass(slots=True, eq=False)
class Connection:
    """One websocket that a client opened, refused dials included."""

    number: int
    """From 1, in the order of the dials."""

    setup: dict[str, Any] = field(default_factory=dict)
    """The setup, keys in snake_case; empty until it has arrived."""

    accepted: bool = False
    """Whether the setup was answered."""

    resumed_from: str | None = None
    """The handle it was resumed from; ``None`` if it started afresh."""

    declared_tools: set[str] = field(default_factory=set)
    """Names of the functions declared in the setup, or in the latest context update."""

    behaviors: dict[str, str] = field(default_factory=dict)
    """The ``behavior`` that those declarations name, by function; without those that name none."""

    frames: list[dict[str, Any]] = field(default_factory=list)
    """Every frame the client sent, setup included, keys in snake_case."""

    tool_responses: list[ToolResponse] = field(default_factory=list)
    """Every function response received, with its verdict."""

    context: list[Entry] = field(default_factory=list)
    """What the model knows; restored from the handle if there was one."""

    restored: int = 0
    """How many entries of the context the handle restored."""

    handles: list[str] = field(default_factory=list)
    """Every handle issued on it."""

    poisoned: bool = False
    """Whether the handle was poisoned: the model hears, and never speaks."""

    closing: bool = False
    """Whether the client has asked to close and has not been answered."""

    closed: Closed | None = None
    """How it ended; ``None`` while it is open."""

    conversation: str = ""
    """Which server-side conversation it belongs to; a resumed one keeps it."""

    @property
    def open(self) -> bool:
        """Whether the client can use it: the setup was answered and nobody has closed it."""
        return self.accepted and not self.closing and self.closed is None

    def knows(self, text: str) -> bool:
        """Return whether a result or the user's side has told the model ``text``."""
        return times_in(self.context, text) > 0

    def times_told(self, text: str) -> int:
        """Return how often the model was told ``text`` on this connection, the restored context
        left out."""
        return times_in(self.context[self.restored :], text)
