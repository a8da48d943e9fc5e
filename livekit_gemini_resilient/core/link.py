"""Which connection is there, and what follows when it ends?

The old connection has ended before the next one is dialed: a resume was observed to be refused
with 1011 while the earlier socket was open.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from . import recovery
from .effects import CloseConnection, Dial, Effect, ReportError, ReportReconnected
from .errors import ConnectionFailed
from .events import ConnectionLost
from .settings import Settings


class LinkState(Enum):
    """Where the connection of a conversation stands."""

    DOWN = "down"
    """Not started."""
    DIALING = "dialing"
    """Waiting to dial, or dialing."""
    SETTLING = "settling"
    """Resumed; the exchanges left open are being closed."""
    OPEN = "open"
    """Anything may be written."""
    CLOSING = "closing"
    """Being replaced on purpose."""
    ENDED = "ended"
    """Given up."""


class LinkSign(Enum):
    """What leads from one state to the next."""

    DIAL = "dial"
    """The next connection is to be opened: at the start, after a failure, or on purpose."""
    OPENED = "setup answered"
    """The server answered the setup."""
    SETTLE = "exchanges left open"
    """The connection was resumed with exchanges left open, and their responses were written."""
    SETTLED = "settled"
    """They had their effect, or will have none."""
    CLOSE = "replace"
    """The connection is to be replaced on purpose."""
    END = "give up"
    """The session was closed, or no retry can help."""


_S, _E = LinkState, LinkSign

_TRY = 2
"""Retries that must be left before a setup that may well be refused: for what follows it, and one
to spare."""

TABLE: dict[tuple[LinkState, LinkSign], LinkState] = {
    (_S.DOWN, _E.DIAL): _S.DIALING,
    (_S.DOWN, _E.END): _S.ENDED,
    (_S.DIALING, _E.OPENED): _S.OPEN,
    (_S.DIALING, _E.DIAL): _S.DIALING,
    (_S.DIALING, _E.END): _S.ENDED,
    (_S.OPEN, _E.SETTLE): _S.SETTLING,
    (_S.OPEN, _E.CLOSE): _S.CLOSING,
    (_S.OPEN, _E.DIAL): _S.DIALING,
    (_S.OPEN, _E.END): _S.ENDED,
    (_S.SETTLING, _E.SETTLED): _S.OPEN,
    (_S.SETTLING, _E.CLOSE): _S.CLOSING,
    (_S.SETTLING, _E.DIAL): _S.DIALING,
    (_S.SETTLING, _E.END): _S.ENDED,
    (_S.CLOSING, _E.DIAL): _S.DIALING,
    (_S.CLOSING, _E.END): _S.ENDED,
}
"""A pair that is not here leaves the state as it is."""


class Link:
    """The connections of one conversation, one after the other.

    Args:
        handle: A resumption handle to begin with.
        max_retry: How many dials may follow a failed one before the conversation is given up.
        retry_interval: Seconds between the first of them; see ``recovery.backoff``.
        random: Makes a number from 0 to 1, for the jitter of the back-off.
        young: See ``recovery.YOUNG``.
    """

    def __init__(
        self,
        *,
        handle: str | None,
        max_retry: int,
        retry_interval: float,
        random: Callable[[], float],
        young: float = recovery.YOUNG,
    ) -> None:
        self.state = LinkState.DOWN
        self.number = 0
        """The present connection."""
        self.handle = handle
        """The newest usable resumption handle."""
        self.resumed = False
        """Whether the present connection was dialed with a handle."""
        self.ever_opened = False
        """Whether any connection was."""
        self.settings = Settings(searches=max_retry >= _TRY)
        """What the next setup carries."""
        self._max_retry = max_retry
        self._retry_interval = retry_interval
        self._random = random
        self._young = young
        self._opened_at: float | None = None
        self._attempts = 0

    def _step(self, sign: LinkSign) -> None:
        self.state = TABLE.get((self.state, sign), self.state)

    @property
    def is_up(self) -> bool:
        """Whether the server listens."""
        return self.state in (LinkState.OPEN, LinkState.SETTLING)

    @property
    def has_ended(self) -> bool:
        """Whether there will be no other connection."""
        return self.state is LinkState.ENDED

    def dial(self, *, delay: float = 0.0) -> Effect:
        """Open the next connection, ``delay`` seconds from now."""
        self.number += 1
        self._step(LinkSign.DIAL)
        self.resumed = self.handle is not None
        self._opened_at = None
        return Dial(connection=self.number, delay=delay, handle=self.handle)

    def opened(self, *, now: float) -> list[Effect]:
        """The server answered the setup."""
        first, self.ever_opened = not self.ever_opened, True
        self._step(LinkSign.OPENED)
        self._opened_at = now
        report = self.settings.accepted(self.number)
        if first:
            return report
        return [ReportReconnected(connection=self.number, resumed=self.resumed), *report]

    def settle(self) -> None:
        """Exchanges left open are being closed: until ``settled`` nothing else is written."""
        self._step(LinkSign.SETTLE)

    def settled(self) -> None:
        """They are closed, or will not be: anything may be written."""
        self._step(LinkSign.SETTLED)

    def close(self) -> Effect:
        """Replace the connection on purpose."""
        self._step(LinkSign.CLOSE)
        return CloseConnection(connection=self.number)

    def end(self) -> None:
        """There will be no other connection."""
        self._step(LinkSign.END)

    def progressed(self) -> None:
        """The model finished a turn: the retry budget is restored."""
        self._attempts = 0

    def tries_settings(self) -> bool:
        """Whether to replace the connection by one that declares more of what is new; asked again
        and again, answered with yes once."""
        may_fail = self._attempts + _TRY <= self._max_retry
        return self.state is LinkState.OPEN and may_fail and self.settings.try_next()

    def lost(self, event: ConnectionLost, *, now: float) -> list[Effect]:
        """The connection ended, or a dial failed."""
        if self.state is LinkState.CLOSING:
            return [self.dial()]
        alive = 0.0 if self._opened_at is None else now - self._opened_at
        self._attempts = 1 if alive >= recovery.STABLE else self._attempts + 1
        failure = self._failure(event, alive)
        verdict = recovery.judge(failure, attempts=self._attempts, max_retry=self._max_retry)
        fatal = verdict is recovery.Verdict.FATAL
        advice = recovery.advice(
            failure, named=self.settings.named(event.reason), declared=self.settings.declared
        )
        error = ConnectionFailed(event.code, event.reason, self._attempts, advice)
        report = ReportError(error=error, recoverable=not fatal)
        if fatal:
            self._step(LinkSign.END)
            return [report]
        if failure.tells_against_settings:
            left = self._attempts < self._max_retry
            self.settings.refused(
                self.number, event.reason, again=left, by_server=not event.invalid
            )
        elif self._opened_at is None and event.code in recovery.SETTINGS_REFUSED:
            self.settings.refused_again()
        if verdict is recovery.Verdict.FRESH:
            self.handle = None
        delay = recovery.backoff(
            self._attempts, interval=self._retry_interval, jitter=self._random()
        )
        return [report, self.dial(delay=delay)]

    def _failure(self, event: ConnectionLost, alive: float) -> recovery.Failure:
        """What is known of a connection that ended after it was open for so many seconds."""
        opened = self._opened_at is not None
        new = event.invalid or self.settings.are_new(self.number)
        return recovery.Failure(
            code=event.code,
            invalid=event.invalid,
            first=not self.ever_opened,
            resumed=self.resumed,
            young=not opened or alive < self._young,
            opened=opened,
            timed_out=event.timed_out,
            settling=self.state is LinkState.SETTLING,
            new_settings=not opened and new,
        )
