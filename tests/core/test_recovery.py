"""What follows from a failure: every row of the table."""

from __future__ import annotations

from itertools import product

import pytest

from livekit_gemini_resilient.core.recovery import Failure, Verdict, advice, backoff, judge

CODES = (None, 400, 401, 403, 404, 429, 503, 1000, 1001, 1007, 1008, 1011)


def failure(
    code: int | None = 1011,
    *,
    invalid: bool = False,
    first: bool = False,
    resumed: bool = False,
    young: bool = False,
    opened: bool = True,
    timed_out: bool = False,
) -> Failure:
    """An ordinary failure of a connection in mid-conversation, but for what is given."""
    return Failure(
        code=code,
        invalid=invalid,
        first=first,
        resumed=resumed,
        young=young,
        opened=opened,
        timed_out=timed_out,
    )


def verdict(seen: Failure, *, attempts: int = 1) -> Verdict:
    """The verdict with a budget of three."""
    return judge(seen, attempts=attempts, max_retry=3)


@pytest.mark.parametrize("first", [True, False])
def test_a_configuration_that_cannot_be_built_is_fatal(first: bool) -> None:
    """No retry can help."""
    assert verdict(failure(None, invalid=True, first=first)) is Verdict.FATAL


@pytest.mark.parametrize("code", [1007, 1008, 400, 401, 403, 404])
def test_a_first_setup_that_is_refused_is_fatal(code: int) -> None:
    """It would be refused again."""
    assert verdict(failure(code, first=True, young=True)) is Verdict.FATAL


@pytest.mark.parametrize("code", [1007, 1008, 400, 401, 403, 404])
def test_the_same_refusal_in_mid_conversation_is_retried(code: int) -> None:
    """E3: the setup is known to have worked."""
    assert verdict(failure(code)) is Verdict.RETRY


@pytest.mark.parametrize("code", [1007, 1008])
def test_a_callers_handle_that_is_refused_is_dropped(code: int) -> None:
    """E2: an expired handle looks like a bad setup, so the setup is tried without it."""
    assert verdict(failure(code, first=True, resumed=True, young=True)) is Verdict.FRESH


@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_a_bad_key_is_fatal_whether_a_handle_was_offered_or_not(code: int) -> None:
    """A handle has no part in it."""
    assert verdict(failure(code, first=True, resumed=True, young=True)) is Verdict.FATAL


@pytest.mark.parametrize("code", [1000, 1007, 1008, 1011])
def test_a_handle_whose_connection_dies_at_once_is_dropped(code: int) -> None:
    """E2: refused, expired or poisoned."""
    assert verdict(failure(code, resumed=True, young=True)) is Verdict.FRESH


@pytest.mark.parametrize("code", [400, 401, 403, 404, 429, 500, 503])
def test_a_dial_that_ended_in_http_tells_nothing_against_a_handle(code: int) -> None:
    """It was not sent yet: the setup that carries it follows the upgrade to a websocket."""
    seen = failure(code, resumed=True, young=True, opened=False)
    assert [verdict(seen, attempts=n) for n in (1, 2, 3)] == [Verdict.RETRY] * 3


def test_an_abort_tells_nothing_against_a_handle() -> None:
    """No close code: the network, not the service."""
    assert verdict(failure(None, resumed=True, young=True)) is Verdict.RETRY


def test_a_second_abort_does() -> None:
    """E2: the conversation is not given up before a session without the handle was tried."""
    seen = failure(None, resumed=True, young=True)
    assert verdict(seen, attempts=2) is Verdict.FRESH


def test_no_number_of_dials_that_nobody_takes_does() -> None:
    """The server never saw the handle."""
    seen = failure(None, resumed=True, young=True, opened=False)
    assert [verdict(seen, attempts=n) for n in (1, 2, 3)] == [Verdict.RETRY] * 3


@pytest.mark.parametrize("first", [True, False])
def test_the_last_dial_after_setups_without_an_answer_goes_without_the_handle(first: bool) -> None:
    """E2: it may be the network, and it may be the handle, and nothing else is left to try."""
    seen = failure(None, first=first, resumed=True, young=True, opened=False, timed_out=True)
    verdicts = [verdict(seen, attempts=n) for n in (1, 2, 3, 4)]
    assert verdicts == [Verdict.RETRY, Verdict.RETRY, Verdict.FRESH, Verdict.FATAL]
    assert judge(seen, attempts=1, max_retry=1) is Verdict.RETRY


def test_a_connection_that_lived_tells_nothing_against_its_handle() -> None:
    """It was resumed and it worked."""
    assert verdict(failure(1011, resumed=True)) is Verdict.RETRY


@pytest.mark.parametrize("code", CODES)
def test_anything_else_is_retried(code: int | None) -> None:
    """With the handle that is left, if any."""
    assert verdict(failure(code)) is Verdict.RETRY


def test_a_used_up_budget_is_fatal() -> None:
    """``max_retry`` repetitions, no more."""
    assert verdict(failure(), attempts=3) is Verdict.RETRY
    assert verdict(failure(), attempts=4) is Verdict.FATAL
    assert judge(failure(), attempts=1, max_retry=0) is Verdict.FATAL


def test_every_failure_has_a_verdict() -> None:
    """The function is total."""
    for code, invalid, first, resumed, young in product(CODES, *[(True, False)] * 4):
        seen = failure(code, invalid=invalid, first=first, resumed=resumed, young=young)
        assert verdict(seen) in Verdict
        text = advice(seen)
        assert text is None or text


def test_advice_names_what_can_be_changed() -> None:
    """Where something is known; ``None`` elsewhere."""
    assert "tools" in (advice(failure(None, invalid=True)) or "")
    assert "key" in (advice(failure(401)) or "")
    assert "model exists" in (advice(failure(1008, first=True)) or "")
    assert advice(failure(1011)) is None
    assert advice(failure(None)) is None


@pytest.mark.parametrize("code", [1007, 1008])
def test_advice_in_mid_conversation_does_not_question_a_setup_that_worked(code: int) -> None:
    """The model exists, and the key is good."""
    text = advice(failure(code)) or ""
    assert "it was sent" in text
    assert "model" not in text
    assert "key" not in text


def test_the_wait_doubles_up_to_a_bound_and_is_spread() -> None:
    """The first repetition is nearly immediate."""
    waits = [backoff(n, interval=2.0, jitter=1.0) for n in range(1, 8)]
    assert waits == [0.1, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0]
    assert backoff(3, interval=2.0, jitter=0.0) == 2.0
