"""One call and what became of it; the rules are in ``delivery``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from .events import ToolCall, ToolResult


class Known(Enum):
    """Does the model have the result?"""

    NO = "no"
    """Not told, or told on a connection that ended before anything showed that it arrived."""
    TOLD = "told"
    """Written to the present connection."""
    KNOWN = "known"
    """The model has spoken since."""


class Reply(Enum):
    """Are words about the result still owed?"""

    NONE = "none"
    """None wanted."""
    DUE = "due"
    """Owed, not begun."""
    STARTED = "started"
    """Being spoken."""
    DONE = "done"
    """Spoken, or interrupted by the caller."""


class Route(Enum):
    """How a result was put before the model."""

    RESPONSE = "response"
    """A ``tool_response`` on the connection that issued the call."""
    SETTLE = "settle"
    """A ``tool_response`` on a resumed connection; often without effect."""
    SAY = "say"
    """Words of a marked user turn."""


@dataclass(slots=True)
class Record:
    """One call and what became of it."""

    call: ToolCall
    """The call; made up from its result if it was never issued here."""
    issued_on: int
    """Connection that issued it, 0 if none of this conversation did."""
    asked_as: str = ""
    """Id under which the server waits for the answer: that of the call, or a later one under
    which it was issued again."""
    result: ToolResult | None = None
    """``None`` while the tool runs."""
    known: Known = Known.NO
    """Does the model have the result?"""
    reply: Reply = Reply.NONE
    """Are words about it still owed?"""
    told_on: int = 0
    """Connection on which it was told last."""
    route: Route | None = None
    """How it was told last."""
    responded_on: set[int] = field(default_factory=set)
    """Connections that got a ``tool_response`` with its id."""
    asked_again: bool = False
    """The model was silent and has been asked once more."""
    refusals: int = 0
    """Connections that were closed as invalid straight after they were told the result."""
    cancelled: bool = False
    """The server wants no answer any more."""
    spoken: str = ""
    """What the caller heard of a reply that was cut."""
    answer_by: float | None = None
    """When the model is no longer left waiting for it, in loop seconds."""
    unheard: int = 0
    """Replies about it that nobody took."""
    released: bool = False
    """The model was told not to wait; the result, if it comes, is put into words."""
    has_outcome: bool = False
    """What became of the result was reported; that the server asks again changes nothing."""
    is_closed: bool = False
    """A response was seen to arrive: no exchange is left open, whatever of the result is known."""

    def __post_init__(self) -> None:
        """A call is waited for under its own id, until it is issued again."""
        self.asked_as = self.asked_as or self.call.call_id

    def issued_again(self, asked_as: str, connection: int) -> None:
        """The server makes the call once more, and waits for the answer there."""
        self.asked_as, self.issued_on = asked_as, connection
        self.responded_on.discard(connection)
        self.known, self.answer_by = Known.NO, None
        self.released = self.is_closed = self.cancelled = False
        if self.result is not None and self.result.reply_required:
            self.reply = Reply.DUE

    @property
    def running(self) -> bool:
        """Whether the tool runs, as far as anybody waits for it."""
        return self.result is None and not self.cancelled and not self.released

    @property
    def owed(self) -> bool:
        """Whether the model is owed this result and has not been told it."""
        return self.result is not None and self.known is Known.NO

    def waits_on(self, connection: int) -> bool:
        """Whether this connection issued the call and waits for a response to it."""
        asked = self.issued_on == connection and not self.cancelled
        return asked and connection not in self.responded_on

    def is_told_on(self, connection: int) -> bool:
        """Whether the model was told it there and was not seen to know it."""
        return self.known is Known.TOLD and self.told_on == connection

    @property
    def call_as_asked(self) -> ToolCall:
        """The call with the id under which the server waits for the answer."""
        return replace(self.call, call_id=self.asked_as)

    @property
    def is_silent(self) -> bool:
        """Whether the model was told it and has not begun to speak about it."""
        return self.known is Known.TOLD and self.reply is Reply.DUE

    @property
    def waits_for_reply(self) -> bool:
        """Whether the model was told it and has not finished speaking about it."""
        return self.known is Known.TOLD and self.reply in (Reply.DUE, Reply.STARTED)
