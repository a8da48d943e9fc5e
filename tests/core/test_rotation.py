"""May the connection be replaced now?"""

from __future__ import annotations

import math
from itertools import product

import pytest

from livekit_gemini_resilient.core.events import RestartCause
from livekit_gemini_resilient.core.rotation import RestartWhen, Rotation, Situation

FACTS = ("speaking", "turn_over", "call_open", "reply_due", "settling")


def rotation(when: RestartWhen = RestartWhen.AUTO) -> Rotation:
    """30 s at most, 5 s of margin."""
    return Rotation(when=when, max_defer=30.0, margin=5.0)


def aged(when: RestartWhen = RestartWhen.AUTO) -> Rotation:
    """The same, on a connection that was opened at 100 s and may become 540 s old."""
    made = Rotation(when=when, max_defer=30.0, margin=5.0, max_age=540.0)
    made.connection_opened(now=100.0)
    return made


def situation(**facts: bool) -> Situation:
    """Silence after a turn, but for what is given."""
    silence = dict.fromkeys(FACTS, False) | {"turn_over": True}
    return Situation(**{**silence, **facts})


AWAITING = situation(turn_over=False, call_open=True)
RESUMABLE = situation(resumable=True)
SPEAKING = situation(resumable=True, speaking=True, turn_over=False)


@pytest.mark.parametrize("when", list(RestartWhen))
def test_nothing_is_due_without_a_request(when: RestartWhen) -> None:
    """Whatever the situation, at any time."""
    for facts in product((True, False), repeat=len(FACTS)):
        now = Situation(**dict(zip(FACTS, facts, strict=True)))
        assert not rotation(when).due(now, now=1e9)
        assert rotation(when).next_deadline(now) is None


@pytest.mark.parametrize("cause", [c for c in RestartCause if c is not RestartCause.FEWER_TOOLS])
@pytest.mark.parametrize("when", list(RestartWhen))
def test_a_request_is_due_at_once_when_the_exchange_is_over(
    when: RestartWhen, cause: RestartCause
) -> None:
    """There is nothing to wait for."""
    waiting = rotation(when)
    waiting.request(cause, call_open=False, now=0.0)
    assert waiting.due(situation(), now=0.0)


@pytest.mark.parametrize("fact", ["speaking", "reply_due", "settling"])
@pytest.mark.parametrize("when", [RestartWhen.AUTO, RestartWhen.PAUSE, RestartWhen.TURN_END])
def test_speech_a_due_reply_and_settling_are_waited_for(when: RestartWhen, fact: str) -> None:
    """Never cut, at every safe point but "now"."""
    waiting = rotation(when)
    waiting.request(RestartCause.TOOLS, call_open=True, now=0.0)
    assert not waiting.due(situation(**{fact: True}), now=29.0)


def test_now_waits_for_nothing() -> None:
    """As the google plugin does; what is cut is told again."""
    waiting = rotation(RestartWhen.NOW)
    waiting.request(RestartCause.OPTIONS, call_open=False, now=0.0)
    busy = situation(speaking=True, reply_due=True, settling=True, turn_over=False)
    assert waiting.due(busy, now=0.0)


@pytest.mark.parametrize(
    ("when", "cause", "while_open", "due"),
    [
        (RestartWhen.PAUSE, RestartCause.OPTIONS, False, True),
        (RestartWhen.TURN_END, RestartCause.TOOLS, True, False),
        (RestartWhen.AUTO, RestartCause.TOOLS, True, True),
        (RestartWhen.AUTO, RestartCause.INSTRUCTIONS, True, True),
        (RestartWhen.AUTO, RestartCause.TOOLS, False, False),
        (RestartWhen.AUTO, RestartCause.OPTIONS, True, False),
        (RestartWhen.AUTO, RestartCause.GO_AWAY, True, False),
    ],
)
def test_a_pause_is_enough_for_what_the_next_reply_must_obey(
    when: RestartWhen, cause: RestartCause, while_open: bool, due: bool
) -> None:
    """While the model waits for a result: tools and instructions asked for meanwhile."""
    waiting = rotation(when)
    waiting.request(cause, call_open=while_open, now=0.0)
    assert waiting.due(AWAITING, now=0.0) is due


def test_a_request_that_cannot_wait_hurries_those_that_can() -> None:
    """Requests coalesce: one connection carries them all."""
    waiting = rotation()
    waiting.request(RestartCause.OPTIONS, call_open=True, now=0.0)
    assert not waiting.due(AWAITING, now=0.0)
    waiting.request(RestartCause.TOOLS, call_open=True, now=0.0)
    assert waiting.due(AWAITING, now=0.0)


def test_a_wait_ends_after_max_defer_counted_from_the_first_request() -> None:
    """Also on a server that goes on speaking."""
    waiting = rotation()
    waiting.request(RestartCause.OPTIONS, call_open=False, now=0.0)
    waiting.request(RestartCause.OPTIONS, call_open=False, now=20.0)
    speaking = situation(speaking=True, turn_over=False)
    assert waiting.next_deadline(speaking) == 30.0
    assert not waiting.due(speaking, now=29.9)
    assert waiting.due(speaking, now=30.0)


def test_max_defer_does_not_run_while_a_call_is_open() -> None:
    """A tool may take longer; nothing may be spoken then."""
    waiting = rotation()
    waiting.request(RestartCause.OPTIONS, call_open=True, now=0.0)
    assert waiting.next_deadline(AWAITING) is None
    assert not waiting.due(AWAITING, now=1e6)


