"""Results whose reply the caller has not heard when an agent hands over to the next.

LiveKit gives the next agent a realtime session of its own if its tools differ, closes the old one
and lets the reply to the tool result pass by. The two sessions know of each other only through
the ``AgentSession`` that listens to both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from livekit.agents import Agent, AgentSession

from .core.events import ToolCall, ToolResult

HandedOver = tuple[tuple[ToolCall, ToolResult], ...]
"""Results, each with the call that it answers."""

_left: WeakKeyDictionary[AgentSession[Any], HandedOver] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Listener:
    """An agent that takes the generations of a realtime session."""

    agent: Agent
    """The agent."""
    agent_session: AgentSession[Any]
    """The call that it takes part in."""

    @classmethod
    def of(cls, callback: Callable[..., Any] | None) -> Listener | None:
        """The agent behind a listener, ``None`` if it is none of LiveKit's activities."""
        activity = getattr(callback, "__self__", None)
        agent, agent_session = getattr(activity, "agent", None), getattr(activity, "session", None)
        if isinstance(agent, Agent) and isinstance(agent_session, AgentSession):
            return cls(agent, agent_session)
        return None

    @property
    def is_replaced(self) -> bool:
        """Whether another agent takes over."""
        return self.agent_session.current_agent is not self.agent

    def leave(self, results: HandedOver) -> None:
        """Leave results to the realtime session of the next agent."""
        if results:
            _left[self.agent_session] = (*_left.get(self.agent_session, ()), *results)
            # the next agent may use no realtime model of ours, and the session may start anew
            self.agent_session.once("close", self._forget)

    def take(self) -> HandedOver:
        """Take what the agent before this one left."""
        return _left.pop(self.agent_session, ())

    def _forget(self, _: object) -> None:
        self.take()
