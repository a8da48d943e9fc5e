"""Results whose reply the caller has not heard when a realtime session is closed.

LiveKit closes a session to give the next agent, or a model that is swapped in, one of its own,
and lets the reply to the last tool result pass by. The two sessions know of each other only
through the ``AgentSession`` that listens to both, or through the calls in the chat context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from livekit.agents import Agent, AgentSession

from .core.events import HistoryItem, ToolCall, ToolResult

HandedOver = tuple[tuple[ToolCall, ToolResult], ...]
"""Results, each with the call that it answers."""

_KEPT = 60.0
"""Seconds for which a reply stays due after its session was closed: a swap takes a few."""

_left: WeakKeyDictionary[AgentSession[Any], tuple[float, HandedOver]] = WeakKeyDictionary()
_due: dict[str, float] = {}


@dataclass(slots=True, eq=False)
class Listener:
    """An agent that takes the generations of a realtime session."""

    agent: Agent
    """The agent."""
    agent_session: AgentSession[Any]
    """The call that it takes part in."""
    is_over: bool = False
    """The call has ended; the ``AgentSession`` may begin another."""

    @classmethod
    def of(cls, callback: Callable[..., Any] | None) -> Listener | None:
        """The agent behind a listener, ``None`` if it is none of LiveKit's activities."""
        activity = getattr(callback, "__self__", None)
        agent, agent_session = getattr(activity, "agent", None), getattr(activity, "session", None)
        if not isinstance(agent, Agent) or not isinstance(agent_session, AgentSession):
            return None
        listener = cls(agent, agent_session)
        agent_session.once("close", listener._end)
        return listener

    @property
    def is_replaced(self) -> bool:
        """Whether another agent takes over; none does that was on its way when the call ended."""
        return not self.is_over and self.agent_session.current_agent is not self.agent

    def keep(self, results: HandedOver) -> None:
        """Keep results for the realtime session of the next agent."""
        _left[self.agent_session] = (time.monotonic(), (*self.take(), *results))

    def take(self) -> HandedOver:
        """Take what the agent before this one left; not what one left long ago, if agents without
        a realtime model of ours came in between."""
        since, results = _left.pop(self.agent_session, (0.0, ()))
        return results if time.monotonic() - since <= _KEPT else ()

    def _end(self, _: object) -> None:
        self.is_over = True
        _left.pop(self.agent_session, None)


def leave(listener: Listener | None, results: HandedOver) -> bool:
    """A session is closed that owes the caller replies to these results.

    Returns:
        Whether it is known that an agent follows that takes them.
    """
    if listener is not None and listener.is_replaced:
        listener.keep(results)
        return True
    now = time.monotonic()
    for call_id in [known for known, since in _due.items() if now - since > _KEPT]:
        del _due[call_id]
    _due.update({call.call_id: now for call, _ in results})
    return False


def take_due(items: Iterable[HistoryItem]) -> frozenset[str]:
    """Calls in a chat context to which a session that was closed lately owed a reply.

    The ids are the server's and random, so a context that has one belongs to that conversation.
    """
    results = (item.result for item in items if item.result is not None)
    return frozenset(
        result.call_id
        for result in results
        if time.monotonic() - _due.pop(result.call_id, float("-inf")) <= _KEPT
    )
