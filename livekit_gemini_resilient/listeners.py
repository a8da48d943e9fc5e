"""A listener that fails costs the conversation nothing.

LiveKit's emitter logs what a listener raises and goes on to the next, but for a ``TypeError``,
which it passes on to whoever emitted the event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .context import logger


class Guarded:
    """A listener as LiveKit's emitter knows it: equal to the callback, which ``off`` is given.

    Args:
        callback: What the user, or LiveKit, listens with.
    """

    def __init__(self, callback: Callable[..., Any]) -> None:
        # the emitter looks at the signature, and so at that of the callback
        self.__wrapped__ = callback

    def __call__(self, *args: Any) -> None:
        """Call it."""
        try:
            self.__wrapped__(*args)
        except TypeError:
            logger.exception("a listener of the session failed")

    def __eq__(self, other: object) -> bool:
        """Whether it is the same callback."""
        callback = other.__wrapped__ if isinstance(other, Guarded) else other
        return bool(self.__wrapped__ == callback)

    def __hash__(self) -> int:
        """That of the callback."""
        return hash(self.__wrapped__)
