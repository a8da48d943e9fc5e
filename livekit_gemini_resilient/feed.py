"""How the core is run: events in, effects out in order, and one timer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from .core.conversation import Conversation
from .core.effects import Effect
from .core.events import Event


class Feed:
    """Feeds a conversation, and has carried out what it decides.

    Args:
        conversation: The core.
        run: Carries out one effect. It may cause events, whose effects follow those that wait.
    """

    def __init__(self, conversation: Conversation, run: Callable[[Effect], None]) -> None:
        self._conversation = conversation
        self._run = run
        self._effects: deque[Effect] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._ends = False
        self.is_running = False
        """Whether an effect is being carried out: what happens meanwhile may be its consequence."""

    @property
    def is_armed(self) -> bool:
        """Whether the timer runs."""
        return self._timer is not None

    def start(self) -> None:
        """Begin the conversation."""
        self._carry_out(self._conversation.start())

    def receive(self, event: Event) -> None:
        """Something happened."""
        self._carry_out(self._conversation.receive(event, now=self._now()))

    def close(self, *, handed_over: bool = False) -> None:
        """End the conversation; see ``Conversation.close``."""
        self._carry_out(self._conversation.close(handed_over=handed_over))

    def end(self) -> None:
        """Arm no timer any more; call ``stop`` when nothing happens any more."""
        self._ends = True

    def stop(self) -> None:
        """Stop the timer, and leave what waits undone."""
        self._disarm()
        self._effects.clear()

    def _advance(self) -> None:
        self._timer = None
        self._carry_out(self._conversation.advance(now=self._now()))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _carry_out(self, effects: list[Effect]) -> None:
        """Run all effects in order, also those that a listener of an effect causes."""
        self._effects.extend(effects)
        if self.is_running:
            return
        self.is_running = True
        try:
            while self._effects:
                self._run(self._effects.popleft())
        finally:
            self.is_running = False
        self._arm()

    def _arm(self) -> None:
        self._disarm()
        deadline = self._conversation.next_deadline
        if deadline is not None and not self._ends:
            self._timer = asyncio.get_running_loop().call_at(deadline, self._advance)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
