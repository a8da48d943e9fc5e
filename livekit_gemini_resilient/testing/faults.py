"""Barriers and traps: places where the server stops, or breaks, until the test says otherwise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from .rules import FRAME_KINDS
from .wire import frame_kind


class Barrier:
    """Something held back while an ``async with`` block runs, or until `release`."""

    def __init__(self, until: Callable[..., Coroutine[Any, Any, Any]], what: str) -> None:
        self._until = until
        self._what = what
        self._held: list[Callable[[], None]] = []
        self._up = False
        self.count = 0
        """How many times something has come up against the barrier."""

    @property
    def up(self) -> bool:
        """Whether the barrier holds."""
        return self._up

    async def reached(self, times: int = 1, timeout: float = 10.0) -> None:
        """Return once something has been held (or refused) so many times.

        Args:
            times: how often, counted from the start of the block.
            timeout: seconds.

        Raises:
            AssertionError: it did not happen in time; shows the timeline.
        """
        await self._until(lambda: self.count >= times, f"{self._what} ({times} times)", timeout)

    def release(self) -> None:
        """Let go of what is held, and hold nothing more. Called at the end of the block."""
        self._up = False
        held, self._held = self._held, []
        for let_go in held:
            let_go()

    def stop(self, go_on: Callable[[], None]) -> bool:
        """Hold ``go_on`` back if the barrier is up; used by the simulator.

        Returns:
            Whether it holds; otherwise the caller goes on by itself.
        """
        if self._up:
            self.count += 1
            self._held.append(go_on)
        return self._up

    async def __aenter__(self) -> Barrier:
        self._up = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Refusals(Barrier):
    """Dials that fail while an ``async with`` block runs, or so many times."""

    def __init__(
        self,
        until: Callable[..., Coroutine[Any, Any, Any]],
        *,
        times: int | None,
        code: int,
        reason: str,
    ) -> None:
        super().__init__(until, "a dial to be refused")
        self._left = times
        self.code = code
        self.reason = reason

    def refuses(self, *, upgrade: bool) -> bool:
        """Return whether this dial is refused, at this stage, and count it if so."""
        if not self._up or self._left == 0 or upgrade != (self.code < 1000):
            return False
        self._left = None if self._left is None else self._left - 1
        self.count += 1
        return True


@dataclass(slots=True, kw_only=True)
class Trap:
    """Breaks the connection on the next frame of a kind, once or more often."""

    kind: str
    """``"tool_response"``, ``"client_content"``, ``"context_update"``, ``"setup"``,
    ``"realtime_input"`` or one of its fields as in ``"realtime_input.text"``."""

    code: int | None
    """Close code; ``None`` resets TCP."""

    reason: str
    after: bool
    """Whether the frame is taken in before the connection breaks."""

    holding: str = ""
    """Words that the frame holds, whatever else it does."""

    times: int | None = 1
    """How often; ``None`` for ever."""

    count: int = field(default=0, init=False)
    """How often it has happened."""

    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has happened."""

    armed: bool = field(default=True, init=False)
    """Whether it still waits for its frame."""

    def __post_init__(self) -> None:
        if self.kind not in FRAME_KINDS:
            raise ValueError(f"no frame is a {self.kind!r}; there are {', '.join(FRAME_KINDS)}")

    def take_back(self) -> None:
        """Disarm the trap, because its frame need not come. Nothing happens if it has sprung."""
        self.armed = False

    @property
    def pending(self) -> bool:
        """Whether it waits for its first frame."""
        return self.armed and not self.count

    def spring(self) -> None:
        """Note that its frame has come; used by the simulator."""
        self.count += 1
        self.armed = self.count != self.times
        self.sprung.set()

    def fits(self, frame: dict[str, Any]) -> bool:
        """Return whether the trap waits for such a frame."""
        fits = self.kind in (next(iter(frame), ""), frame_kind(frame))
        return self.armed and fits and self.holding in json.dumps(frame, ensure_ascii=False)


@dataclass(slots=True)
class Faults:
    """What is armed on a server."""

    closes: Barrier | None = None
    dials: Barrier | None = None
    pongs: Barrier | None = None
    refusals: Refusals | None = None
    traps: list[Trap] = field(default_factory=list)
    """Every trap that was set, in order."""

    def trap_for(self, frame: dict[str, Any]) -> Trap | None:
        """Spring the first trap that fits the frame."""
        for trap in self.traps:
            if trap.fits(frame):
                trap.spring()
                return trap
        return None
