"""Is a function output owed to the model, or is it history?"""

from __future__ import annotations

from dataclasses import replace

from livekit_gemini_resilient.core.delivery import Ledger
from livekit_gemini_resilient.core.events import HistoryItem, ItemKind, ToolCall
from livekit_gemini_resilient.core.intake import Intake

from .driver import call, result


def called(call_id: str) -> HistoryItem:
    """A call in the context."""
    return HistoryItem(item_id="call-" + call_id, kind=ItemKind.CALL, call=call(call_id))


def output(call_id: str, item_id: str | None = None) -> HistoryItem:
    """An output in the context."""
    item_id = item_id or "output-" + call_id
    return HistoryItem(item_id=item_id, kind=ItemKind.OUTPUT, result=result(call_id))


class Contexts:
    """A session that is handed one context after the other."""

    def __init__(self) -> None:
        self.intake = Intake(max_result_bytes=100)
        self.ledger = Ledger()
        self.due: frozenset[str] = frozenset()
        self.calls: list[ToolCall | None] = []

    def update(self, *items: HistoryItem) -> tuple[list[str], list[str]]:
        """Ids of the results that are owed, and of those that are history."""
        owed, history = self.intake.updated(items, self.ledger, due=self.due)
        self.calls = [call for _, call in owed]
        return [r.call_id for r, _ in owed], [r.call_id for r in history]


def test_the_output_of_a_call_that_was_issued_here_is_owed() -> None:
    """Also if it comes with the first context, or together with its call."""
    contexts = Contexts()
    contexts.ledger.issue(call("c1"), 1)
    assert contexts.update(called("c1"), output("c1")) == (["c1"], [])


def test_an_output_in_the_first_context_is_history() -> None:
    """A19: it answers a call of an older conversation."""
    assert Contexts().update(called("c1"), output("c1")) == ([], ["c1"])
    assert Contexts().update(output("c1")) == ([], ["c1"])


def test_an_output_that_comes_alone_later_is_owed() -> None:
    """A8: an ``AgentTask`` hands a new session the result of a call that it never issued."""
    contexts = Contexts()
    contexts.update(called("c1"))
    assert contexts.update(called("c1"), output("c1")) == (["c1"], [])
    assert contexts.calls == [call("c1")]


def test_an_output_that_comes_alone_and_wants_no_reply_is_history() -> None:
    """LiveKit tells a session that follows another that a tool is still running."""
    contexts = Contexts()
    contexts.update(called("c1"))
    quiet = HistoryItem(item_id="o", kind=ItemKind.OUTPUT, result=result("c1", reply=False))
    assert contexts.update(called("c1"), quiet) == ([], ["c1"])


def test_an_output_in_the_first_context_is_owed_if_another_session_owed_the_reply() -> None:
    """A18: a model is swapped for another before the caller heard an answer."""
    contexts = Contexts()
    contexts.due = frozenset({"c1"})
    assert contexts.update(called("c1"), output("c1"), output("c2")) == (["c1"], ["c2"])
    assert contexts.calls == [call("c1")]


def test_call_and_output_that_arrive_together_are_history() -> None:
    """A19: the framework makes such pairs, with ids of its own."""
    contexts = Contexts()
    contexts.update()
    assert contexts.update(called("c1"), output("c1")) == ([], ["c1"])


def test_an_output_is_taken_once_however_often_the_context_comes() -> None:
    """Each update carries everything."""
    contexts = Contexts()
    contexts.update()
    contexts.update(output("c1"))
    assert contexts.update(output("c1")) == ([], [])


def test_a_second_output_for_one_call_is_handed_on_to_the_ledger() -> None:
    """It knows duplicates by their call."""
    contexts = Contexts()
    contexts.ledger.issue(call("c1"), 1)
    contexts.update(output("c1"))
    assert contexts.update(output("c1"), output("c1", "again")) == (["c1"], [])


def test_what_was_there_when_a_connection_opened_is_not_new() -> None:
    """It was handed over before, and is the newest context."""
    contexts = Contexts()
    contexts.update()
    contexts.intake.connected((output("c1"),))
    assert contexts.update(output("c1")) == ([], [])
    assert contexts.intake.items == (output("c1"),)


def test_an_output_is_fit_to_be_told_on_every_route() -> None:
    """A16: what closed a connection once is also left out of the history of the next."""
    large = replace(result("c1"), output="x" * 101)
    contexts = Contexts()
    contexts.update(HistoryItem(item_id="output-c1", kind=ItemKind.OUTPUT, result=large))
    (kept,) = contexts.intake.items
    assert kept.result is not None
    assert "101 bytes" in kept.result.output
