"""Which connection is there, and what follows when it ends?"""

from __future__ import annotations

from livekit_gemini_resilient.core.effects import (
    CloseConnection,
    Dial,
    Effect,
    ReportError,
    ReportReconnected,
)
from livekit_gemini_resilient.core.errors import ConnectionFailed
from livekit_gemini_resilient.core.events import ConnectionLost
from livekit_gemini_resilient.core.link import Link, LinkState
from livekit_gemini_resilient.core.recovery import YOUNG


def link(
    *,
    handle: str | None = None,
    max_retry: int = 3,
    open_at: float | None = None,
    young: float = YOUNG,
) -> Link:
    """A link that was dialed once, and opened at ``open_at`` if that is given."""
    made = Link(
        handle=handle, max_retry=max_retry, retry_interval=2.0, random=lambda: 1.0, young=young
    )
    made.dial()
    if open_at is not None:
        made.opened(now=open_at)
    return made


def lose(made: Link, code: int | None = 1011, *, now: float = 100.0) -> list[Effect]:
    """Its connection, or its dial, fails."""
    return made.lost(ConnectionLost(connection=made.number, code=code), now=now)


def dialed(effects: list[Effect]) -> Dial:
    """The one dial among them."""
    (dial,) = [effect for effect in effects if isinstance(effect, Dial)]
    return dial


def test_connections_are_numbered_and_only_later_ones_are_reconnects() -> None:
    """1, 2, 3…, whether a dial succeeded or not."""
    made = link()
    assert made.number == 1
    assert made.opened(now=0.0) == []
    assert dialed(lose(made, now=50.0)).connection == 2
    assert made.opened(now=50.0) == [ReportReconnected(connection=2, resumed=False)]


def test_a_connection_replaced_on_purpose_is_dialed_at_once_and_costs_no_budget() -> None:
    """After the old one has ended, and not before."""
    made = link(handle="h", open_at=0.0, max_retry=0)
    assert made.close() == CloseConnection(connection=1)
    assert made.state is LinkState.CLOSING
    assert not made.is_up
    assert lose(made, 1007) == [Dial(connection=2, delay=0.0, handle="h")]


def test_a_failure_is_reported_and_retried_with_the_newest_handle() -> None:
    """With a growing delay."""
    made = link(open_at=0.0)
    made.handle = "newer"
    report, dial = lose(made)
    assert isinstance(report, ReportError)
    assert report.recoverable
    assert dial == Dial(connection=2, delay=0.1, handle="newer")
    assert dialed(lose(made, None)).delay == 2.0
    assert dialed(lose(made, None)).delay == 4.0


def test_the_budget_ends_the_conversation() -> None:
    """One report that is not recoverable, with the data in the error."""
    made = link(max_retry=1, open_at=0.0)
    lose(made)
    (report,) = lose(made, 1008)
    assert isinstance(report, ReportError)
    assert not report.recoverable
    assert isinstance(report.error, ConnectionFailed)
    assert (report.error.code, report.error.attempts) == (1008, 2)
    assert made.has_ended


def test_a_finished_turn_restores_the_budget() -> None:
    """E4: progress, not the arrival of a message."""
    made = link(max_retry=1, open_at=0.0)
    lose(made)
    made.opened(now=100.0)
    made.progressed()
    assert dialed(lose(made))


def test_a_stable_minute_restores_the_budget() -> None:
    """E4: also when nobody speaks."""
    made = link(max_retry=1, open_at=0.0)
    lose(made)
    made.opened(now=100.0)
    assert dialed(lose(made, now=160.0))


def test_a_connection_that_only_opens_restores_nothing() -> None:
    """E4: a server whose sockets die young is not dialed for ever."""
    made = link(max_retry=2, open_at=0.0)
    for _ in range(2):
        dialed(lose(made))
        made.opened(now=100.0)
    lose(made)
    assert made.has_ended


def test_a_handle_whose_connection_dies_at_once_is_forgotten() -> None:
    """E2: and the next one is fresh."""
    made = link(handle="poisoned", open_at=0.0)
    assert dialed(lose(made, 1011, now=1.0)).handle is None
    assert made.handle is None
    assert not made.resumed


def test_a_handle_survives_an_abort() -> None:
    """Nothing speaks against it."""
    made = link(handle="good", open_at=0.0)
    assert dialed(lose(made, None, now=1.0)).handle == "good"


def test_in_a_conversation_that_is_scaled_down_a_handle_dies_sooner_or_not_at_all() -> None:
    """Its connections live for less; one that was never opened speaks against its handle still."""
    assert dialed(lose(link(handle="good", open_at=0.0, young=0.5), now=1.0)).handle == "good"
    assert dialed(lose(link(handle="bad", open_at=0.0, young=0.5), now=0.4)).handle is None
    assert dialed(lose(link(handle="good", open_at=0.0, young=0.0), now=0.0)).handle == "good"
    assert dialed(lose(link(handle="bad", young=0.0), 1007)).handle is None
