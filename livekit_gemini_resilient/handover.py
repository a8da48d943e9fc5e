"""Which agent takes the generations of a realtime session, and what is left to the one after it.

Two sessions know of each other only through the ``AgentSession`` that listens to both, or through
the calls in the chat context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from livekit.agents import Agent, AgentSession

from .core.events import HistoryItem
from .core.owed import HandedOver, OwedReplies

_owed: OwedReplies[AgentSession[Any]] = OwedReplies(WeakKeyDictionary())

_watched: WeakSet[AgentSession[Any]] = WeakSet()
"""Calls whose end is known to be heard of."""


@dataclass(slots=True, eq=False)
class Listener:
    """An agent that takes the generations of a realtime session."""

    agent: Agent
    """The agent."""
    agent_session: AgentSession[Any]
    """The call that it takes part in."""
    is_over: bool = False
    """The call has ended; the ``AgentSession`` may begin another."""
    _heard: dict[Any, Callable[[Any], None]] = field(default_factory=dict)

    @classmethod
    def of(cls, callback: Callable[..., Any] | None) -> Listener | None:
        """The agent behind a listener, ``None`` if it is none of LiveKit's activities."""
        activity = getattr(callback, "__self__", None)
        agent, agent_session = getattr(activity, "agent", None), getattr(activity, "session", None)
        if not isinstance(agent, Agent) or not isinstance(agent_session, AgentSession):
            return None
        return cls(agent, agent_session)

    def join(self, **hear: Callable[[Any], None]) -> None:
        """The agent takes generations from now on.

        Args:
            hear: What to do at events of the call, by name, until ``leave``.
        """
        call = self.agent_session
        self._heard = {"close": self._end, **hear}
        for event, callback in self._heard.items():
            call.on(event, callback)
        if call not in _watched:
            _watched.add(call)
            call.on("close", lambda _: _owed.call_ended(call))

    def leave(self) -> None:
        """The agent takes no more of them; a call may see many agents, and keeps none of them."""
        for event, callback in self._heard.items():
            self.agent_session.off(event, callback)

    @property
    def is_replaced(self) -> bool:
        """Whether another agent takes over; none does that was on its way when the call ended."""
        return not self.is_over and self.agent_session.current_agent is not self.agent

    def take(self) -> HandedOver:
        """Take what the agent before this one left."""
        return _owed.take_left(self.agent_session, now=time.monotonic())

    def _end(self, _: object) -> None:
        self.is_over = True


def leave(listener: Listener | None, results: HandedOver) -> bool:
    """A session is closed that owes the caller replies to these results.

    Returns:
        Whether it is known that an agent follows that takes them.
    """
    now = time.monotonic()
    if listener is not None and listener.is_replaced:
        _owed.leave_to_next(listener.agent_session, results, now=now)
        return True
    _owed.leave_open((call.call_id for call, _ in results), now=now)
    return False


def take_due(items: Iterable[HistoryItem]) -> frozenset[str]:
    """Calls in a chat context to which a session that was closed lately owed a reply."""
    answered = (item.result.call_id for item in items if item.result is not None)
    return _owed.take_due(answered, now=time.monotonic())
