"""Whether the caller speaks, as far as LiveKit's own voice detection and the server's know."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.caller import HEARD_GRACE
from livekit_gemini_resilient.core.events import (
    ContextUpdated,
    RestartCause,
    ServerFrame,
    VoiceDetected,
)
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result


def speaking(options: ResilienceOptions | None = None) -> Driver:
    """The caller speaks, the server has said nothing of it, and the voice was changed."""
    driver = Driver(options)
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.feed(VoiceDetected(speaking=True))
    driver.request_restart(RestartCause.OPTIONS)
    driver.elapse(3.0)
    assert driver.closing is None
    return driver


def test_a_rotation_waits_for_the_words_of_a_caller_who_speaks_and_for_their_answer() -> None:
    """The server hears them, and answers them, on one connection."""
    driver = speaking()
    driver.feed(VoiceDetected(speaking=False))
    driver.server.hear(1, "Hello?")
    driver.deliver(1)
    driver.elapse(HEARD_GRACE)
    assert driver.closing is None
    driver.deliver()
    driver.elapse(0.5)
    assert driver.closing == 1
    assert [r.connection for r in driver.server.replies if r.done] == [1]


def test_a_noise_that_nobody_answers_is_waited_for_a_moment() -> None:
    """The voice detection may be wrong."""
    driver = speaking()
    driver.feed(VoiceDetected(speaking=False))
    driver.elapse(HEARD_GRACE - 0.1)
    assert driver.closing is None
    driver.elapse(0.1)
    assert driver.closing == 1


def test_a_caller_who_speaks_on_after_the_answer_began_is_waited_for() -> None:
    """The answer may have been to what was said before."""
    driver = speaking()
    driver.feed(ServerFrame(connection=1, audio=(b"ab",)))
    driver.feed(ServerFrame(connection=1, generation_complete=True, turn_complete=True))
    driver.elapse(1.0)
    assert driver.closing is None


@pytest.mark.parametrize("tool", ["none", "a tool runs", "a transition returned"])
def test_a_caller_who_does_not_stop_is_waited_for_in_bounded_time(tool: str) -> None:
    """Also where a result waits for the new connection, and with it the caller."""
    options = ResilienceOptions(max_defer=20.0, transition_tools="all", restart_when="pause")
    driver = Driver(options)
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    if tool != "none":
        driver.server.call(1, call("a"))
        driver.deliver()
    driver.feed(VoiceDetected(speaking=True))
    driver.request_restart(RestartCause.OPTIONS)
    if tool == "a transition returned":
        driver.returns(result("a"))
    driver.elapse(19.9)
    assert driver.closing is None
    driver.elapse(0.1)
    assert driver.closing == 1


def test_a_caller_who_asks_again_and_again_is_waited_for_in_bounded_time() -> None:
    """A result waits for the new connection: nobody can answer before, and a pause between two
    questions begins no new wait."""
    driver = Driver(ResilienceOptions(max_defer=20.0, transition_tools="all"))
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.call(1, call("a"))
    driver.deliver()
    driver.feed(VoiceDetected(speaking=True))
    driver.request_restart(RestartCause.OPTIONS)
    driver.returns(result("a"))
    began = driver.now
    while driver.closing is None and driver.now < began + 60.0:
        driver.feed(VoiceDetected(speaking=True))
        driver.elapse(1.0)
        driver.feed(VoiceDetected(speaking=False))
        driver.elapse(1.0)
    assert driver.closing == 1
    assert driver.now - began <= 20.0 + 2.0


def test_a_notice_leaves_no_more_time_than_it_says() -> None:
    """The deadline of the server goes before the end of the utterance."""
    driver = speaking()
    driver.feed(ServerFrame(connection=1, time_left=4.0))
    driver.elapse(1.9)
    assert driver.closing is None
    driver.elapse(0.1)
    assert driver.closing == 1


def hears(driver: Driver, speaks: bool, *, connection: int = 1) -> None:
    """The server says that the caller begins to speak, or has finished."""
    driver.feed(ServerFrame(connection=connection, caller_speaks=speaks))


def test_the_voice_activity_of_a_server_holds_a_rotation_too() -> None:
    """It comes before the words do."""
    driver = Driver()
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    hears(driver, True)
    driver.request_restart(RestartCause.OPTIONS)
    driver.elapse(3.0)
    assert driver.closing is None
    hears(driver, False)
    driver.elapse(HEARD_GRACE - 0.1)
    assert driver.closing is None
    driver.elapse(0.1)
    assert driver.closing == 1


@pytest.mark.parametrize("first", ["framework", "server"])
def test_a_caller_has_finished_when_nobody_hears_any_more(first: str) -> None:
    """The two do not agree to the moment."""
    driver = speaking()
    hears(driver, True)
    ends = [VoiceDetected(speaking=False), ServerFrame(connection=1, caller_speaks=False)]
    earlier, later = ends if first == "framework" else reversed(ends)
    driver.feed(earlier)
    driver.elapse(HEARD_GRACE + 1.0)
    assert driver.closing is None
    driver.feed(later)
    driver.elapse(HEARD_GRACE)
    assert driver.closing == 1


def test_what_a_lost_connection_heard_is_not_heard_on_the_next() -> None:
    """Its end of speech never comes."""
    driver = Driver()
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    hears(driver, True)
    driver.lose()
    driver.connect()
    driver.request_restart(RestartCause.OPTIONS)
    driver.elapse(HEARD_GRACE)
    assert driver.closing == 2
    driver.finish_close()
    driver.connect()
    hears(driver, True, connection=3)
    driver.request_restart(RestartCause.OPTIONS)
    driver.elapse(3.0)
    assert driver.closing is None
