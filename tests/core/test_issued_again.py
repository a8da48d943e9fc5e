"""A call that is issued again: its tool runs once (fault A15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from livekit_gemini_resilient.core import wording
from livekit_gemini_resilient.core.delivery import Ledger
from livekit_gemini_resilient.core.effects import Outcome
from livekit_gemini_resilient.core.events import ToolCall
from livekit_gemini_resilient.core.evidence import (
    connection_closed,
    generation_completed,
    generation_started,
    settle_failed,
)

from .driver import Driver, call, result

AGAIN = replace(call("c1"), call_id="c9")
"""The same function with the same arguments, under another id."""


def lost(*, answered: bool = False) -> Ledger:
    """One call on a connection that has ended, before anything was told there."""
    ledger = Ledger()
    ledger.issue(call("c1"), 1)
    if answered:
        ledger.produce(result("c1"))
    connection_closed(ledger, 1)
    return ledger


def ids(ledger: Ledger, connection: int) -> list[str]:
    """Ids under which results go out as responses."""
    return [r.call_id for r in ledger.tell_by_response(connection, wording.still_running)]


@pytest.mark.fault("A15")
@pytest.mark.parametrize("answered", [True, False], ids=["finished", "running"])
@pytest.mark.parametrize("again", [AGAIN, call("c1")], ids=["another id", "the same id"])
def test_a_forgotten_call_is_answered_from_the_first_run(answered: bool, again: ToolCall) -> None:
    """Under the id by which the new connection waits for it."""
    ledger = lost(answered=answered)
    assert ledger.rejoin(again, 2, new_input=False)
    assert ledger.open_on(2)
    if not answered:
        ledger.produce(result("c1"))
    assert ids(ledger, 2) == [again.call_id]
    assert not ledger.open_on(2)
    assert ids(ledger, 2) == []
    evidence = generation_started(ledger, 2, about_other=False)
    assert [call_id for call_id, _ in generation_completed(ledger, evidence)] == ["c1"]


@pytest.mark.fault("A15")
@pytest.mark.parametrize("waited", [True, False], ids=["in vain", "within the grace"])
def test_a_forgotten_call_that_was_settled_is_answered_all_the_same(waited: bool) -> None:
    """The response that settled carried the id of an exchange that the server gave up."""
    ledger = lost(answered=True)
    ledger.settle(2, lambda c: result(c.call_id))
    if waited:
        settle_failed(ledger, 2)
    assert ledger.rejoin(AGAIN, 2, new_input=False)
    assert ids(ledger, 2) == ["c9"]
    assert ledger.to_say(2) == ()


@pytest.mark.fault("A15")
@pytest.mark.fault("B14")
def test_the_same_id_twice_on_one_connection_is_a_duplicate() -> None:
    """It is neither run nor answered a second time."""
    ledger = Ledger()
    ledger.issue(call("c1"), 1)
    ledger.produce(result("c1"))
    assert ids(ledger, 1) == ["c1"]
    assert ledger.rejoin(call("c1"), 1, new_input=False)
    assert ids(ledger, 1) == []


@pytest.mark.fault("A15")
def test_one_earlier_call_stands_for_one_later_call() -> None:
    """The second time the model means it."""
    ledger = lost()
    assert ledger.rejoin(AGAIN, 2, new_input=False)
    assert not ledger.rejoin(replace(AGAIN, call_id="c10"), 2, new_input=False)


@pytest.mark.fault("A15")
def test_a_call_is_new_where_the_caller_asked_again() -> None:
    """New words may want a new run."""
    assert not lost().rejoin(AGAIN, 2, new_input=True)


@pytest.mark.fault("A15")
def test_a_call_is_new_on_the_connection_that_issued_its_twin() -> None:
    """The same arguments with another id."""
    ledger = Ledger()
    ledger.issue(call("c1"), 1)
    assert not ledger.rejoin(AGAIN, 1, new_input=False)


@pytest.mark.fault("A15")
@pytest.mark.parametrize(
    "other",
    [replace(AGAIN, name="book"), replace(AGAIN, arguments="{}")],
    ids=["another function", "other arguments"],
)
def test_a_call_for_something_else_is_new(other: ToolCall) -> None:
    """Name and arguments must be the same."""
    assert not lost().rejoin(other, 2, new_input=False)


@pytest.mark.fault("A15")
def test_a_call_is_new_where_the_first_run_failed_was_cancelled_or_was_told() -> None:
    """There is nothing to answer it from, or the model knows and asks once more."""
    failed = lost()
    failed.produce(replace(result("c1"), is_error=True))
    assert not failed.rejoin(AGAIN, 2, new_input=False)
    cancelled = lost()
    cancelled.cancel(["c1"])
    assert not cancelled.rejoin(AGAIN, 2, new_input=False)
    told = lost(answered=True)
    told.said(told.to_say(2), 2)
    assert not told.rejoin(AGAIN, 2, new_input=False)


@pytest.mark.fault("A15")
@pytest.mark.fault("A10")
def test_a_call_can_be_cancelled_by_the_id_under_which_it_was_issued_again() -> None:
    """The server knows no other."""
    ledger = lost()
    ledger.rejoin(AGAIN, 2, new_input=False)
    ledger.cancel(["c9"])
    assert not ledger.open_on(2)
    ledger.produce(result("c1"))
    assert ids(ledger, 2) == []


@pytest.mark.fault("A11")
def test_calls_without_ids_are_answered_in_the_order_in_which_the_server_asks() -> None:
    """Not in that of their first runs: the server tells their responses apart by the order."""
    driver = Driver()
    driver.connect()
    first = replace(call("c1"), has_id=False)
    driver.server.call(1, first)
    driver.deliver()
    driver.lose()
    driver.connect()
    again = replace(first, call_id="c9")
    driver.server.call(2, replace(call("c2"), has_id=False), again)
    driver.deliver()
    driver.returns(result("c1"))
    driver.returns(result("c2"))
    driver.settle()
    assert driver.server.faults == []
    assert driver.server.connections[2].responses == ["c2", "c9"]


@pytest.mark.fault("A10")
def test_a_cancelled_call_that_is_issued_again_under_its_id_is_answered() -> None:
    """The connection waits for it, whatever became of the call on an earlier one."""
    ledger = Ledger()
    ledger.issue(call("c1"), 1)
    ledger.cancel(["c1"])
    ledger.produce(result("c1"))
    assert ledger.rejoin(call("c1"), 2, new_input=False)
    assert ids(ledger, 2) == ["c1"]
    assert ledger.reply_due


@pytest.mark.fault("A15")
@pytest.mark.parametrize("ending", ["answered", "silent", "closed"])
def test_a_result_that_is_told_again_has_one_outcome(ending: str) -> None:
    """What became of it was reported; the connection that makes the call again is answered."""
    driver = Driver()
    driver.connect()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.returns(result("c1"))
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]
    driver.lose()
    driver.connect()
    driver.server.mute = ending != "answered"
    driver.server.call(2, call("c1"))
    driver.deliver()
    if ending != "closed":
        driver.settle()
    driver._carry_out(driver.conversation.close())
    assert driver.server.connections[2].responses == ["c1"]
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert [call.call_id for call in driver.called] == ["c1"]
