"""Replies that a session owed the caller when it was closed: who takes them, and until when?

LiveKit closes a session to give the next agent, or a model that is swapped in, one of its own, and
lets the reply to the last tool result pass by. Where an agent follows in the same call, its session
takes the results; else the session whose first chat context has the calls does, since their ids
are the server's and random. What nobody takes within ``KEPT`` is not owed any more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, MutableMapping
from typing import Generic, TypeVar

from .events import ToolCall, ToolResult

HandedOver = tuple[tuple[ToolCall, ToolResult], ...]
"""Results, each with the call that it answers."""

CallT = TypeVar("CallT", bound=Hashable)
"""What stands for the call that agents take part in, one after the other."""

KEPT = 60.0
"""Seconds for which a reply stays due after its session was closed: a swap takes a few."""


class OwedReplies(Generic[CallT]):
    """What closed sessions left.

    Times are seconds of one clock, whichever it is.

    Args:
        left: Where to keep what is left to the next agent of a call, with the time; empty.
    """

    def __init__(self, left: MutableMapping[CallT, tuple[float, HandedOver]]) -> None:
        self._left = left
        self._due: dict[str, float] = {}

    def leave_to_next(self, call: CallT, results: HandedOver, *, now: float) -> None:
        """A session is closed, and another agent of the call follows."""
        self._left[call] = (now, (*self.take_left(call, now=now), *results))

    def take_left(self, call: CallT, *, now: float) -> HandedOver:
        """Take what the agent before left; not what one left long ago, if agents without a
        realtime model of ours came in between."""
        since, results = self._left.pop(call, (now, ()))
        return results if now - since <= KEPT else ()

    def call_ended(self, call: CallT) -> None:
        """What begins under the same name is another call."""
        self._left.pop(call, None)

    def leave_open(self, call_ids: Iterable[str], *, now: float) -> None:
        """A session is closed, and nobody is known to follow."""
        self._due = {known: since for known, since in self._due.items() if now - since <= KEPT}
        self._due.update(dict.fromkeys(call_ids, now))

    def take_due(self, call_ids: Iterable[str], *, now: float) -> frozenset[str]:
        """Which of these calls of a chat context a reply is due to; nobody else takes it then."""
        taken = {call_id: self._due.pop(call_id) for call_id in {*call_ids} & self._due.keys()}
        return frozenset(call_id for call_id, since in taken.items() if now - since <= KEPT)
