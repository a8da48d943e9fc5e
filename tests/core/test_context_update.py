"""Tools and instructions that change in place, where server and SDK take that."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.effects import Outcome, SendInput, UpdateContext
from livekit_gemini_resilient.core.events import (
    InputPushed,
    ReplyRequested,
    RestartCause,
    RestartRequested,
)
from livekit_gemini_resilient.core.link import LinkState
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result

IN_PLACE = ResilienceOptions(tool_update="context_update")
REFUSED = pytest.mark.parametrize("code", [1007, 1008])
CAUSES = (RestartCause.TOOLS, RestartCause.FEWER_TOOLS, RestartCause.INSTRUCTIONS)


def connected(*, calls: bool = False, options: ResilienceOptions = IN_PLACE) -> Driver:
    """A conversation whose first connection is up, with a call open or not."""
    driver = Driver(options)
    driver.connect()
    if calls:
        driver.server.call(1, call("c1"))
        driver.deliver()
    return driver


def changes(driver: Driver, cause: RestartCause = RestartCause.TOOLS) -> bool:
    """The tools change; whether that is written to the connection."""
    effects = driver.feed(RestartRequested(cause=cause, in_place=True))
    return any(isinstance(effect, UpdateContext) for effect in effects)


def learned(driver: Driver) -> bool:
    """Whether the record says that the server refuses it."""
    return not driver.conversation._observed.behaviour.context_updates


@pytest.mark.parametrize("cause", CAUSES)
def test_a_change_in_place_costs_no_connection(cause: RestartCause) -> None:
    """Nor does one that follows it."""
    driver = connected()
    assert changes(driver, cause)
    assert changes(driver, cause)
    driver.settle()
    assert driver.dials == 1
    assert not learned(driver)


def test_it_is_off_by_default_and_where_it_cannot_be_said() -> None:
    """Options of the setup have no such form."""
    driver = connected(options=ResilienceOptions())
    assert not changes(driver)
    assert driver.closing is not None
    driver = connected()
    driver.request_restart(RestartCause.OPTIONS)
    assert driver.closing is not None


@REFUSED
def test_a_refusal_is_learned_and_the_next_change_takes_a_connection(code: int) -> None:
    """The new connection carries the change that was refused."""
    driver = connected()
    assert changes(driver)
    driver.lose(code)
    assert learned(driver)
    driver.connect()
    assert not changes(driver)
    assert driver.closing == 2
    driver.settle()
    assert driver.dials == 3


@REFUSED
def test_two_changes_that_are_refused_cost_one_connection(code: int) -> None:
    """They are on the wire before the server closes it."""
    driver = connected()
    assert changes(driver)
    assert changes(driver, RestartCause.INSTRUCTIONS)
    driver.lose(code)
    driver.settle()
    assert learned(driver)
    assert driver.dials == 2


@pytest.mark.parametrize("code", [None, 1000, 1011])
def test_a_connection_that_is_lost_otherwise_teaches_nothing(code: int | None) -> None:
    """The network, or the end of a lifetime."""
    driver = connected()
    changes(driver)
    driver.lose(code)
    driver.connect()
    assert not learned(driver)
    assert changes(driver)


def test_an_idle_connection_that_is_ended_teaches_nothing() -> None:
    """A proxy ends such with 1008."""
    driver = connected()
    changes(driver)
    driver.elapse(60.0)
    driver.lose(1008)
    assert not learned(driver)


@REFUSED
def test_what_a_server_sends_by_itself_is_no_sign_that_it_took_the_change(code: int) -> None:
    """It may have crossed it."""
    driver = connected()
    changes(driver)
    driver.server.send(1)
    driver.deliver()
    driver.lose(code)
    assert learned(driver)


@REFUSED
def test_a_server_that_spoke_since_did_not_refuse_it(code: int) -> None:
    """Something later was."""
    driver = connected()
    changes(driver)
    driver.server.hear(1, "w1. Hello?")
    driver.deliver()
    driver.lose(code)
    assert not learned(driver)


@REFUSED
@pytest.mark.parametrize("returns", ["before", "after", "on the next connection"])
def test_a_call_that_is_open_when_it_is_refused_is_answered_once(code: int, returns: str) -> None:
    """The result is told on the next connection."""
    driver = connected(calls=True)
    if returns == "before":
        driver.returns(result("c1"))
    changes(driver)
    if returns == "after":
        driver.returns(result("c1"))
    driver.lose(code)
    if returns == "on the next connection":
        driver.connect()
        driver.returns(result("c1"))
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert driver.server.faults == []
    assert learned(driver)


def test_a_call_is_answered_where_it_was_issued_when_the_change_is_taken() -> None:
    """No connection in between."""
    driver = connected(calls=True)
    assert changes(driver)
    driver.returns(result("c1"))
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert driver.server.connections[1].responses == ["c1"]
    assert driver.dials == 1


@REFUSED
@pytest.mark.parametrize("asks", ["before", "after", "while there is no connection"])
def test_a_request_survives_a_refusal(code: int, asks: str) -> None:
    """It is asked once more, and answered once."""
    driver = connected()
    request = ReplyRequested(request=1, instructions=None)
    if asks == "before":
        driver.feed(request)
    changes(driver)
    if asks == "after":
        driver.feed(request)
    driver.lose(code)
    if asks == "while there is no connection":
        driver.feed(request)
    driver.settle()
    assert driver.answered == [1]
    assert driver.failed == []


@REFUSED
def test_audio_that_waits_survives_a_refusal(code: int) -> None:
    """In order, on the next connection."""
    driver = connected()
    changes(driver)
    driver.lose(code)
    for payload in ("a", "b"):
        driver.feed(InputPushed(payload=payload, seconds=0.1))
    driver.connect()
    written = driver.server.live.written
    assert [e.piece.payload for e in written if isinstance(e, SendInput)] == ["a", "b"]
    assert driver.conversation.uplink.dropped_seconds == 0.0


def test_a_change_while_exchanges_are_settled_takes_a_connection() -> None:
    """Nothing else may be written until they are."""
    driver = connected()
    driver.server.snapshot(1)
    driver.deliver()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.lose()
    driver.connect()
    assert driver.conversation.link.state is LinkState.SETTLING
    assert not changes(driver)
    driver.returns(result("c1"))
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert driver.dials == 3


def test_a_change_goes_with_a_rotation_that_is_due_anyway() -> None:
    """One connection for both."""
    driver = connected(calls=True)
    driver.request_restart(RestartCause.OPTIONS)
    assert driver.closing is None
    assert not changes(driver)
    driver.returns(result("c1"))
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert driver.dials == 2


def test_a_change_without_a_connection_goes_with_the_next_setup() -> None:
    """While it is backed off."""
    driver = connected()
    driver.lose()
    assert not changes(driver)
    driver.connect()
    driver.settle()
    assert not learned(driver)
