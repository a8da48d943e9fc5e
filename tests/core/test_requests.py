"""``generate_reply``: asked once, answered or failed in time, never a ghost."""

from __future__ import annotations

from livekit_gemini_resilient.core.effects import Effect, FailReply
from livekit_gemini_resilient.core.errors import ReplyRefused
from livekit_gemini_resilient.core.requests import ANSWER_WITHIN, WRITE_WITHIN, Requests


def failed(effects: list[Effect]) -> list[int]:
    """The requests that failed, each with a reason and an advice."""
    numbers = []
    for effect in effects:
        assert isinstance(effect, FailReply)
        assert isinstance(effect.error, ReplyRefused)
        assert effect.error.reason in str(effect.error)
        assert effect.error.advice in str(effect.error)
        numbers.append(effect.request)
    return numbers


def asked(*, written_at: float | None = None) -> Requests:
    """Request 1, made at 0."""
    requests = Requests()
    assert requests.add(1, "Greet.", now=0.0) == []
    if written_at is not None:
        requests.mark_written(now=written_at)
    return requests


def test_a_request_is_answered_by_the_first_generation_after_it_was_written() -> None:
    """Not by one before."""
    requests = asked()
    assert requests.answer() is None
    requests.mark_written(now=1.0)
    assert requests.answer() == 1
    assert requests.answer() is None
    assert requests.next_deadline is None


def test_a_newer_request_fails_the_older() -> None:
    """As in LiveKit's other plugins."""
    requests = asked(written_at=0.0)
    assert failed(requests.add(2, None, now=1.0)) == [1]
    assert requests.waiting
    assert requests.instructions is None


def test_its_time_runs_from_the_moment_it_is_written() -> None:
    """C4: a slow reconnect does not use it up."""
    requests = asked()
    assert requests.next_deadline == WRITE_WITHIN
    requests.mark_written(now=20.0)
    assert requests.next_deadline == 20.0 + ANSWER_WITHIN
    assert requests.advance(now=24.9) == []
    assert failed(requests.advance(now=25.0)) == [1]
    assert requests.next_deadline is None


def test_a_request_that_cannot_be_written_fails_too() -> None:
    """Nothing waits without a timer."""
    assert failed(asked().advance(now=WRITE_WITHIN)) == [1]


def test_a_lost_connection_makes_it_wait_again() -> None:
    """C3: asked again on the next one."""
    requests = asked(written_at=1.0)
    requests.connection_lost()
    assert requests.waiting
    assert requests.instructions == "Greet."
    assert requests.next_deadline == WRITE_WITHIN


def test_a_withdrawn_request_is_gone() -> None:
    """C4: whether it was written or not; another one is not touched."""
    requests = asked(written_at=1.0)
    requests.withdraw(2)
    assert requests.written
    requests.withdraw(1)
    assert not requests.written
    assert not requests.waiting
    assert requests.answer() is None


def test_nothing_follows_where_nothing_was_asked() -> None:
    """Every method is total."""
    requests = Requests()
    requests.connection_lost()
    requests.mark_written(now=0.0)
    requests.withdraw(1)
    assert requests.advance(now=1e9) == []
    assert requests.fail("reason", "advice") == []
    assert not requests.waiting
    assert not requests.written
