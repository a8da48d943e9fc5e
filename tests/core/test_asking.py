"""The model is asked for what the caller waits for: once, in time, and with an end to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from livekit_gemini_resilient.core.behaviour import Behaviour, Observed
from livekit_gemini_resilient.core.effects import (
    Effect,
    SendContent,
    SendRequest,
    SendText,
    SendToolResponse,
)
from livekit_gemini_resilient.core.errors import CallerUnanswered
from livekit_gemini_resilient.core.events import (
    ContextUpdated,
    ReplyRequested,
    ReplyWithdrawn,
    RestartCause,
)
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result

INTERIM = ResilienceOptions(reply_during_call="interim")


def connected(*, handle: bool = False, may_stay_silent: bool = False) -> Driver:
    """A conversation whose first connection is up, with or without a handle."""
    driver = Driver(may_stay_silent=may_stay_silent)
    driver.connect()
    if handle:
        driver.server.snapshot(1)
        driver.deliver()
    return driver


def heard(driver: Driver, words: str = "w1. What is the time?") -> None:
    """The caller says something, and nothing follows."""
    driver.server.hear(driver.conversation.link.number, words, answer=False)
    driver.deliver()


def freeze(driver: Driver) -> None:
    """The model begins to answer, and stops in the middle."""
    driver.server.hear(1, "w1. What is the time?")
    driver.deliver(frames=2)
    driver.server.freeze()


def prompts(driver: Driver) -> list[int]:
    """How often each connection was asked to speak."""
    return [len(c.prompts) for c in driver.server.connections.values()]


# ------------------------------------------------------------ the link is lost (B15)


@pytest.mark.parametrize("handle", [False, True])
@pytest.mark.parametrize("code", [1011, None])
def test_words_heard_before_the_link_was_lost_are_answered_once(
    handle: bool, code: int | None
) -> None:
    """On the next connection, whether or not it was resumed."""
    driver = connected(handle=handle)
    heard(driver)
    driver.lose(code)
    driver.settle()
    assert prompts(driver) == [0, 1]
    assert [r.done for r in driver.server.replies] == [True]
    assert "w1." in driver.server.live.text
    assert driver.errors[1:] == []


def test_words_that_a_handle_covers_are_answered_too() -> None:
    """They are not told again; the model is told that the caller waits."""
    driver = connected()
    heard(driver)
    driver.server.snapshot(1)
    driver.deliver()
    driver.lose()
    driver.settle()
    assert len(driver.server.replies) == 1
    assert driver.server.live.text.count("w1.") == 1


def test_words_are_asked_about_again_if_that_link_is_lost_too() -> None:
    """The next connection is asked as well, and one reply is given."""
    driver = connected()
    heard(driver)
    driver.lose()
    driver.connect()
    driver.lose()
    driver.settle()
    assert prompts(driver) == [0, 1, 1]
    assert sum(r.done for r in driver.server.replies) == 1


@pytest.mark.fault("B15")
@pytest.mark.parametrize("lost", [True, False])
def test_words_that_cancelled_a_call_are_answered_once(lost: bool) -> None:
    """Also if the link is lost before the answer, or nothing comes of itself."""
    driver = connected()
    heard(driver, "w1. Book a table.")
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.elapse(5.0)
    heard(driver, "w2. What is the time?")
    driver.server.cancel(1, "c1")
    driver.deliver()
    if lost:
        driver.lose()
    driver.settle()
    assert sum(r.done for r in driver.server.replies) == 1
    assert "w2." in driver.server.live.text


@pytest.mark.fault("B15")
def test_an_answer_that_a_message_of_the_framework_crossed_is_asked_for() -> None:
    """Client content stops the answer on the wire, and the server ends the turn without a word."""
    driver = connected()
    driver.server.hear(1, "w1. What is the time?")
    driver.adds("m1", "user", "The caller is in London.")
    driver.settle()
    assert prompts(driver) == [1]
    assert [text for text, _ in driver.ended] == ["", driver.server.replies[-1].text]


def test_a_reply_that_had_begun_is_not_asked_for_again_when_the_link_is_lost() -> None:
    """It is recorded as interrupted; the caller has heard the beginning."""
    driver = connected()
    driver.server.hear(1, "w1. What is the time?")
    driver.deliver(frames=2)
    driver.lose()
    driver.settle()
    assert prompts(driver) == [0, 0]
    assert [interrupted for _, interrupted in driver.ended] == [True]


def test_a_request_for_a_reply_answers_the_caller_as_well() -> None:
    """One reply, not two."""
    driver = connected()
    heard(driver)
    driver.feed(ReplyRequested(request=7))
    driver.lose()
    driver.settle()
    assert prompts(driver)[1:] == [1]
    assert driver.answered == [7]


def test_a_result_that_is_told_on_the_next_connection_answers_the_caller_as_well() -> None:
    """One say, one reply."""
    driver = connected(handle=True)
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.returns(result("c1"))
    driver.server.freeze()
    driver.lose()
    driver.settle()
    assert prompts(driver) == [0, 1]
    assert len(driver.replies("<c1=42>")) == 1


# ------------------------------------------------------------ a healthy link


def test_a_caller_who_gets_nothing_at_all_is_answered_after_a_nudge() -> None:
    """B15: once, after ``reply_timeout``."""
    driver = connected()
    heard(driver)
    driver.elapse(9.9)
    assert prompts(driver) == [0]
    driver.elapse(0.2)
    driver.settle()
    assert prompts(driver) == [1]
    assert [r.done for r in driver.server.replies] == [True]
    assert driver.speech_starts == 1, "the answer that was asked for interrupts nobody"


def test_a_model_that_may_stay_silent_is_left_alone() -> None:
    """Proactive audio lets it decide."""
    driver = connected(may_stay_silent=True)
    heard(driver)
    driver.settle()
    assert prompts(driver) == [0]


def test_an_empty_turn_is_the_decision_of_the_model() -> None:
    """It is no silence that nobody accounts for."""
    driver = connected()
    heard(driver)
    driver.server.send(1, turn_complete=True)
    driver.settle()
    assert prompts(driver) == [0]


def test_a_reply_that_freezes_is_asked_for_once() -> None:
    """B16: it ends as interrupted, and the model is told what it had said."""
    driver = connected()
    freeze(driver)
    driver.elapse(9.0)
    assert driver.ended == []
    driver.settle()
    assert [interrupted for _, interrupted in driver.ended] == [True, False]
    (prompt,) = driver.server.live.prompts
    assert f'"{driver.ended[0][0].strip()}"' in prompt
    assert driver.dials == 1


@pytest.mark.parametrize("lack", ["answer", "rest"])
def test_a_model_that_does_not_answer_a_nudge_gets_a_fresh_session(lack: str) -> None:
    """B16: it may hear and never speak again; the handle is not used."""
    driver = connected(handle=True)
    if lack == "rest":
        freeze(driver)
    else:
        heard(driver)
    driver.server.mute = True
    driver.elapse(20.5)
    assert driver.closing == 1
    driver.server.mute = False
    driver.settle()
    assert driver.server.connections[2].handle is None
    assert prompts(driver) == [1, 1]
    assert driver.server.replies[-1].done
    assert driver.errors == []


def test_a_reply_that_freezes_again_and_again_ends_in_an_error() -> None:
    """B16: a word before it stops is no answer. Promise 3: it is not asked for for ever."""
    driver = connected(handle=True)
    heard(driver)
    driver.server.mute = True
    for asked in ([1], [1, 1], [1, 1]):
        assert driver.up is not None
        driver.server.send(driver.up, audio=(b"\x00\x00",), text="s1.")
        driver.deliver()
        driver.elapse(10.5)
        if driver.closing is not None:
            driver.finish_close()
            driver.connect()
        assert prompts(driver) == asked
    assert driver.server.connections[2].handle is None
    assert [type(error) for error, _ in driver.errors] == [CallerUnanswered]
    driver.elapse(60.0)
    assert prompts(driver) == [1, 1]


@pytest.mark.fault("B16")
@pytest.mark.parametrize("lack", ["link", "answer"])
def test_an_answer_that_was_asked_for_and_stops_is_asked_to_go_on_first(lack: str) -> None:
    """What was asked for before it began is no stop; the second one costs a fresh session."""
    driver = connected(handle=True)
    heard(driver)
    driver.server.mute = True
    if lack == "link":
        driver.lose()
        driver.connect()
    else:
        driver.elapse(10.5)
    first = driver.conversation.link.number
    for _ in range(2):
        assert driver.up == first
        driver.server.send(first, audio=(b"\x00\x00",), text="s1.")
        driver.deliver()
        driver.elapse(10.5)
    assert driver.closing == first
    assert prompts(driver)[-1] == 2
    driver.server.mute = False
    driver.settle()
    assert driver.server.connections[first + 1].handle is None
    assert driver.server.replies[-1].done


def test_an_answer_that_stops_wherever_it_is_asked_for_ends_in_an_error() -> None:
    """Promise 3: first a link is lost, then nothing comes, then every answer stops."""
    driver = connected()
    heard(driver)
    driver.server.mute = True
    driver.lose()
    driver.connect()
    driver.elapse(10.5)
    driver.finish_close()
    driver.connect()
    for _ in range(2):
        driver.server.send(3, audio=(b"\x00\x00",), text="s1.")
        driver.deliver()
        driver.elapse(10.5)
    assert CallerUnanswered in [type(error) for error, _ in driver.errors]
    asked = prompts(driver)
    driver.settle()
    assert prompts(driver) == asked == [0, 1, 2]


def test_a_model_that_never_answers_ends_in_an_error() -> None:
    """Promise 3: the conversation goes on."""
    driver = connected()
    heard(driver)
    driver.server.mute = True
    driver.settle()
    assert prompts(driver) == [1, 1]
    ((error, recoverable),) = driver.errors
    assert isinstance(error, CallerUnanswered)
    assert recoverable
    assert "within 10 s" in str(error)
    driver.server.mute = False
    driver.server.hear(2, "w2. Hello?")
    driver.settle()
    assert driver.server.replies[-1].done


def test_a_question_that_is_answered_by_an_empty_turn_is_not_waited_for() -> None:
    """The next step is taken at once."""
    driver = connected()
    heard(driver)
    driver.lose()
    driver.server.mute = True
    driver.connect()
    driver.server.send(2, turn_complete=True)
    driver.deliver()
    driver.elapse(0.0)
    assert driver.closing == 2


# ------------------------------------------------------------ generate_reply


def request(driver: Driver, number: int = 7, instructions: str | None = "Greet.") -> list[Effect]:
    """A reply is asked for."""
    return driver.feed(ReplyRequested(request=number, instructions=instructions))


def empty_turn(driver: Driver) -> None:
    """The server ends a turn without a word."""
    driver.server.send(1, turn_complete=True)
    driver.deliver()


def test_what_asks_for_a_reply_says_what_to_write_if_nobody_waits_for_it() -> None:
    """C4: the history goes out in any case, the question does not."""
    driver = connected()
    heard(driver)
    driver.adds("m1", "user", "m1. Hello.")
    (sent,) = request(driver, instructions=None)
    assert isinstance(sent, SendRequest)
    assert isinstance(sent.frame, SendContent)
    assert sent.request == 7
    assert sent.frame.turn_complete
    assert sent.otherwise == SendContent(turns=sent.frame.turns, turn_complete=False)


def test_the_reply_to_a_request_that_was_withdrawn_on_the_wire_is_nobodys() -> None:
    """C4: it cannot be stopped, and is not taken for an answer to anything."""
    driver = connected()
    request(driver)
    driver.feed(ReplyWithdrawn(request=7))
    request(driver, 8, "Say goodbye.")
    driver.settle()
    assert driver.answered == [8]
    driver = connected()
    request(driver)
    driver.feed(ReplyWithdrawn(request=7))
    driver.settle()
    assert driver.answered == []
    assert driver.failed == []


def test_a_request_that_is_answered_by_an_empty_turn_is_asked_once_in_the_other_way() -> None:
    """C5: and the way that works is the one that is used from then on."""
    driver = connected()
    driver.server.mute = True
    request(driver)
    driver.server.mute = False
    empty_turn(driver)
    driver.settle()
    assert driver.answered == [7]
    assert [type(e) for e in driver.server.live.written] == [SendContent, SendText]
    request(driver, 8)
    driver.settle()
    assert driver.answered == [7, 8]
    assert isinstance(driver.server.live.written[-1], SendText)


def test_a_request_that_is_answered_by_two_empty_turns_fails_at_once() -> None:
    """C5: nothing is learnt from that."""
    driver = connected()
    driver.server.mute = True
    request(driver)
    empty_turn(driver)
    assert driver.failed == []
    empty_turn(driver)
    assert driver.failed == [7]
    driver.server.mute = False
    request(driver, 8)
    driver.settle()
    assert driver.answered == [8]
    assert isinstance(driver.server.live.written[-1], SendContent)


def test_the_late_end_of_an_earlier_turn_is_no_empty_answer() -> None:
    """C5: the request was written before that turn was over."""
    driver = connected()
    driver.server.hear(1, "w1. Hello?")
    driver.deliver(frames=4)
    driver.server.mute = True
    request(driver)
    driver.deliver()
    assert driver.conversation.turn.at_rest
    assert len(driver.server.live.prompts) == 1
    assert driver.failed == []


def test_the_empty_turn_of_a_refused_call_is_no_empty_answer() -> None:
    """C5: some servers end the turn of an answered call without a word, and then speak."""
    driver = connected()
    driver.server.mute = True
    request(driver)
    driver.server.call(1, call("c1"), refused="not now")
    driver.deliver()
    empty_turn(driver)
    assert len(driver.server.live.prompts) == 1
    driver.server.mute = False
    driver.server.speak(1, ())
    driver.settle()
    assert driver.answered == [7]


def test_the_caller_speaking_in_between_proves_nothing_about_the_other_way() -> None:
    """C5: what the model says then may be the answer to the caller."""
    driver = connected()
    driver.server.mute = True
    request(driver)
    empty_turn(driver)
    driver.server.mute = False
    driver.server.hear(1, "w1. Hello?")
    driver.settle()
    request(driver, 8)
    assert isinstance(driver.server.live.written[-1], SendContent)


# ------------------------------------------------------------ while a tool runs (C6)


def at_work(*calls: str) -> Driver:
    """A model that waits for tools, and may be given an interim answer."""
    driver = Driver(INTERIM)
    driver.connect()
    driver.server.call(1, *(call(c) for c in calls))
    driver.deliver()
    return driver


def test_a_reply_during_a_call_goes_out_with_an_interim_answer_to_the_call() -> None:
    """One response, one reply, and the result is said when it comes."""
    driver = at_work("c1")
    (sent,) = request(driver, instructions="Ask for patience.")
    assert isinstance(sent, SendToolResponse)
    (interim,) = sent.results
    assert "still running" in interim.output
    assert "Ask for patience." in interim.output
    driver.server.speak(1, ())
    driver.settle()
    assert driver.answered == [7]
    assert prompts(driver) == [0]
    driver.returns(result("c1"))
    driver.settle()
    assert len(driver.replies("<c1=42>")) == 1
    assert driver.server.live.responses == ["c1"]
    assert driver.server.faults == []


def test_every_call_that_the_model_waits_for_is_answered_first() -> None:
    """One that stays open would keep it mute."""
    driver = at_work("c1", "c2")
    request(driver, instructions=None)
    assert sorted(driver.server.live.responses) == ["c1", "c2"]


def test_a_reply_during_a_call_of_a_lost_connection_is_asked_for_on_the_next() -> None:
    """Nothing is to be answered there: the next connection does not wait for the tool."""
    driver = at_work("c1")
    driver.lose()
    request(driver)
    driver.settle()
    assert driver.answered == [7]
    driver.returns(result("c1"))
    driver.settle()
    assert len(driver.replies("<c1=42>")) == 1


@pytest.mark.parametrize("other", [False, True], ids=["one call", "one of two withheld"])
def test_a_reply_during_a_call_that_a_restart_does_not_wait_for_obeys_the_new_prompt(
    other: bool,
) -> None:
    """C6: the connection with the old one is about to be replaced; nothing is answered there."""
    driver = Driver(replace(INTERIM, transition_tools="all"))
    driver.connect()
    driver.server.call(1, *(call(c) for c in ("c1", "c2")[: 1 + other]))
    driver.server.send(1, audio=(b"\x00\x00",))
    driver.deliver()
    driver.request_restart(RestartCause.INSTRUCTIONS)
    if other:
        driver.returns(result("c2"))
    assert request(driver) == []
    driver.settle()
    assert driver.server.connections[1].responses == []
    assert driver.answered == [7]
    driver.returns(result("c1"))
    driver.settle()
    assert len(driver.replies("<c1=42>")) == 1
    assert driver.server.faults == []


def test_an_interim_reply_that_never_comes_fails_in_time() -> None:
    """C6: five seconds after it was written, like any other."""
    driver = at_work("c1")
    driver.server.mute = True
    request(driver)
    driver.elapse(5.1)
    assert driver.failed == [7]


def test_a_restart_that_waits_carries_the_request_along() -> None:
    """C2: asked once, on the new connection."""
    driver = connected()
    driver.server.hear(1, "w1. Hello?")
    driver.deliver(frames=2)
    driver.request_restart(RestartCause.OPTIONS)
    request(driver)
    driver.settle()
    assert prompts(driver) == [0, 1]
    assert driver.answered == [7]


def test_a_function_that_was_removed_is_refused_and_the_rest_of_the_message_runs() -> None:
    """C8: until the connection that declares it is replaced."""
    driver = connected()
    gone = call("c1", "removed")
    driver.server.call(1, gone, call("c2"), removed=frozenset({"removed"}))
    driver.deliver()
    assert [c.call_id for c in driver.called] == ["c2"]
    driver.returns(result("c2"))
    driver.settle()
    assert sorted(driver.server.live.responses) == ["c1", "c2"]
    assert "not available any more" in driver.server.live.text


# ------------------------------------------------------------ requests that meet a call


def waiting_behind_a_restart(options: ResilienceOptions | None = None) -> Driver:
    """A request waits for a restart, and the model, which was about to answer, calls instead."""
    driver = Driver(options)
    driver.connect()
    heard(driver)
    driver.request_restart(RestartCause.OPTIONS)
    assert request(driver) == []
    driver.server.call(1, call("c1"))
    driver.deliver()
    return driver


def test_a_request_that_waits_fails_when_a_tool_holds_it_up() -> None:
    """The restart waits for the tool, LiveKit withholds its result until the request is decided."""
    driver = waiting_behind_a_restart()
    assert driver.failed == [7]
    driver.returns(result("c1"))
    driver.settle()
    assert len(driver.replies("<c1=42>")) == 1


def test_a_request_that_waits_is_spoken_before_the_result_of_a_tool_that_holds_it_up() -> None:
    """Opt-in: as for a request that is made while the tool runs."""
    driver = waiting_behind_a_restart(INTERIM)
    assert driver.server.live.responses == ["c1"]
    driver.server.speak(1, ())
    driver.deliver()
    assert driver.answered == [7]


@pytest.mark.parametrize("restart", [False, True])
def test_a_model_that_does_not_wait_for_its_tool_is_asked_while_it_runs(restart: bool) -> None:
    """LiveKit withholds the result until the reply has ended, and no restart comes before that."""
    driver = Driver(tools_block=False)
    driver.connect()
    heard(driver)
    driver.server.call(1, call("c1"))
    driver.server.send(1, turn_complete=True)
    driver.deliver()
    if restart:
        driver.request_restart(RestartCause.OPTIONS)
    request(driver)
    driver.deliver()
    assert driver.answered == [7]
    driver.returns(result("c1"))
    driver.settle()
    assert len(driver.replies("<c1=42>")) == 1


def test_a_model_that_does_not_wait_for_its_tool_ends_its_sentence_first() -> None:
    """What trails the call is not the reply."""
    driver = Driver(tools_block=False)
    driver.connect()
    driver.server.call(1, call("c1"))
    driver.server.send(1, audio=(b"\x00\x00",))
    driver.deliver()
    assert request(driver) == []
    driver.settle()
    assert driver.answered == [7]


def test_what_only_a_request_can_carry_goes_out_although_it_is_withdrawn() -> None:
    """This server takes history in the words of a request alone, and a result may be among it."""
    behaviour = Behaviour(trigger="realtime_text", content_at_any_time=False)
    driver = Driver(observed=Observed(behaviour))
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.lose()
    driver.connect()
    driver.returns(result("c1", reply=False))
    (sent,) = request(driver)
    assert isinstance(sent, SendRequest)
    assert isinstance(sent.otherwise, SendText)
    assert "<c1=42>" in sent.otherwise.text
    assert "Greet." not in sent.otherwise.text
