"""The timeline, the breaches, and waiting for something to become true."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from .records import Breach, TimelineEvent

_T = TypeVar("_T")

_COUNT = re.compile(r"x\d+")

_TIMELINE_SHOWN = 60
"""Latest events shown in an error: enough for any test in the suite, short enough to read."""


class _Waiter:
    def __init__(self, predicate: Callable[[], Any]) -> None:
        self._predicate = predicate
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def look(self) -> None:
        if self.answer.done():
            return
        try:
            answer = self._predicate()
        except Exception as error:
            self.answer.set_exception(error)
        else:
            if answer:
                self.answer.set_result(answer)


class Journal:
    """Records events and wakes who waits for them, at once and in order."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.timeline: list[TimelineEvent] = []
        self.breaches: list[Breach] = []
        self._clock = clock
        self._start = clock()
        self._waiters: list[_Waiter] = []

    def now(self) -> float:
        """Return the seconds since the server started."""
        return self._clock() - self._start

    def log(self, connection: int | None, what: str, detail: str = "") -> None:
        """Append an event. A run of the same audio event becomes one, with a count."""
        event = TimelineEvent(self.now(), connection, what, detail)
        last = self.timeline[-1] if self.timeline else None
        if last and "audio" in what and (last.connection, last.what) == (connection, what):
            count = int(last.detail[1:]) + 1 if _COUNT.fullmatch(last.detail) else 2
            self.timeline[-1] = replace(last, detail=f"x{count}")
        else:
            self.timeline.append(event)
        self.notify()

    def breach(self, connection: int | None, what: str, code: int | None = None) -> None:
        """Record a breach."""
        self.breaches.append(Breach(connection, what, code))
        self.log(connection, "breach", what)

    def notify(self) -> None:
        """Let everyone who waits look again."""
        for waiter in list(self._waiters):
            waiter.look()

    async def until(self, predicate: Callable[[], _T], what: str, timeout: float) -> _T:
        """Return the first true value of ``predicate``; see `GeminiLiveServer.until`."""
        waiter = _Waiter(predicate)
        self._waiters.append(waiter)
        try:
            waiter.look()
            answer: _T = await asyncio.wait_for(waiter.answer, timeout)
            return answer
        except asyncio.TimeoutError:
            raise AssertionError(self.story(f"waited {timeout} s for {what}")) from None
        finally:
            self._waiters.remove(waiter)

    def story(self, headline: str) -> str:
        """Return ``headline`` with the latest part of the timeline below it."""
        shown = self.timeline[-_TIMELINE_SHOWN:]
        left_out = len(self.timeline) - len(shown)
        lines = [f"    … {left_out} earlier events"] if left_out else []
        return "\n".join([headline, "  timeline:", *lines, *(f"    {event}" for event in shown)])
