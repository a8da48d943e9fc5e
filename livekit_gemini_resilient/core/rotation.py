"""May the connection be replaced now?

Requests coalesce: they are remembered until the safe point that ``restart_when`` names, and one
new connection carries them all. Every wait ends at a deadline, also on a silent server.

==============  ==============================================================================
``"now"``       at once, as the google plugin does; what is cut is told again
``"pause"``     as soon as the model neither speaks nor owes a reply to the caller's words or to
                a result it was told
``"turn_end"``  when the turn is over, every call is answered and every reply is spoken
``"auto"``      ``"pause"`` for a change that the very next reply must obey and that comes while
                a call is open; the next rotation, whatever it is for, where functions were only
                removed, since calls of them are refused until then; ``"turn_end"`` for everything
                else
==============  ==============================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from .events import RestartCause


class RestartWhen(Enum):
    """The safe point at which a restart takes effect; see the module."""

    AUTO = "auto"
    """Chosen per request."""
    PAUSE = "pause"
    """When the model is silent, also while a tool runs."""
    TURN_END = "turn_end"
    """When the exchange is over."""
    NOW = "now"
    """At once."""


class ToolUpdate(Enum):
    """How a connection learns of other tools and instructions."""

    RECONNECT = "reconnect"
    """A new one is set up with them."""
    CONTEXT_UPDATE = "context_update"
    """They are sent to the present one, where the SDK and the server can do that."""


HANDLE_GRACE = 0.25
"""Seconds. A handle that covers a turn follows its end by 20 to 70 ms (observed); with it the next
connection need not be told the turn again as text."""

_OBEYED_AT_ONCE = frozenset({RestartCause.TOOLS, RestartCause.INSTRUCTIONS})
"""What the next reply must already obey."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the decision is made from."""

    speaking: bool
    """The model is in the middle of a generation, or the caller waits for one, or speaks."""
    turn_over: bool
    """The server has ended the turn, or none is open."""
    call_open: bool
    """This connection waits for the result of a call."""
    reply_due: bool
    """The model was told a result and has not finished speaking about it, or was asked to speak and
    has not begun."""
    settling: bool
    """What was left over from the connection before is being told."""
    resumable: bool = False
    """There is a handle for the next connection."""
    handle_until: float = 0.0
    """Until when a handle that covers the last turn may be on its way, in loop seconds."""


class Rotation:
    """Restart requests of one conversation.

    Args:
        when: The safe point.
        max_defer: Seconds for which a request waits at most, counted from the last moment at
            which a call was open: the reply to its result is not cut.
        margin: Seconds before the end that the server announced at which the wait is over; half
            of a notice that is shorter than twice that.
        max_age: Seconds after which a connection is replaced unasked, if it can be resumed;
            ``None`` for never. A fresh session knows the history as text only, so without a handle
            a certain loss would be the price of a possible one.
    """

    def __init__(
        self, *, when: RestartWhen, max_defer: float, margin: float, max_age: float | None = None
    ) -> None:
        self._when = when
        self._max_defer = max_defer
        self._margin = margin
        self._max_age = max_age
        self._expires_at: float | None = None
        self._waits_since: float | None = None
        self._at_pause = False
        self._go_away: float | None = None

    @property
    def requested(self) -> bool:
        """Whether a restart is waiting."""
        return self._waits_since is not None

    @property
    def waits_for_no_call(self) -> bool:
        """Whether a request is waiting that is served although a call is open."""
        at_once = self._at_pause or self._when in (RestartWhen.NOW, RestartWhen.PAUSE)
        return self.requested and at_once

    def request(
        self, cause: RestartCause, *, call_open: bool, now: float, transition: bool = False
    ) -> None:
        """Remember a request; it joins one that is waiting already.

        Args:
            cause: What it is for.
            call_open: A call is open, whose reply is to obey what has changed.
            now: Loop seconds.
            transition: So it is, whatever has changed: see ``transitions``.
        """
        self._at_pause |= transition
        if self._when is RestartWhen.AUTO and cause is RestartCause.FEWER_TOOLS and not transition:
            return
        if self._waits_since is None:
            self._waits_since = now
        if self._when is RestartWhen.AUTO and cause in _OBEYED_AT_ONCE and call_open:
            self._at_pause = True

    def go_away(self, time_left: float, *, now: float) -> None:
        """The server will close the connection in ``time_left`` seconds."""
        if math.isfinite(time_left):
            deadline = now + time_left - min(self._margin, time_left / 2)
            self._go_away = deadline if self._go_away is None else min(self._go_away, deadline)
        self.request(RestartCause.GO_AWAY, call_open=False, now=now)

    def connection_opened(self, *, now: float) -> None:
        """A connection begins to age."""
        self._expires_at = None if self._max_age is None else now + self._max_age

    def connection_ended(self) -> None:
        """The next connection is configured from scratch: every request is served."""
        self._expires_at = None
        self._waits_since = None
        self._at_pause = False
        self._go_away = None

    def due(self, situation: Situation, *, now: float) -> bool:
        """Whether the connection is to be closed now."""
        if self._is_too_old(situation, now):
            self.request(RestartCause.AGE, call_open=situation.call_open, now=now)
        if self._waits_since is None:
            return False
        if situation.call_open:
            self._waits_since = now
        deadline = self.next_deadline(situation)
        if deadline is not None and now >= deadline:
            return True
        if self._when is RestartWhen.NOW:
            return True
        if situation.speaking or situation.reply_due or situation.settling:
            return False
        if self._when is RestartWhen.PAUSE or self._at_pause:
            return True
        return _exchange_is_over(situation) and now >= situation.handle_until

    def next_deadline(self, situation: Situation) -> float | None:
        """When the wait for the safe point is over, ``None`` if nothing waits or may end it."""
        if self._waits_since is None:
            return self._expires_at if situation.resumable else None
        bounds = []
        if not situation.call_open:
            bounds.append(self._waits_since + self._max_defer)
        if self._go_away is not None:
            bounds.append(self._go_away)
        if _exchange_is_over(situation):
            bounds.append(situation.handle_until)
        return min(bounds, default=None)

    def _is_too_old(self, situation: Situation, now: float) -> bool:
        return self._expires_at is not None and situation.resumable and now >= self._expires_at


def _exchange_is_over(situation: Situation) -> bool:
    busy = situation.speaking or situation.reply_due or situation.settling
    return situation.turn_over and not situation.call_open and not busy
