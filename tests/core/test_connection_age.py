"""Connections that are replaced because of their age, within a whole conversation."""

from __future__ import annotations

from livekit_gemini_resilient.core.errors import ConnectionFailed
from livekit_gemini_resilient.core.events import ContextUpdated
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result

AGE = 540.0


def conversation(*, handle: bool = True, max_retry: int = 3) -> Driver:
    """A conversation that has had one turn; its handle covers it."""
    driver = Driver(ResilienceOptions(max_connection_age=AGE), max_retry=max_retry)
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.hear(1, "Hello?")
    driver.deliver()
    if handle:
        driver.server.snapshot(1)
        driver.deliver()
    return driver


def test_a_silent_conversation_goes_over_to_another_connection_when_its_own_is_old() -> None:
    """By the one timer, resumed, at once, and as often as it takes."""
    driver = conversation()
    for number in (2, 3):
        opened = driver.now
        assert driver.closing is None
        driver.advance()
        assert driver.now == opened + AGE
        assert driver.closing == number - 1
        driver.finish_close()
        assert driver.dial is not None
        assert (driver.dial.handle, driver.dial.delay) == ("handle-2", 0.0)
        driver.connect()
    assert [report.resumed for report in driver.reconnects] == [True, True]
    assert driver.errors == []


def test_without_a_handle_the_age_waits_for_one() -> None:
    """It comes with the next turn."""
    driver = conversation(handle=False)
    driver.elapse(10 * AGE)
    assert driver.closing is None
    driver.server.snapshot(1)
    driver.deliver()
    assert driver.closing == 1


def test_a_call_that_is_open_is_answered_before_an_old_connection_is_left() -> None:
    """And the reply to it spoken: told once, replied to once."""
    driver = conversation()
    driver.elapse(AGE - 1.0)
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.elapse(20.0)
    assert driver.closing is None
    driver.returns(result("c1"))
    driver.deliver()
    assert len(driver.replies("<c1=42>")) == 1
    driver.elapse(1.0)
    assert driver.closing == 1


def test_a_rotation_whose_dials_fail_is_bounded_as_any_other() -> None:
    """The back-off and the budget of a recovery hold; nothing is closed meanwhile."""
    driver = conversation(max_retry=2)
    driver.advance()
    driver.finish_close()
    delays = []
    while driver.dial is not None:
        delays.append(driver.dial.delay)
        driver.fail_dial(1011)
        driver.elapse(10 * AGE)
    assert len(delays) == 3
    assert delays == sorted(delays)
    error, recoverable = driver.errors[-1]
    assert isinstance(error, ConnectionFailed)
    assert not recoverable
