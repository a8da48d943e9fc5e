"""What follows from a connection that failed?

===================================  =======  ==================================================
what was seen                        verdict  source
===================================  =======  ==================================================
setup cannot be made                 FATAL    local; no retry can help
new settings, 1007, 1008 or HTTP 400 RETRY    with those accepted last; see ``settings``
the same where it cannot be made     RETRY    likewise
first dial, 1007 or 1008             FATAL    bad setup, model or API (observed)
the same with a caller's handle      FRESH    an expired handle looks like that; tried once
first dial, HTTP 400, 401, 403, 404  FATAL    bad key, path or model (HTTP semantics)
handle offered, closed at once       FRESH    1007 on a rejected resume (observed, one report)
handle taken, cut at once, again     FRESH    inferred: a network would hardly do that twice
handle offered, no answer, last try  FRESH    bound: a setup may never be answered (observed)
handle offered, HTTP status          RETRY    the dial ended before the handle was sent (protocol)
closed for responses that settle     RETRY    inferred: it was our frame, not the handle
any other close, time-out or abort   RETRY    with the handle that is left, if any; what was written
                                              last is not repeated for ever, see ``suspects``
budget used up                       FATAL    bound
===================================  =======  ==================================================

The budget is restored by progress (a finished turn, a stable minute), never by the mere arrival
of a message, so that a server whose sockets die young is not dialed for ever.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What to do next."""

    RETRY = "retry"
    """Dial again, with the handle if there is one."""
    FRESH = "fresh"
    """Dial again, and forget the handle."""
    FATAL = "fatal"
    """Give up."""


YOUNG = 5.0
"""Seconds. A connection that is closed within them after it was resumed tells against its handle:
poisoned ones were observed to fail on the first exchange."""

STABLE = 60.0
"""Seconds after which a connection counts as progress although no turn has ended on it."""

FRAME_REFUSED = frozenset({1007, 1008})
"""Close codes by which the service answers a frame that it does not take (observed)."""

FRAME_INVALID = frozenset({1007, 1009})
"""Close codes that leave no doubt that a frame was the cause: its bytes (observed), or its size
(RFC 6455, 7.4.1)."""

_SETUP_REFUSED = frozenset({1007, 1008, 400, 401, 403, 404})
"""Codes on the first dial that no repetition can change; their sources are in the table."""

SETTINGS_REFUSED = frozenset({1007, 1008, 400})
"""Those of them that a schema, a voice or another setting can be to blame for."""

_CLOSE_CODES = 1000
"""The first of the close codes of websockets; smaller codes are HTTP statuses."""

_HANDLE_REFUSED = frozenset({1007, 1008})
"""Those of them that a handle can be to blame for."""

_INVALID = 1007
"""Close code for a setup that cannot be served as it is (observed)."""

_NOT_FOUND = 1008
"""Close code for a model that the API does not have (observed)."""

_ADVICE = {
    _INVALID: "the server refused the setup; check the API key, tools, modalities and options",
    _NOT_FOUND: "check that the model exists on this API (Gemini API or Vertex AI) and its version",
    401: "check the API key or the credentials",
    403: "check the API key or the credentials, and that the API is enabled",
    429: "a quota or a rate limit is exhausted",
    404: "check the base URL, the API version and the model",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A connection that ended without our doing."""

    code: int | None
    """Close code or HTTP status, ``None`` for a time-out, an abort or a refused socket."""
    invalid: bool
    """The setup could not be made."""
    first: bool
    """No connection of this conversation was ever opened."""
    resumed: bool
    """A handle was offered."""
    young: bool
    """It lived for less than ``YOUNG`` seconds, or was never opened."""
    opened: bool = True
    """The server answered its setup."""
    timed_out: bool = False
    """Nobody answered the dial, or the setup, in time."""
    settling: bool = False
    """It was being told of exchanges that another connection left open."""
    new_settings: bool = False
    """Its setup, never answered, carried settings that no accepted one did."""

    @property
    def tells_against_settings(self) -> bool:
        """Whether the settings are the first to suspect; others are known to work."""
        refused = self.invalid or self.code in SETTINGS_REFUSED
        return self.new_settings and not self.first and refused


def judge(failure: Failure, *, attempts: int, max_retry: int) -> Verdict:
    """What follows from a failure.

    Args:
        failure: What was seen.
        attempts: Failures since the last progress, this one included.
        max_retry: How many of them may be followed by another dial.
    """
    if failure.tells_against_settings and attempts <= max_retry:
        return Verdict.RETRY
    if failure.invalid:
        return Verdict.FATAL
    handle_refused = failure.resumed and failure.code in _HANDLE_REFUSED
    if failure.first and failure.code in _SETUP_REFUSED and not handle_refused:
        return Verdict.FATAL
    if attempts > max_retry:
        return Verdict.FATAL
    if failure.settling and failure.code in FRAME_REFUSED:
        return Verdict.RETRY
    last = attempts == max_retry
    return Verdict.FRESH if _tells_against_handle(failure, attempts, last) else Verdict.RETRY


def _tells_against_handle(failure: Failure, attempts: int, last: bool) -> bool:
    """Whether a connection that was dialed with a handle may have failed because of it."""
    if not (failure.resumed and failure.young):
        return False
    if failure.timed_out:
        # so does a dead network: the handle goes when nothing else is left to try
        return last and attempts > 1
    if failure.code is None:
        return failure.opened and attempts > 1
    return failure.code >= _CLOSE_CODES


def advice(
    failure: Failure, *, named: Collection[str] = (), declared: Collection[str] = ()
) -> str | None:
    """What the user can change, ``None`` if nothing is known.

    Args:
        failure: What was seen.
        named: Functions that the reason points at.
        declared: Functions that the setup declared.
    """
    if failure.first and failure.code in SETTINGS_REFUSED:
        if named:
            return (
                f"change or remove tool(s) {', '.join(sorted(named))}, which the reason points at"
            )
        if declared and failure.code != _NOT_FOUND:
            return f"{_ADVICE[_INVALID]}; the tools were {', '.join(declared)}"
    if failure.invalid:
        return "no setup can be made of these tools and options; change what the reason names"
    if failure.code in FRAME_REFUSED and not failure.first:
        return "the server refused something that it was sent, or the handle it was given"
    return _ADVICE.get(failure.code) if failure.code is not None else None


def backoff(attempt: int, *, interval: float, jitter: float) -> float:
    """Seconds to wait before a dial.

    Args:
        attempt: Failures since the last progress; the wait after the first one is 0.1 s at most.
        interval: Seconds between the repetitions after the first, doubled each time up to 8 times.
        jitter: 0 to 1; half of the wait is spread by it, so that many callers do not dial at once.
    """
    base = 0.1 if attempt <= 1 else interval * min(8, 2 ** (attempt - 2))
    return base * (0.5 + 0.5 * jitter)
