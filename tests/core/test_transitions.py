"""When a tool runs whose effect is another prompt or another agent."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.events import RestartCause, ServerFrame
from livekit_gemini_resilient.core.transitions import Transitions
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result

TRANSFER = call("a", "transfer")
LOOKUP = call("b")


def transitions(*names: str) -> Transitions:
    """0.25 s of quiet, 30 s of patience."""
    return Transitions(names=frozenset(names or ["transfer"]), quiet=0.25, patience=30.0)


def test_a_transition_is_held_while_the_model_speaks_and_nothing_else_is() -> None:
    """Other tools do not cut it."""
    held = transitions()
    assert held.arrived([TRANSFER, LOOKUP], speaking=True, now=0.0) == (LOOKUP,)
    assert held.holding
    assert held.release(speaking=True, model_waits=False, now=1.0) == ()
    assert held.release(speaking=False, model_waits=False, now=1.0) == (TRANSFER,)
    assert not held.holding
    assert held.let_go == {"a"}


def test_a_transition_of_a_silent_model_runs_at_once() -> None:
    """There is nothing to wait for."""
    assert transitions().arrived([TRANSFER], speaking=False, now=0.0) == (TRANSFER,)


def test_held_calls_queue_up_in_their_order_and_one_of_them_once() -> None:
    """None takes the place of another; the same one again is the same one."""
    held, later = transitions(), call("c", "transfer")
    held.arrived([TRANSFER], speaking=True, now=0.0)
    assert held.arrived([TRANSFER, later], speaking=False, now=1.0) == ()
    assert held.release(speaking=False, model_waits=False, now=1.0) == (TRANSFER, later)


def test_a_model_that_waits_has_finished_when_it_falls_quiet() -> None:
    """It ends no turn before it has the answer."""
    held = transitions()
    held.arrived([TRANSFER], speaking=True, now=0.0)
    held.frame_received(now=1.0)
    assert held.next_deadline(model_waits=True) == 1.25
    assert held.release(speaking=True, model_waits=True, now=1.2) == ()
    assert held.release(speaking=True, model_waits=True, now=1.25) == (TRANSFER,)


def test_a_call_is_held_in_bounded_time() -> None:
    """Also by a model that speaks on and on, counted from the first call."""
    held = transitions()
    held.arrived([TRANSFER], speaking=True, now=0.0)
    held.arrived([call("c", "transfer")], speaking=True, now=20.0)
    assert held.next_deadline(model_waits=False) == 30.0
    assert len(held.release(speaking=True, model_waits=False, now=30.0)) == 2
    assert held.next_deadline(model_waits=False) is None


def test_a_held_call_that_is_cancelled_never_runs() -> None:
    """The server wants no answer."""
    held = transitions()
    held.arrived([TRANSFER], speaking=True, now=0.0)
    held.cancelled(["a"], unnamed=False)
    assert held.release(speaking=False, model_waits=False, now=1.0) == ()


def driven(*, tools_block: bool = False) -> Driver:
    """A model that speaks and calls a transition tool meanwhile."""
    options = ResilienceOptions(transition_tools="all")
    driver = Driver(options, tools_block=tools_block)
    driver.connect()
    driver.feed(ServerFrame(connection=1, audio=(b"ab",)))
    driver.feed(ServerFrame(connection=1, calls=(TRANSFER,)))
    assert driver.called == []
    return driver


def test_what_the_model_was_saying_is_one_message() -> None:
    """The call comes after it, in a generation of its own."""
    driver = driven()
    driver.feed(ServerFrame(connection=1, text="One moment."))
    driver.feed(ServerFrame(connection=1, generation_complete=True, turn_complete=True))
    assert driver.called == [TRANSFER]
    assert driver.ended[0] == ("One moment.", False)


def test_a_call_whose_connection_is_lost_runs_all_the_same() -> None:
    """Its result is told on the next one."""
    driver = driven()
    driver.lose()
    assert driver.called == [TRANSFER]


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
