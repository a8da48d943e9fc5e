"""What closed the connection is written in another form, and then not any more."""

from __future__ import annotations

from typing import Any

import pytest

from livekit_gemini_resilient.core.behaviour import Trigger
from livekit_gemini_resilient.core.effects import SendContent, SendInput
from livekit_gemini_resilient.core.errors import CallerUnanswered, MessagesLeftOut
from livekit_gemini_resilient.core.events import (
    Activity,
    InputPushed,
    InstructionsChanged,
    ReplyRequested,
    RestartCause,
)
from livekit_gemini_resilient.core.suspects import WITHIN, Kind, Suspects

from .driver import Driver, call, result
from .test_asking import connected, heard
from .test_signs_of_life import EMPTY

CODES = pytest.mark.parametrize("code", [1007, 1008, 1009])


def refused_twice(*kinds: Kind) -> Kind | None:
    """What is blamed for two refusals of the same things."""
    suspects = Suspects()
    blamed: Kind | None = None
    for _ in range(2):
        for kind in kinds:
            suspects.wrote(kind, "1", now=0.0)
        blamed = suspects.connection_lost(refused=True, now=1.0)
    return blamed


@pytest.mark.parametrize("kind", Kind)
def test_what_is_suspected_twice_is_to_blame(kind: Kind) -> None:
    """Alone; what has another form the first time."""
    assert refused_twice(kind) is kind


def test_of_several_things_the_one_that_is_missed_least_is_to_blame() -> None:
    """The others may be good."""
    assert refused_twice(Kind.MESSAGE, Kind.REQUEST) is Kind.REQUEST
    assert refused_twice(Kind.MESSAGE, Kind.ANSWER, Kind.ACTIVITY) is Kind.ACTIVITY


def test_a_server_that_speaks_clears_what_was_written() -> None:
    """And so does a connection that is lost otherwise."""
    suspects = Suspects()
    for _ in range(3):
        suspects.wrote(Kind.MESSAGE, "1", now=0.0)
        suspects.frame_received()
        assert not suspects.any(now=1.0)
        assert suspects.connection_lost(refused=True, now=1.0) is None
        suspects.wrote(Kind.MESSAGE, "1", now=0.0)
        assert suspects.connection_lost(refused=False, now=1.0) is None
    assert not suspects.guilty(Kind.MESSAGE)


def test_only_what_was_written_both_times_is_to_blame() -> None:
    """A third thing is not."""
    suspects = Suspects()
    suspects.wrote(Kind.MESSAGE, "1", "2", now=0.0)
    suspects.connection_lost(refused=True, now=1.0)
    suspects.wrote(Kind.MESSAGE, "2", "3", now=0.0)
    assert suspects.connection_lost(refused=True, now=1.0) is Kind.MESSAGE
    assert suspects.guilty(Kind.MESSAGE) == {"2"}


def test_a_close_long_after_the_last_words_says_nothing_against_them() -> None:
    """A proxy ends idle connections with 1008."""
    suspects = Suspects()
    for _ in range(3):
        suspects.wrote(Kind.MESSAGE, "1", now=0.0)
        assert suspects.connection_lost(refused=True, now=WITHIN + 1.0) is None


def test_what_a_server_was_seen_to_take_is_not_suspected_any_more() -> None:
    """Half an hour later a close may have another cause as well."""
    suspects = Suspects()
    suspects.wrote(Kind.MESSAGE, "1", "2", now=0.0)
    assert suspects.connection_lost(refused=True, now=0.0) is None
    suspects.wrote(Kind.MESSAGE, "1", now=0.0)
    suspects.frame_received()
    suspects.wrote(Kind.MESSAGE, "1", now=1800.0)
    assert suspects.connection_lost(refused=True, now=1800.0) is None
    suspects.wrote(Kind.MESSAGE, "1", "2", now=1800.0)
    assert suspects.connection_lost(refused=True, now=1800.0) is Kind.MESSAGE
    assert suspects.guilty(Kind.MESSAGE) == {"1", "2"}, "since either may be"


def test_only_what_was_written_not_long_before_the_close_is_suspected() -> None:
    """Whatever was written since."""
    suspects = Suspects()
    for now in (0.0, 60.0):
        suspects.wrote(Kind.MESSAGE, "1", now=now)
        suspects.wrote(Kind.REQUEST, "1", now=now + WITHIN + 1.0)
        blamed = suspects.connection_lost(refused=True, now=now + WITHIN + 2.0)
    assert blamed is Kind.REQUEST
    suspects.wrote(Kind.MESSAGE, "1", now=120.0)
    assert suspects.connection_lost(refused=True, now=120.0) is None


