"""Messages that the server has are removed or edited: a fresh session, at a safe point."""

from __future__ import annotations

from dataclasses import replace

import pytest

from livekit_gemini_resilient.core.events import (
    ContextUpdated,
    HistoryItem,
    MessageRecorded,
    ReplyRequested,
)

from .driver import Driver, call, result

SECRET = "My number is 4711."


def in_conversation() -> Driver:
    """Two turns were heard, and the newest handle covers them."""
    driver = Driver()
    driver.connect()
    for words in (SECRET, "Thank you."):
        driver.server.hear(1, words)
        driver.settle()
    driver.server.snapshot(1)
    driver.settle()
    records_all(driver)
    return driver


def records_all(driver: Driver) -> None:
    """The framework recorded what the model said."""
    for item in driver.items:
        if item.role == "model":
            driver.feed(MessageRecorded(item=item))


def hands_over(driver: Driver, *items: HistoryItem) -> None:
    """The framework adopts another context and hands it over."""
    driver.items = list(items)
    driver.feed(ContextUpdated(items=items))


@pytest.mark.parametrize("edited", [True, False], ids=["edited", "removed"])
def test_the_next_connection_knows_the_new_history_and_nothing_else(edited: bool) -> None:
    """The handle is given up on purpose, and every item is told once."""
    driver = in_conversation()
    first, *rest = driver.items
    hands_over(
        driver, *([replace(first, parts=("My number is secret.",))] if edited else []), *rest
    )
    driver.settle()
    assert driver.server.live.handle is None
    assert SECRET not in driver.server.live.text
    for item in driver.items:
        assert driver.server.live.text.count(item.text) == 1
    assert driver.dials == 2


def test_a_reply_is_finished_first() -> None:
    """The safe point is the end of the turn."""
    driver = in_conversation()
    driver.server.hear(1, "Go on.")
    driver.deliver(2)
    hands_over(driver, *driver.items[2:])
    assert driver.up == 1
    driver.settle()
    assert driver.up == 2
    assert not any(interrupted for _, interrupted in driver.ended)


def test_a_handle_that_comes_afterwards_is_of_the_old_history() -> None:
    """It is not used, also when the connection is lost before the safe point."""
    driver = in_conversation()
    driver.server.hear(1, "Go on.")
    driver.deliver(2)
    hands_over(driver, *driver.items[1:])
    driver.server.snapshot(1)
    driver.deliver()
    driver.lose()
    driver.settle()
    assert [c.handle for c in driver.server.connections.values()] == [None, None]


def test_a_connection_that_is_being_resumed_is_given_up() -> None:
    """Its handle had been offered already."""
    driver = in_conversation()
    driver.lose()
    dial = driver.build_setup()
    hands_over(driver, *driver.items[1:])
    driver.opens(dial)
    driver.settle()
    assert driver.server.connections[2].handle is not None
    assert driver.server.live.handle is None
    assert SECRET not in driver.server.live.text


def test_a_reply_that_is_asked_for_right_after_knows_the_new_history() -> None:
    """The change is a barrier for it."""
    driver = in_conversation()
    hands_over(driver, *driver.items[1:])
    driver.feed(ReplyRequested(request=1, instructions=None))
    driver.settle()
    assert driver.server.replies[-1].connection == 2
    assert driver.answered == [1]


def test_an_open_call_is_answered_first() -> None:
    """A tool may edit the history; its result is answered where it was asked for."""
    driver = in_conversation()
    driver.server.call(1, call("c1"))
    driver.deliver()
    hands_over(driver, *driver.items[1:])
    driver.returns(result("c1"))
    driver.settle()
    (reply,) = driver.replies("<c1=42>")
    assert reply.connection == 1
    assert driver.up == 2
    assert SECRET not in driver.server.live.text


def test_what_was_never_played_costs_no_connection() -> None:
    """LiveKit removes it from its context."""
    driver = in_conversation()
    driver.server.hear(1, "Go on.")
    driver.settle()
    assert driver.items[-1].role == "model"
    hands_over(driver, *driver.items[:-1])
    driver.settle()
    assert driver.dials == 1
