"""When a tool runs whose effect is another prompt or another agent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from livekit_gemini_resilient.core.effects import Outcome, ReportOutcome, SendToolResponse
from livekit_gemini_resilient.core.events import (
    ContextUpdated,
    InstructionsChanged,
    RestartCause,
    ServerFrame,
)
from livekit_gemini_resilient.core.transitions import Transitions
from livekit_gemini_resilient.core.turn_state import TurnState
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result

IDLE, GENERATING = TurnState.IDLE, TurnState.GENERATING
TRANSFER = call("a", "transfer")
LOOKUP = call("b")


def transitions(*names: str) -> Transitions:
    """0.25 s of quiet, 30 s of patience."""
    return Transitions(names=frozenset(names or ["transfer"]), quiet=0.25, patience=30.0)


def test_a_transition_is_held_while_the_model_speaks_and_nothing_else_is() -> None:
    """Other tools do not cut it."""
    held = transitions()
    assert held.arrived([TRANSFER, LOOKUP], state=GENERATING, with_speech=False, now=0.0) == (
        LOOKUP,
    )
    assert held.holding
    assert held.release(GENERATING, model_waits=False, now=1.0) == ()
    assert held.release(IDLE, model_waits=False, now=1.0) == (TRANSFER,)
    assert not held.holding
    assert held.let_go == {"a"}


def test_a_transition_of_a_silent_model_runs_at_once() -> None:
    """There is nothing to wait for."""
    assert transitions().arrived([TRANSFER], state=IDLE, with_speech=False, now=0.0) == (TRANSFER,)


def test_held_calls_queue_up_in_their_order_and_one_of_them_once() -> None:
    """None takes the place of another; the same one again is the same one."""
    held, later = transitions(), call("c", "transfer")
    held.arrived([TRANSFER], state=GENERATING, with_speech=False, now=0.0)
    assert held.arrived([TRANSFER, later], state=IDLE, with_speech=False, now=1.0) == ()
    assert held.release(IDLE, model_waits=False, now=1.0) == (TRANSFER, later)


def test_a_model_that_waits_has_finished_when_it_falls_quiet() -> None:
    """It ends no turn before it has the answer."""
    held = transitions()
    held.arrived([TRANSFER], state=GENERATING, with_speech=False, now=0.0)
    held.frame_received(now=1.0)
    assert held.next_deadline(GENERATING, model_waits=True) == 1.25
    assert held.release(GENERATING, model_waits=True, now=1.2) == ()
    assert held.release(GENERATING, model_waits=True, now=1.25) == (TRANSFER,)


def test_a_call_is_held_in_bounded_time() -> None:
    """Also by a model that speaks on and on, counted from the first call."""
    held = transitions()
    held.arrived([TRANSFER], state=GENERATING, with_speech=False, now=0.0)
    held.arrived([call("c", "transfer")], state=GENERATING, with_speech=False, now=20.0)
    assert held.next_deadline(GENERATING, model_waits=False) == 30.0
    assert len(held.release(GENERATING, model_waits=False, now=30.0)) == 2
    assert held.next_deadline(GENERATING, model_waits=False) is None


def test_a_held_call_that_is_cancelled_never_runs() -> None:
    """The server wants no answer."""
    held = transitions()
    held.arrived([TRANSFER], state=GENERATING, with_speech=False, now=0.0)
    held.cancelled(["a"], unnamed=False)
    assert held.release(IDLE, model_waits=False, now=1.0) == ()


def driven(*, tools_block: bool = False, tools: Collection[str] | str = "all") -> Driver:
    """A model that speaks and calls a transition tool meanwhile."""
    options = ResilienceOptions(transition_tools=tools)
    driver = Driver(options, tools_block=tools_block)
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.send(1, audio=(b"ab",), text="One moment.")
    driver.server.call(1, TRANSFER)
    driver.deliver()
    assert driver.called == []
    return driver


def test_what_the_model_was_saying_is_one_message() -> None:
    """The call comes after it, in a generation of its own."""
    driver = driven()
    driver.feed(ServerFrame(connection=1, text=" I am transferring you."))
    driver.feed(ServerFrame(connection=1, generation_complete=True, turn_complete=True))
    assert driver.called == [TRANSFER]
    assert driver.ended[0] == ("One moment. I am transferring you.", False)


def test_a_model_that_was_asked_and_has_not_spoken_is_not_speaking() -> None:
    """The caller's words open a generation, and a call that answers them breaks nothing off."""
    driver = Driver(ResilienceOptions(transition_tools="all"), tools_block=False)
    driver.connect()
    driver.feed(ServerFrame(connection=1, user_words="Transfer me."))
    driver.feed(ServerFrame(connection=1, calls=(TRANSFER,)))
    assert driver.called == [TRANSFER]


