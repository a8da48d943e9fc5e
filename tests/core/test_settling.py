"""Which exchanges may a resumed connection still wait for? Until a response was seen to arrive,
all that were left open: some servers hear nothing before they are closed (observed)."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.link import LinkState
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result


def calling(options: ResilienceOptions | None = None) -> Driver:
    """The model has called, and a handle covers what was said before."""
    driver = Driver(options)
    driver.connect()
    driver.server.hear(1, "What is in the order?", answer=False)
    driver.server.snapshot(1)
    driver.server.call(1, call("c1"))
    return driver


def reconnect(driver: Driver) -> list[str]:
    """Ids that the next connection gets before anything else."""
    if driver.up is not None:
        driver.lose()
    driver.connect()
    return driver.server.live.responses


@pytest.mark.fault("A13")
@pytest.mark.parametrize("written", [True, False], ids=["lost with its connection", "not written"])
def test_a_server_that_was_not_seen_to_be_freed_is_freed_again(written: bool) -> None:
    """ "Still running" may have been lost, or its time have come while there was no connection."""
    driver = calling(ResilienceOptions(tool_answer_timeout=5.0))
    driver.server.mute = True
    driver.deliver()
    if not written:
        driver.lose()
    driver.elapse(6.0)
    driver.server.mute = False
    assert reconnect(driver) == ["c1"]
    assert driver.conversation.link.state is LinkState.SETTLING
    driver.returns(result("c1"))
    driver.settle()
    assert len(driver.replies("<c1=42>")) == 1


@pytest.mark.fault("A13")
def test_a_server_that_went_on_is_not_freed_again() -> None:
    """It spoke after it was told that the tool is still running."""
    driver = calling(ResilienceOptions(tool_answer_timeout=5.0))
    driver.deliver()
    driver.elapse(6.0)
    driver.deliver()
    assert reconnect(driver) == []


@pytest.mark.fault("A12")
@pytest.mark.parametrize("arrived", [True, False])
def test_what_trails_a_call_that_nobody_took_does_not_close_its_exchange(arrived: bool) -> None:
    """It may have crossed the response; a whole generation has not."""
    driver = calling()
    driver.leaves()
    driver.server.mute = not arrived
    driver.deliver(frames=2)
    if not arrived:
        driver.deliver()
        driver.server.send(1, audio=(b"\x00\x00",))
    driver.deliver()
    assert driver.skipped
    assert reconnect(driver) == ([] if arrived else ["c1"])