def refuse(driver: Driver, code: int, times: int) -> None:
    """Each connection is closed for what it was told last."""
    for _ in range(times):
        driver.lose(code)
        driver.connect()


@CODES
def test_a_message_is_left_out_and_the_record_is_as_it_was(code: int) -> None:
    """It was not the way of telling it."""
    driver = connected()
    driver.adds("m1", "user", "bad")
    refuse(driver, code, 2)
    driver.adds("m2", "user", "good")
    assert "bad" not in driver.server.live.text
    assert "good" in driver.server.live.text
    assert driver.conversation._observed.behaviour.content_at_any_time
    [error] = [e for e, _ in driver.errors if isinstance(e, MessagesLeftOut)]
    assert error.ids == {"m1"}
    assert "1 item(s) of the chat context" in str(error)


@CODES
def test_a_request_fails_and_is_not_asked_again(code: int) -> None:
    """What went along with it is told."""
    driver = connected()
    driver.adds("m1", "user", "w1. My name is Ada.")
    driver.feed(ReplyRequested(request=1, instructions="bad"))
    refuse(driver, code, 2)
    assert driver.failed == [1]
    assert "Ada" in driver.server.live.text
    assert driver.server.live.prompts == []


@CODES
def test_the_answer_to_the_caller_is_given_up_with_an_error(code: int) -> None:
    """An error event, and no third connection."""
    driver = connected()
    heard(driver)
    driver.lose()
    driver.connect()
    refuse(driver, code, 2)
    assert [type(error) for error, _ in driver.errors if isinstance(error, CallerUnanswered)]
    assert driver.server.live.prompts == []
    assert not driver.conversation.link.has_ended


@CODES
def test_an_instruction_in_place_goes_with_the_setup_from_then_on(code: int) -> None:
    """The setup of the next connection has it."""
    driver = connected()
    driver.feed(InstructionsChanged(text="Be curt."))
    refuse(driver, code, 1)
    assert driver.feed(InstructionsChanged(text="Be kind.")) != []
    contents = [e for e in driver.server.live.written if isinstance(e, SendContent)]
    assert contents == []
    assert driver.closing is not None


@CODES
def test_the_result_of_a_tool_is_told_in_every_way_before_it_is_given_up(code: int) -> None:
    """1008 also comes at random, so that it takes more of them; the call is never lost."""
    driver = connected()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.returns(result("c1"))
    driver.lose(code)
    driver.connect()
    driver.elapse(1.0)
    assert ("<c1=42>" in driver.server.live.text) is (code == 1008)
    if code == 1008:
        refuse(driver, code, 2)
    assert "refused by the service" in driver.server.live.text
    assert not driver.conversation.link.has_ended


@CODES
def test_audio_is_counted_where_nothing_else_can_be_to_blame(code: int) -> None:
    """Beside words of ours they are suspected."""
    driver = connected()
    driver.feed(InputPushed(payload="a", seconds=0.1))
    driver.lose(code)
    assert driver.conversation.uplink.dropped_seconds == 0.1
    driver.connect()
    driver.adds("m1", "user", "w1. Hello.")
    driver.feed(InputPushed(payload="b", seconds=0.1))
    driver.lose(code)
    assert driver.conversation.uplink.dropped_seconds == 0.1


@CODES
def test_the_marks_of_an_activity_are_given_up_and_not_those_of_the_next(code: int) -> None:
    """Its end would be refused without its start."""
    start = InputPushed(payload="start", activity=Activity.START)
    end = InputPushed(payload="end", activity=Activity.END)
    driver = connected()
    driver.feed(start)
    refuse(driver, code, 2)
    for piece in (InputPushed(payload="a", seconds=0.1), end, _another(start), _another(end)):
        driver.feed(piece)
    pieces = [e.piece.payload for e in driver.server.live.written if isinstance(e, SendInput)]
    assert pieces == ["a", "start", "end"]


def _another(piece: InputPushed) -> InputPushed:
    return InputPushed(payload=piece.payload, activity=piece.activity)