@pytest.mark.parametrize("tools_block", [True, False])
def test_a_call_whose_connection_is_lost_runs_once_and_its_result_is_told_on_the_next(
    tools_block: bool,
) -> None:
    """What was being said was cut, and is recorded so; the call neither vanishes nor runs twice."""
    driver = driven(tools_block=tools_block)
    driver.lose()
    assert driver.called == [TRANSFER]
    assert driver.ended[0] == ("One moment.", True)
    assert driver.conversation.turn.state is IDLE, "the next connection asked for nothing"
    driver.connect()
    driver.returns(result("a"))
    driver.settle()
    assert driver.called == [TRANSFER]
    assert driver.server.live.responses == [], "the new connection never issued the call"
    assert len(driver.replies("<a=42>")) == 1
    assert driver.outcome("a") == [Outcome.REPLIED]


@pytest.mark.parametrize("tools_block", [True, False])
def test_a_call_of_another_tool_in_the_same_message_runs_at_once_and_lets_nothing_else_go(
    tools_block: bool,
) -> None:
    """It ends the generation, and not what the model has to say: that trails the call."""
    driver = Driver(ResilienceOptions(transition_tools=["transfer"]), tools_block=tools_block)
    driver.connect()
    driver.feed(ServerFrame(connection=1, text="One moment."))
    driver.feed(ServerFrame(connection=1, calls=(LOOKUP, TRANSFER)))
    assert driver.called == [LOOKUP]
    driver.elapse(0.2)
    driver.feed(ServerFrame(connection=1, text=" I am transferring you."))
    driver.elapse(0.2)
    assert driver.called == [LOOKUP]
    driver.elapse(0.1)
    assert driver.called == [LOOKUP, TRANSFER]


def test_a_batch_that_comes_while_another_is_held_queues_behind_it() -> None:
    """A held batch is never replaced by a later one."""
    driver, later = driven(), call("c", "transfer")
    driver.feed(ServerFrame(connection=1, calls=(later,)))
    driver.feed(ServerFrame(connection=1, calls=(TRANSFER,)))
    assert driver.called == []
    driver.feed(ServerFrame(connection=1, generation_complete=True, turn_complete=True))
    assert driver.called == [TRANSFER, later]


@pytest.mark.parametrize("tools_block", [True, False])
def test_a_held_call_of_which_the_server_wants_no_answer_never_runs(tools_block: bool) -> None:
    """What is said goes on, and nothing waits for the call any more."""
    driver = driven(tools_block=tools_block)
    driver.server.cancel(1, "a")
    driver.server.send(1, generation_complete=True, turn_complete=True)
    driver.deliver()
    driver.settle()
    assert driver.called == []
    assert driver.ended == [("One moment.", False)]
    driver.request_restart(RestartCause.OPTIONS)
    driver.settle()
    assert len(driver.reconnects) == 1


def test_a_model_that_never_stops_is_waited_for_in_bounded_time() -> None:
    """The call is let go after ``max_defer`` seconds although speech goes on."""
    driver = driven()
    for _ in range(29):
        driver.elapse(1.0)
        driver.feed(ServerFrame(connection=1, audio=(b"ab",)))
    assert driver.called == []
    driver.elapse(1.0)
    assert driver.called == [TRANSFER]


