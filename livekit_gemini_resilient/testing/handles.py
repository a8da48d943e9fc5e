"""Resumption handles: snapshots of what the model knew, and what has become of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from .records import Entry, IssuedCall


class Snapshot(NamedTuple):
    """What a handle stands for."""

    conversation: str
    context: tuple[Entry, ...]
    """All that the model knew, calls without an answer included."""

    pending: tuple[IssuedCall, ...]
    """The calls that were open."""

    issued: float
    """When, in seconds since the server started."""

    def known(self, *, keeps_pending: bool) -> list[Entry]:
        """Return what a resumed connection knows.

        Args:
            keeps_pending: whether open calls are in it. By default a handle never holds one
                (documented: none is usable while a call executes).
        """
        left_out = set() if keeps_pending else {call.key for call in self.pending}
        return [e for e in self.context if not (e.kind == "call" and e.call_id in left_out)]


class Handles:
    """The handles this server has issued."""

    def __init__(self) -> None:
        self._snapshots: dict[str, Snapshot] = {}
        self._forgotten: set[str] = set()
        self._poisoned: set[str] = set()

    def issue(
        self,
        conversation: str,
        context: Iterable[Entry],
        pending: Iterable[IssuedCall],
        now: float,
    ) -> str:
        """Return a new handle (a UUID, recorded) for a context and its open calls."""
        handle = str(uuid.uuid4())
        self._snapshots[handle] = Snapshot(conversation, tuple(context), tuple(pending), now)
        return handle

    def recall(self, handle: str) -> Snapshot | None:
        """Return what the handle stands for; ``None`` if this server never issued it."""
        return self._snapshots.get(handle)

    def forget(self) -> None:
        """Refuse every handle issued so far."""
        self._forgotten |= self._snapshots.keys()

    def forgotten(self, handle: str) -> bool:
        """Return whether the handle is refused."""
        return handle in self._forgotten

    def poison(self) -> None:
        """Spoil every handle issued so far."""
        self._poisoned |= self._snapshots.keys()

    def poisoned(self, handle: str) -> bool:
        """Return whether what is resumed from the handle never speaks."""
        return handle in self._poisoned
