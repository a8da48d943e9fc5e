"""The futures that ``generate_reply`` hands out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from livekit.agents import llm


class Replies:
    """Every pending future, by the number of its request; each is decided once.

    Args:
        withdrawn: Called with the number of a request whose future was cancelled from outside.
    """

    def __init__(self, withdrawn: Callable[[int], None]) -> None:
        self._withdrawn = withdrawn
        self._pending: dict[int, asyncio.Future[llm.GenerationCreatedEvent]] = {}
        self._count = 0

    def ask(self) -> tuple[int, asyncio.Future[llm.GenerationCreatedEvent]]:
        """A new request and its future."""
        self._count += 1
        number = self._count
        reply = asyncio.get_running_loop().create_future()
        self._pending[number] = reply
        reply.add_done_callback(lambda _: self._decided(number))
        return number, reply

    def awaited(self, number: int) -> bool:
        """Whether anybody waits for that request."""
        reply = self._pending.get(number)
        return reply is not None and not reply.done()

    def answer(self, number: int, created: llm.GenerationCreatedEvent) -> bool:
        """Hand over a generation; whether anyone waited for it."""
        reply = self._pending.pop(number, None)
        if reply is None or reply.done():
            return False
        reply.set_result(created)
        return True

    def fail(self, number: int, error: Exception) -> None:
        """Fail a request with ``llm.RealtimeError``, as LiveKit expects."""
        reply = self._pending.pop(number, None)
        if reply is not None and not reply.done():
            failure = llm.RealtimeError(str(error))
            failure.__cause__ = error
            reply.set_exception(failure)

    def fail_all(self, error: Exception) -> None:
        """Fail everything that is pending."""
        for number in list(self._pending):
            self.fail(number, error)

    def _decided(self, number: int) -> None:
        if self._pending.pop(number, None) is not None:
            self._withdrawn(number)