def test_a_call_that_is_held_when_the_session_is_closed_never_runs() -> None:
    """And no deadline of it is left."""
    driver = driven()
    driver.conversation.close()
    driver.elapse(60.0)
    driver.returns()
    assert driver.called == []


@pytest.mark.parametrize("tools_block", [True, False])
def test_a_caller_who_interrupts_what_is_said_lets_the_call_go(tools_block: bool) -> None:
    """There is nothing left to cut; an interruption alone takes no call back (observed)."""
    driver = driven(tools_block=tools_block)
    driver.server.interrupt(1)
    driver.deliver()
    assert driver.called == [TRANSFER]
    assert driver.ended[0] == ("One moment.", True)
    driver.returns(result("a"))
    driver.settle()
    assert driver.called == [TRANSFER]
    assert driver.outcome("a") == [Outcome.REPLIED]


def test_a_notice_that_leaves_no_time_replaces_the_connection_and_then_the_call_runs() -> None:
    """Within the time that is left: the wait for the end of the sentence is not longer."""
    driver = driven()
    driver.feed(ServerFrame(connection=1, time_left=4.0))
    driver.elapse(1.9)
    assert (driver.called, driver.closing) == ([], None)
    driver.elapse(0.1)
    assert driver.closing == 1
    driver.finish_close()
    assert driver.called == [TRANSFER]
    driver.connect()
    driver.returns(result("a"))
    driver.settle()
    assert driver.called == [TRANSFER]
    assert driver.outcome("a") == [Outcome.REPLIED]


@pytest.mark.parametrize("restart", [True, False])
def test_the_result_is_left_to_the_new_prompt_if_one_was_asked_for(restart: bool) -> None:
    """Told as usual without."""
    driver = driven(tools_block=True)
    driver.elapse(0.5)
    assert driver.called == [TRANSFER]
    if restart:
        driver.request_restart(RestartCause.OPTIONS)
        assert driver.closing == 1
    driver.returns(result("a"))
    told = [type(effect).__name__ for effect in driver.written]
    assert told == ([] if restart else ["SendToolResponse"])


def handed_over(output: str = "<a=42>") -> Driver:
    """A transition tool returned the next agent and a result."""
    driver = driven(tools_block=True)
    driver.elapse(0.5)
    driver.leaves()
    driver.returns(replace(result("a"), output=output))
    assert driver.written == [], "the old prompt was told the result"
    return driver


@pytest.mark.parametrize("needs", ["connection", "words in place", "nothing"])
def test_the_result_of_a_hand_over_is_left_to_the_agent_that_follows(needs: str) -> None:
    """Told to the old prompt, it would be spoken about to nobody, and be told again."""
    driver = handed_over()
    if needs == "connection":
        driver.request_restart(RestartCause.INSTRUCTIONS)
    elif needs == "words in place":
        # a model that waits for an answer takes no content
        driver.feed(InstructionsChanged(text="You are the billing desk."))
    driver.enters()
    began = driver.now
    driver.settle()
    (reply,) = driver.replies("<a=42>")
    assert reply.connection == (1 if needs == "nothing" else 2)
    assert driver.outcome("a") == [Outcome.REPLIED]
    assert driver.skipped == set()
    assert driver.now - began < driver.options.reply_timeout


def test_an_agent_that_never_comes_is_not_waited_for_without_end() -> None:
    """The result is told to whoever listens."""
    driver = handed_over()
    driver.elapse(driver.options.reply_timeout)
    driver.settle()
    assert isinstance(driver.written[0], SendToolResponse)


@pytest.mark.parametrize("output", ["settled", ""])
def test_a_session_that_is_closed_for_the_next_agent_leaves_it_the_result(output: str) -> None:
    """The agent has tools of its own, and so a session of its own; nothing is told of nothing."""
    driver = handed_over(output)
    due = [r.output for _, r in driver.conversation.ledger.due_replies]
    assert due == ([output] if output else [])
    effects = driver.conversation.close(handed_over=True)
    assert effects == [ReportOutcome(call_id="a", outcome=Outcome.HANDED_OVER)]
