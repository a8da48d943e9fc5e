"""What a server sends whose model is mute ends no wait for that model."""

from __future__ import annotations

from typing import Any

import pytest

from livekit_gemini_resilient.core.effects import Outcome
from livekit_gemini_resilient.core.errors import ResultUnanswered
from livekit_gemini_resilient.core.turn_state import TurnState

from .driver import Driver, call, result

EMPTY: list[dict[str, Any]] = [{}, {"usage": object()}, {"handle": "handle"}]
"""Messages in which neither the model nor the caller does anything."""


def connected() -> Driver:
    """A conversation whose first connection is up and whose model is mute."""
    driver = Driver()
    driver.connect()
    driver.server.mute = True
    return driver


def keeps_sending(driver: Driver, message: dict[str, Any], *, seconds: float) -> None:
    """The server sends that message every two seconds."""
    for _ in range(round(seconds / 2.0)):
        driver.elapse(2.0)
        if driver.up is not None:
            driver.server.send(driver.up, **message)
            driver.deliver()


@pytest.mark.parametrize("message", EMPTY)
def test_a_caller_is_asked_for_although_messages_without_content_keep_coming(
    message: dict[str, Any],
) -> None:
    """Promise 3: the wait for the answer ends all the same."""
    driver = connected()
    driver.server.hear(1, "w1.", answer=False)
    driver.deliver()
    keeps_sending(driver, message, seconds=12.0)
    assert len(driver.server.live.prompts) == 1


@pytest.mark.parametrize("message", EMPTY)
def test_a_result_without_a_reply_ends_in_an_error_although_they_do(
    message: dict[str, Any],
) -> None:
    """Promise 3: the model is asked once more, then an error says that it was in vain."""
    driver = connected()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.returns(result("c1"))
    keeps_sending(driver, message, seconds=12.0)
    assert len(driver.server.live.prompts) == 1
    keeps_sending(driver, message, seconds=12.0)
    assert driver.outcome("c1") == [Outcome.UNANSWERED]
    assert [type(error) for error, _ in driver.errors] == [ResultUnanswered]


@pytest.mark.parametrize("message", EMPTY)
def test_a_frozen_reply_ends_although_they_do(message: dict[str, Any]) -> None:
    """B16: as interrupted, once."""
    driver = connected()
    driver.server.send(1, audio=(b"\x00\x00",), text="s1.")
    driver.deliver()
    keeps_sending(driver, message, seconds=12.0)
    assert driver.ended == [("s1.", True)]


def test_a_model_that_thinks_is_not_asked_again() -> None:
    """Words of ours would interrupt what it is about to say."""
    driver = connected()
    driver.server.hear(1, "w1.", answer=False)
    driver.deliver()
    keeps_sending(driver, {"at_work": True}, seconds=30.0)
    assert driver.server.live.prompts == []
    assert driver.conversation.turn.state is TurnState.LISTENING
