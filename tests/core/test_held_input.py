"""The caller's input while the model waits for a tool, where it is to be held."""

from __future__ import annotations

from typing import Any

import pytest

from livekit_gemini_resilient.core.effects import SendInput, SendToolResponse
from livekit_gemini_resilient.core.events import (
    Activity,
    ContextUpdated,
    InputPushed,
    ReplyRequested,
)
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result


def in_a_call(*, tools_block: bool = True, **options: Any) -> Driver:
    """The model has called a function, which runs."""
    options = {"hold_input_during_call": True, "input_buffer": 1.0, **options}
    driver = Driver(ResilienceOptions(**options), tools_block=tools_block)
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.call(1, call("c1"))
    driver.deliver()
    return driver


def says(driver: Driver, *names: str) -> None:
    """The caller's audio, a tenth of a second each, or the marks of an activity."""
    for name in names:
        mark = Activity(name) if name in ("start", "end") else None
        seconds = 0.0 if mark else 0.1
        driver.feed(InputPushed(payload=name, seconds=seconds, activity=mark))


def sent(driver: Driver) -> list[object]:
    """What was written, in order; a tool response by its name."""
    written = [e for e in driver.written if isinstance(e, SendInput | SendToolResponse)]
    return [e.piece.payload if isinstance(e, SendInput) else "response" for e in written]


def test_what_the_caller_says_waits_for_the_tool_and_follows_its_answer() -> None:
    """E8: in order, and each piece once."""
    driver = in_a_call()
    says(driver, "a", "b")
    assert sent(driver) == []
    driver.returns(result("c1"))
    says(driver, "c")
    assert sent(driver) == ["response", "a", "b", "c"]


def test_no_more_waits_than_fits_and_the_rest_is_counted() -> None:
    """E8: the oldest is dropped first, as while there is no connection."""
    driver = in_a_call()
    says(driver, *(str(number) for number in range(15)))
    driver.returns(result("c1"))
    assert sent(driver) == ["response", *(str(number) for number in range(5, 15))]
    assert driver.conversation.uplink.dropped_seconds == pytest.approx(0.5)


@pytest.mark.parametrize(
    "how", [{"hold_input_during_call": False}, {"tools_block": False}], ids=["off", "no wait"]
)
def test_nothing_is_held_unasked_or_where_tools_do_not_block(how: dict[str, bool]) -> None:
    """A model that goes on talking goes on listening."""
    driver = in_a_call(**how)
    says(driver, "a")
    assert sent(driver) == ["a"]


def test_the_marks_of_an_activity_wait_in_their_places() -> None:
    """D8: and the server is in none of them for the time of the call."""
    driver = in_a_call()
    says(driver, "start", "a", "end", "start", "b")
    driver.returns(result("c1"))
    says(driver, "end")
    assert sent(driver) == ["response", "start", "a", "end", "start", "b", "end"]
    assert not driver.conversation.uplink.in_activity


def test_an_activity_that_began_before_the_call_ends_after_it() -> None:
    """Its end is late, and comes."""
    driver = Driver(ResilienceOptions(hold_input_during_call=True))
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    says(driver, "start", "a")
    driver.server.call(1, call("c1"))
    driver.deliver()
    says(driver, "b", "end")
    driver.returns(result("c1"))
    assert sent(driver) == ["start", "a", "response", "b", "end"]


def test_a_tool_that_takes_too_long_ends_the_wait() -> None:
    """Nothing waits without a timer: the answer "still running" lets the caller through."""
    driver = in_a_call(tool_answer_timeout=10.0)
    says(driver, "a")
    driver.elapse(10.0)
    assert sent(driver) == ["response", "a"]


def test_a_cancelled_call_holds_nothing() -> None:
    """The model waits for it no more."""
    driver = in_a_call()
    says(driver, "a")
    driver.server.cancel(1, "c1")
    driver.deliver()
    says(driver, "b")
    assert sent(driver) == ["a", "b"]


def test_what_was_held_goes_to_the_next_connection_if_this_one_is_lost() -> None:
    """Which issued no call that could hold it."""
    driver = in_a_call()
    says(driver, "a")
    driver.lose(1011)
    driver.connect()
    driver.elapse(1.0)
    says(driver, "b")
    assert sent(driver)[-2:] == ["a", "b"]


def test_the_end_of_an_activity_that_asks_for_a_reply_is_not_held() -> None:
    """C6: LiveKit withholds the tool's result until that reply has ended."""
    driver = Driver(ResilienceOptions(hold_input_during_call=True))
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.snapshot(1)
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.lose()
    driver.connect()
    says(driver, "start", "a")
    end = InputPushed(payload="end", activity=Activity.END)
    driver.feed(ReplyRequested(request=1, activity_end=end))
    assert sent(driver) == ["response"], "nothing goes out before the lost exchange is settled"
    driver.server.call(2, call("c2"))
    driver.deliver()
    assert sent(driver) == ["response", "start", "a", "end"]
