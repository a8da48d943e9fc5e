"""``generate_reply`` requests: asked once, answered or failed in time, never a ghost.

One request is on its way at a time; a newer one supersedes it, as in LiveKit's other plugins. A
request that is waiting, or was written to a connection that ended, is asked (again) on the next
connection. One that is answered by an empty turn is asked once more in another way; the turn counts
as its answer only if the request was on the wire before that turn began, with nothing older
unfinished.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .effects import Effect, FailReply
from .errors import ReplyRefused

ANSWER_WITHIN = 5.0
"""Seconds from writing to the first content of the reply; the google plugin's own value."""

WRITE_WITHIN = 30.0
"""Seconds for which a request may wait to be written: longer than any reconnect that succeeds."""


class ReplyDuringCall(Enum):
    """What becomes of a request while a tool runs that the model waits for.

    LiveKit withholds the tool's result until the reply ends, so to wait for it would be a deadlock.
    """

    FAIL = "fail"
    """It fails at once."""
    INTERIM = "interim"
    """The call is answered "still running", the reply is spoken, the result is told later."""


@dataclass(slots=True)
class _Request:
    number: int
    instructions: str | None
    requested_at: float
    written_at: float | None = None
    came_first: bool = False
    asked_otherwise: bool = False
    rides: bool = False

    @property
    def deadline(self) -> float:
        if self.written_at is None:
            return self.requested_at + WRITE_WITHIN
        return self.written_at + ANSWER_WITHIN


class Requests:
    """The one ``generate_reply`` that a session may have under way."""

    def __init__(self) -> None:
        self._request: _Request | None = None

    @property
    def waiting(self) -> bool:
        """Whether a request is to be written."""
        request = self._request
        return request is not None and request.written_at is None and not request.rides

    @property
    def written(self) -> bool:
        """Whether a request waits for its generation."""
        return self._request is not None and self._request.written_at is not None

    @property
    def under_way(self) -> bool:
        """Whether there is one, written or not."""
        return self._request is not None

    @property
    def asked_otherwise(self) -> bool:
        """Whether the usual way of asking was tried in vain."""
        return self._request is not None and self._request.asked_otherwise

    @property
    def instructions(self) -> str | None:
        """Instructions of the request under way."""
        return self._request.instructions if self._request else None

    @property
    def next_deadline(self) -> float | None:
        """When the request under way fails."""
        return self._request.deadline if self._request else None

    def add(self, number: int, instructions: str | None, *, now: float) -> list[Effect]:
        """Take a request; one that was under way fails."""
        failed = self.fail("a newer generate_reply took its place", "call it once per reply")
        self._request = _Request(number=number, instructions=instructions, requested_at=now)
        return failed

    def ride_on(self, number: int | None) -> None:
        """The end of the caller's activity, which waits to be written, asks for that request."""
        if self._request:
            self._request.rides = self._request.number == number

    def rides(self, number: int) -> bool:
        """Whether that request is asked for by the end of the caller's activity."""
        request = self._request
        return request is not None and request.rides and request.number == number

    def withdraw(self, number: int) -> None:
        """Nobody waits for it any more."""
        if self._request and self._request.number == number:
            self._request = None

    def mark_written(self, *, now: float, came_first: bool = False) -> int:
        """It is on the wire.

        Args:
            now: Loop seconds.
            came_first: Nothing older is unfinished: the next turn is the answer to it.

        Returns:
            Its number; 0 if there is none.
        """
        if self._request is None:
            return 0
        self._request.written_at, self._request.rides = now, False
        self._request.came_first = came_first
        return self._request.number

    def call_came(self) -> None:
        """The model called a function that does not run: an empty turn may belong to that call."""
        if self._request:
            self._request.came_first = False

    def answered_by_nothing(self) -> list[Effect]:
        """An empty turn ended: ask once more in the other way, then give up."""
        if not self.written or self._request is None or not self._request.came_first:
            return []
        if self._request.asked_otherwise:
            return self.fail("the model answered with an empty turn, twice", "give instructions")
        self._request.asked_otherwise = True
        self._request.written_at = None
        return []

    def answer(self) -> int | None:
        """A generation begins: the number of the request that it answers."""
        if not self.written or self._request is None:
            return None
        number, self._request = self._request.number, None
        return number

    def connection_lost(self) -> None:
        """What was written there is to be written again."""
        if self._request:
            self._request.written_at = None

    def advance(self, *, now: float) -> list[Effect]:
        """Fail the request if its time is over."""
        if self._request is None or now < self._request.deadline:
            return []
        if self.written:
            return self.fail("the model began no reply in time", "try again")
        return self.fail("it could not be sent in time", "try again when the session is connected")

    def fail(self, reason: str, advice: str) -> list[Effect]:
        """Fail whatever is under way."""
        if self._request is None:
            return []
        number, self._request = self._request.number, None
        return [FailReply(request=number, error=ReplyRefused(reason, advice))]
