"""Resumption handles: snapshots of what the model knew."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from .records import Entry


class Snapshot(NamedTuple):
    """What a handle stands for."""

    conversation: str
    context: tuple[Entry, ...]


class Handles:
    """The handles this server has issued. They do not expire."""

    def __init__(self) -> None:
        self._snapshots: dict[str, Snapshot] = {}

    def issue(self, conversation: str, context: Iterable[Entry], open_calls: Iterable[str]) -> str:
        """Return a new handle (a UUID, recorded) that covers ``context`` less the open calls.

        A handle never holds an open call (documented: none is usable while a call executes).
        """
        handle = str(uuid.uuid4())
        unanswered = set(open_calls)
        kept = (e for e in context if not (e.kind == "call" and e.call_id in unanswered))
        self._snapshots[handle] = Snapshot(conversation, tuple(kept))
        return handle

    def recall(self, handle: str) -> Snapshot | None:
        """Return what the handle stands for; ``None`` if this server never issued it."""
        return self._snapshots.get(handle)
