"""What a server is taken to do, and what corrects it."""

from __future__ import annotations

from typing import Any

import pytest

from livekit_gemini_resilient.core.behaviour import Behaviour, Observed, Trigger
from livekit_gemini_resilient.core.errors import ConfigurationError

from .driver import Driver, call, result


def test_a_record_is_printed_in_the_form_in_which_it_can_be_pinned() -> None:
    """The log line is what goes into ``ResilienceOptions(behaviour=…)``."""
    behaviour = Behaviour(trigger="realtime_text", foreign_responses=False)
    assert eval(repr(behaviour)) == behaviour


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"trigger": "shout"}, "expected 'client_content' or 'realtime_text'"),
        ({"content_at_any_time": 1}, "expected True or False"),
        ({"foreign_responses": "no"}, "expected True or False"),
    ],
)
def test_a_value_that_means_nothing_is_refused(wrong: dict[str, Any], says: str) -> None:
    """The text says what would have been accepted."""
    with pytest.raises(ConfigurationError, match=says):
        Behaviour(**wrong)


def test_what_is_learned_is_news_once() -> None:
    """And what was known already is none."""
    observed = Observed()
    assert observed.take_news() is None
    observed.saw_foreign_response(taken=False)
    assert observed.take_news() == Behaviour(foreign_responses=False)
    observed.saw_foreign_response(taken=False)
    assert observed.take_news() is None


def test_a_refusal_of_content_changes_both_ways_of_using_it() -> None:
    """As a trigger, and in the middle of a conversation."""
    observed = Observed()
    observed.refused(Trigger.CLIENT_CONTENT)
    assert observed.behaviour == Behaviour(trigger="realtime_text", content_at_any_time=False)
    observed.refused(Trigger.REALTIME_TEXT)
    assert observed.behaviour == Behaviour()


def test_what_is_declared_to_be_refused_is_not_tried_on_a_silent_model() -> None:
    """It would cost a connection; what was learned from a close may have been wrong."""
    declared = Observed(Behaviour(trigger="realtime_text", content_at_any_time=False))
    assert declared.other_trigger is Trigger.REALTIME_TEXT
    learned = Observed()
    learned.refused(Trigger.CLIENT_CONTENT)
    assert learned.other_trigger is Trigger.CLIENT_CONTENT
    learned.answered(Trigger.CLIENT_CONTENT)
    assert learned.behaviour == Behaviour()


def test_a_model_that_speaks_after_the_other_trigger_is_asked_by_that_one() -> None:
    """It was silent about the first one."""
    observed = Observed(Behaviour(trigger="realtime_text"))
    observed.answered(observed.other_trigger)
    assert observed.trigger is Trigger.CLIENT_CONTENT


def test_a_response_that_closed_the_connection_was_not_taken() -> None:
    """What the server says on the next connection is no sign that it took it on this one."""
    observed = Observed(Behaviour(foreign_responses=False))
    driver = Driver(foreign="refused", observed=observed, handle="older")
    driver.server._snapshots["older"] = ()
    driver.connect()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.lose()
    driver.connect()
    driver.server.mute = True
    driver.returns(result("c1"))
    driver.elapse(10.0)
    assert driver.up is None, "the model was silent, and the response was not tried"
    driver.server.mute = False
    driver.settle()
    assert driver.replies("<c1=42>")
    assert observed.behaviour == Behaviour(foreign_responses=False)
