"""What a turn is made of: the waits of an inference, and what it has generated so far."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from .dialect import Dialect, Message
from .records import Entry
from .script import CHUNK_SECONDS


class Wait(Protocol):
    """A place where an inference may have to wait."""

    def arm(self, go_on: Callable[[], None]) -> bool:
        """Return whether it has to; ``go_on`` is called when it can go on."""


class Answers:
    """Waits for the answers to open calls; `ScriptedModel.go_on` goes on."""

    def arm(self, go_on: Callable[[], None]) -> bool:
        """Wait."""
        return True


class Pace:
    """Waits for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def arm(self, go_on: Callable[[], None]) -> bool:
        """Wait."""
        asyncio.get_running_loop().call_later(self._seconds, go_on)
        return True


Inference: TypeAlias = Iterator[Wait]
"""Sends messages, and yields where it may have to wait."""


class Turn:
    """Counts what has been generated in a turn."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._chunks = 0
        self._calls = 0
        self._thoughts = 0

    def speak(self, chunks: int) -> None:
        """Count audio messages."""
        self._chunks += chunks

    def call(self, calls: int) -> None:
        """Count function calls."""
        self._calls += calls

    def think(self, summary: str) -> None:
        """Count a thought, if the family does."""
        if self._dialect.counts_thoughts:
            self._thoughts += len(summary.split())

    def usage(self, context: Iterable[Entry]) -> Message:
        """Return the usage of the turn, its prompt being what the model knows."""
        return self._dialect.usage(
            prompt=1 + sum(len(entry.text.split()) for entry in context),
            seconds=CHUNK_SECONDS * self._chunks,
            calls=self._calls,
            thoughts=self._thoughts,
        )