@CODES
def test_a_request_that_ends_a_given_up_activity_is_asked_in_words(code: int) -> None:
    """It does not wait for a mark that is not written."""
    driver = connected()
    driver.feed(InputPushed(payload="start", activity=Activity.START))
    refuse(driver, code, 2)
    end = InputPushed(payload="end", activity=Activity.END)
    driver.feed(ReplyRequested(request=1, instructions=None, activity_end=end))
    driver.settle()
    assert driver.answered == [1]
    assert driver.server.faults == []


@pytest.mark.parametrize("message", EMPTY)
@CODES
def test_what_a_server_sends_by_itself_clears_nothing(code: int, message: dict[str, Any]) -> None:
    """Such messages were recorded straight after the setup, before anything could be read."""
    driver = connected()
    driver.server._snapshots["handle"] = ()
    driver.adds("m1", "user", "bad")
    for _ in range(2):
        driver.server.send(driver.conversation.link.number, **message)
        driver.deliver()
        refuse(driver, code, 1)
    assert "bad" not in driver.server.live.text


def test_a_result_that_was_answered_in_between_is_forgiven_each_close() -> None:
    """The server was seen to take it: 1008 comes at random."""
    driver = Driver(max_retry=20)
    driver.connect()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.returns(result("c1"))
    for _ in range(4):
        driver.lose(1008)
        driver.connect()
        driver.elapse(1.0)
        driver.deliver(frames=1)
        driver.lose()
        driver.connect()
        driver.elapse(1.0)
    assert "refused by the service" not in driver.server.live.text


def test_the_answer_that_another_caller_turn_asks_for_is_another() -> None:
    """The model has spoken since the first was suspected."""
    driver = connected()
    for number in range(3):
        heard(driver)
        driver.lose()
        driver.connect()
        refuse(driver, 1008, 1)
        assert driver.server.live.prompts, f"it was asked for {number} times"
        driver.lose()
        driver.connect()
        driver.server.mute = False
        driver.server.hear(driver.conversation.link.number, "w2. And now?")
        driver.deliver()
        driver.server.mute = True
    assert not [error for error, _ in driver.errors if isinstance(error, CallerUnanswered)]


# ---------------------------------------------------------------- what a close teaches


@pytest.mark.parametrize(("code", "learned"), [(1007, True), (1008, False), (1009, False)])
def test_a_close_long_after_the_last_words_teaches_nothing_of_their_way(
    code: int, learned: bool
) -> None:
    """A proxy ends idle connections with 1008; 1007 is about a frame, whenever it comes."""
    driver = connected()
    driver.adds("m1", "user", "w1. Hello.")
    driver.elapse(60.0)
    driver.lose(code)
    assert driver.conversation._observed.behaviour.content_at_any_time is not learned


def test_a_close_straight_after_a_result_in_words_teaches_their_way() -> None:
    """However it is noted who is to blame."""
    driver = connected()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.lose()
    driver.connect()
    driver.returns(result("c1"))
    assert "<c1=42>" in driver.server.live.text
    driver.lose(1008)
    assert driver.conversation._observed.trigger is Trigger.REALTIME_TEXT


def test_a_close_straight_after_words_that_steer_a_reply_teaches_their_way() -> None:
    """Nothing but the end of the activity asks for it."""
    driver = connected()
    driver.feed(InputPushed(payload="start", activity=Activity.START))
    driver.server.send(1, user_words="Hello.")
    driver.deliver()
    end = InputPushed(payload="end", activity=Activity.END)
    driver.feed(ReplyRequested(request=1, instructions="Be kind.", activity_end=end))
    assert "Be kind." in driver.server.live.text
    driver.lose(1008)
    assert driver.conversation._observed.trigger is Trigger.REALTIME_TEXT


def test_a_close_long_after_a_result_is_not_counted_against_it() -> None:
    """One that wants no reply is not asked about, and may be the last thing that was written."""
    driver = connected()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.returns(result("c1", reply=False))
    for _ in range(4):
        driver.elapse(60.0)
        driver.lose(1008)
        driver.connect()
        driver.elapse(1.0)
    assert "<c1=42>" in driver.server.live.text


def test_a_rotation_is_no_refusal() -> None:
    """Whatever code the close has."""
    driver = connected()
    driver.adds("m1", "user", "w1. Hello.")
    driver.request_restart(RestartCause.OPTIONS)
    driver.settle()
    assert "w1. Hello." in driver.server.live.text
