"""Replies that closed sessions owed: who takes them, and until when."""

from __future__ import annotations

from livekit_gemini_resilient.core.owed import KEPT, HandedOver, OwedReplies

from .driver import call, result


def results(*call_ids: str) -> HandedOver:
    """One result for each call."""
    return tuple((call(call_id), result(call_id)) for call_id in call_ids)


def test_the_next_agent_of_the_call_takes_what_was_left_once() -> None:
    """No other call has a share in it."""
    owed: OwedReplies[str] = OwedReplies({})
    owed.leave_to_next("room", results("c1", "c2"), now=0.0)
    assert owed.take_left("elsewhere", now=1.0) == ()
    assert owed.take_left("room", now=1.0) == results("c1", "c2")
    assert owed.take_left("room", now=1.0) == ()


def test_an_agent_that_leaves_at_once_passes_on_what_was_left_to_it() -> None:
    """Oldest first, and with the time of the last one to leave."""
    owed: OwedReplies[str] = OwedReplies({})
    owed.leave_to_next("room", results("c1"), now=0.0)
    owed.leave_to_next("room", results("c2"), now=KEPT)
    assert owed.take_left("room", now=2 * KEPT) == results("c1", "c2")


def test_what_was_left_long_ago_is_not_taken_nor_passed_on() -> None:
    """Agents without a realtime model of ours came in between."""
    owed: OwedReplies[str] = OwedReplies({})
    owed.leave_to_next("room", results("c1"), now=0.0)
    assert owed.take_left("room", now=KEPT + 1) == ()
    owed.leave_to_next("room", results("c1"), now=0.0)
    owed.leave_to_next("room", results("c2"), now=KEPT + 1)
    assert owed.take_left("room", now=KEPT + 1) == results("c2")


def test_what_was_left_ends_with_the_call() -> None:
    """The next call under the same name begins with nothing; to end it twice does no harm."""
    owed: OwedReplies[str] = OwedReplies({})
    owed.leave_to_next("room", results("c1"), now=0.0)
    owed.call_ended("room")
    owed.call_ended("room")
    assert owed.take_left("room", now=0.0) == ()


def test_a_reply_that_nobody_was_left_goes_to_the_context_that_has_the_call_once() -> None:
    """Calls that no session left open are history."""
    owed: OwedReplies[str] = OwedReplies({})
    owed.leave_open(["c1", "c2"], now=0.0)
    assert owed.take_due(["c1", "other"], now=KEPT) == {"c1"}
    assert owed.take_due(["c1", "c2"], now=KEPT) == {"c2"}


def test_a_reply_is_not_due_for_ever() -> None:
    """One that is left again is due from then on."""
    owed: OwedReplies[str] = OwedReplies({})
    owed.leave_open(["c1", "c2"], now=0.0)
    owed.leave_open(["c2"], now=KEPT)
    assert owed.take_due(["c1", "c2"], now=KEPT + 1) == {"c2"}