def test_max_defer_begins_anew_when_a_long_call_was_answered() -> None:
    """Else the reply to its result would be cut at its first word."""
    waiting = rotation()
    waiting.request(RestartCause.OPTIONS, call_open=True, now=0.0)
    assert not waiting.due(AWAITING, now=60.0)
    speaking = situation(speaking=True, turn_over=False)
    assert not waiting.due(speaking, now=61.0)
    assert waiting.next_deadline(speaking) == 90.0


@pytest.mark.parametrize("open_call", [True, False])
def test_the_end_that_the_server_announced_is_a_deadline(open_call: bool) -> None:
    """D4: less a margin, whatever else is going on."""
    waiting = rotation()
    waiting.go_away(20.0, now=100.0)
    busy = situation(speaking=True, call_open=open_call, turn_over=False)
    assert waiting.next_deadline(busy) == 115.0
    assert waiting.due(busy, now=115.0)


@pytest.mark.parametrize(
    ("left", "deadline"), [(12.0, 107.0), (10.0, 105.0), (4.0, 102.0), (1.0, 100.5), (0.0, 100.0)]
)
def test_of_a_short_notice_half_is_the_models(left: float, deadline: float) -> None:
    """D1: its last words fit in often; the other half is ours, to reconnect before the server."""
    waiting = rotation()
    waiting.go_away(left, now=100.0)
    speaking = situation(speaking=True, turn_over=False)
    assert waiting.next_deadline(speaking) == deadline
    assert waiting.due(speaking, now=deadline)
    assert left == 0.0 or not waiting.due(speaking, now=100.0)


def test_a_second_notice_never_postpones_the_first() -> None:
    """The earlier end counts."""
    waiting = rotation()
    waiting.go_away(20.0, now=0.0)
    waiting.go_away(300.0, now=1.0)
    assert waiting.next_deadline(AWAITING) == 15.0


def test_a_new_connection_serves_every_request() -> None:
    """It is configured from scratch."""
    waiting = rotation()
    waiting.request(RestartCause.TOOLS, call_open=True, now=0.0)
    waiting.go_away(0.0, now=0.0)
    waiting.connection_ended()
    assert not waiting.requested
    assert waiting.next_deadline(situation()) is None
    waiting.request(RestartCause.OPTIONS, call_open=True, now=50.0)
    assert not waiting.due(AWAITING, now=50.0), "the hurry of before is forgotten"


@pytest.mark.parametrize("when", list(RestartWhen))
def test_a_removed_function_rides_along_with_the_next_rotation(when: RestartWhen) -> None:
    """C8: it is refused until then; a policy that the user fixed holds for it as for the rest."""
    waiting = Rotation(when=when, max_defer=30.0, margin=5.0)
    waiting.request(RestartCause.FEWER_TOOLS, call_open=False, now=0.0)
    assert waiting.requested is (when is not RestartWhen.AUTO)


def test_a_notice_that_does_not_say_when_waits_as_long_as_any_request() -> None:
    """Promise 4: speech is not cut for a deadline that nobody named."""
    waiting = rotation()
    waiting.go_away(math.inf, now=0.0)
    speaking = situation(speaking=True, turn_over=False)
    assert waiting.next_deadline(speaking) == 30.0
    assert waiting.next_deadline(AWAITING) is None
    assert waiting.due(situation(), now=0.0)


@pytest.mark.parametrize("when", list(RestartWhen))
def test_a_connection_that_is_old_is_replaced_although_nothing_was_asked_for(
    when: RestartWhen,
) -> None:
    """On a timer, as after a notice: nothing has to arrive for it."""
    waiting = aged(when)
    assert waiting.next_deadline(RESUMABLE) == 640.0
    assert not waiting.due(RESUMABLE, now=639.9)
    assert not waiting.requested
    assert waiting.due(RESUMABLE, now=640.0)


def test_an_old_connection_waits_for_its_safe_point_and_no_longer_than_max_defer() -> None:
    """Speech is not cut for it, but for the bound that holds for all."""
    waiting = aged()
    assert not waiting.due(SPEAKING, now=640.0)
    assert waiting.next_deadline(SPEAKING) == 670.0
    assert waiting.due(SPEAKING, now=670.0)


def test_an_old_connection_waits_for_an_open_call_for_as_long_as_it_takes() -> None:
    """The bound begins anew when the call has been answered."""
    waiting = aged()
    awaiting = situation(resumable=True, turn_over=False, call_open=True)
    assert not waiting.due(awaiting, now=640.0)
    assert waiting.next_deadline(awaiting) is None
    assert not waiting.due(awaiting, now=1e4)
    assert waiting.next_deadline(SPEAKING) == 1e4 + 30.0


def test_a_connection_that_cannot_be_resumed_may_grow_old() -> None:
    """Until a handle comes: a fresh session would be a loss that the server may never cause."""
    waiting = aged()
    assert waiting.next_deadline(situation()) is None
    assert not waiting.due(situation(), now=1e4)
    assert not waiting.requested
    assert waiting.due(RESUMABLE, now=1e4)


def test_an_age_is_that_of_one_connection() -> None:
    """Dialing does not age, and each connection begins anew."""
    waiting = aged()
    waiting.connection_ended()
    assert waiting.next_deadline(RESUMABLE) is None
    assert not waiting.due(RESUMABLE, now=1e4)
    waiting.connection_opened(now=1e4)
    assert waiting.next_deadline(RESUMABLE) == 1e4 + 540.0


def test_a_connection_grows_as_old_as_the_server_lets_it_without_the_option() -> None:
    """The service announces its ends (documented)."""
    waiting = rotation()
    waiting.connection_opened(now=0.0)
    assert waiting.next_deadline(RESUMABLE) is None
    assert not waiting.due(RESUMABLE, now=1e9)
