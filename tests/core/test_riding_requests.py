"""A ``generate_reply`` that the end of the caller's activity asks for."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.effects import FailReply, SendInput
from livekit_gemini_resilient.core.events import (
    Activity,
    InputPushed,
    ReplyRequested,
    ReplyWithdrawn,
)
from livekit_gemini_resilient.core.requests import ANSWER_WITHIN

from .driver import Driver

INSTRUCTIONS = pytest.mark.parametrize("instructions", [None, "Be kind."])


def begun() -> Driver:
    """The first connection is up, and the caller in an activity."""
    driver = Driver()
    driver.connect()
    driver.feed(InputPushed(payload="start", activity=Activity.START))
    driver.feed(InputPushed(payload="audio", seconds=0.1))
    return driver


def asks(driver: Driver, instructions: str | None = None, *, request: int = 1) -> None:
    """``generate_reply``, which ends the activity."""
    end = InputPushed(payload="end", activity=Activity.END)
    driver.feed(ReplyRequested(request=request, instructions=instructions, activity_end=end))


def marks(driver: Driver, connection: int) -> list[object]:
    """Input that was written to a connection."""
    written = driver.server.connections[connection].written
    return [effect.piece.payload for effect in written if isinstance(effect, SendInput)]


def answers(driver: Driver) -> None:
    """The model answers what the activity said."""
    driver.server.hear(driver.conversation.link.number, "w1. Hello?")
    driver.deliver()


@INSTRUCTIONS
def test_it_is_asked_for_by_the_mark_alone(instructions: str | None) -> None:
    """What it is to be about goes before, and asks for no reply."""
    driver = begun()
    asks(driver, instructions)
    assert marks(driver, 1) == ["start", "audio", "end"]
    assert driver.server.live.prompts == []
    assert (instructions or "") in driver.server.live.text
    answers(driver)
    assert driver.answered == [1]


@INSTRUCTIONS
@pytest.mark.parametrize("code", [1011, None])
def test_a_connection_lost_before_the_mark_is_written_is_asked_by_it_later(
    instructions: str | None, code: int | None
) -> None:
    """The activity is opened again, closed, and answered once."""
    driver = begun()
    driver.lose(code)
    asks(driver, instructions)
    driver.connect()
    assert marks(driver, 2) == ["start", "end"]
    assert driver.server.live.prompts == []
    answers(driver)
    assert driver.answered == [1]
    driver.settle()
    assert driver.failed == []


@pytest.mark.parametrize("code", [1011, None])
def test_a_mark_that_was_taken_out_and_not_written_asks_on_the_next_connection(
    code: int | None,
) -> None:
    """It comes back with what was not sent."""
    driver = begun()
    asks(driver)
    unsent = tuple(e.piece for e in driver.server.live.written[-1:] if isinstance(e, SendInput))
    driver.lose(code, unsent=unsent)
    driver.connect()
    assert marks(driver, 2) == ["start", "end"]
    assert driver.server.live.prompts == []
    answers(driver)
    assert driver.answered == [1]


@INSTRUCTIONS
@pytest.mark.parametrize("code", [1011, None])
def test_a_connection_lost_after_the_mark_was_written_is_asked_in_words(
    instructions: str | None, code: int | None
) -> None:
    """The activity is over: no mark is left to ask for it."""
    driver = begun()
    asks(driver, instructions)
    driver.lose(code)
    driver.connect()
    assert marks(driver, 2) == []
    assert len(driver.server.live.prompts) == 1
    driver.settle()
    assert driver.answered == [1]
    assert driver.failed == []


@pytest.mark.parametrize("lost", [True, False])
def test_one_that_is_withdrawn_still_ends_the_activity(lost: bool) -> None:
    """What the caller said is answered; nobody takes that for the answer to the request."""
    driver = begun()
    if lost:
        driver.lose()
    asks(driver, "Be kind.")
    driver.feed(ReplyWithdrawn(request=1))
    if lost:
        driver.connect()
    assert marks(driver, driver.conversation.link.number)[-1] == "end"
    assert ("Be kind." in driver.server.live.text) is not lost
    answers(driver)
    driver.settle()
    assert driver.answered == []
    assert driver.failed == []
    assert len(driver.server.replies) == 1


@pytest.mark.parametrize("lost", [True, False])
def test_a_newer_one_takes_its_place(lost: bool) -> None:
    """The older fails, and the newer is asked for in words of its own."""
    driver = begun()
    if lost:
        driver.lose()
    asks(driver, "One.")
    driver.feed(ReplyRequested(request=2, instructions="Two."))
    assert driver.failed == [1]
    driver.settle()
    assert driver.answered == [2]
    assert marks(driver, driver.conversation.link.number)[-1] == "end"


@pytest.mark.parametrize("lost", [True, False])
def test_a_session_that_is_closed_fails_it(lost: bool) -> None:
    """Written or not."""
    driver = begun()
    if lost:
        driver.lose()
    asks(driver)
    failed = [e.request for e in driver.conversation.close() if isinstance(e, FailReply)]
    assert failed == [1]


def test_a_mark_that_nothing_answers_fails_it_in_time() -> None:
    """Its time runs from the moment the mark was written."""
    driver = begun()
    asks(driver)
    driver.elapse(ANSWER_WITHIN)
    assert driver.failed == [1]
