"""Options: every default works, and every bad value says what it should have been."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from livekit_gemini_resilient.core.errors import ConfigurationError, ResilienceError
from livekit_gemini_resilient.core.rotation import RestartWhen
from livekit_gemini_resilient.options import ResilienceOptions

CHOICES = ("restart_when", "reply_during_call")
OTHERS = (*CHOICES, "behaviour", "tool_update", "transition_tools", "hold_input_during_call")
NUMBERS = [f.name for f in dataclasses.fields(ResilienceOptions) if f.name not in OTHERS]
MAY_BE_ZERO = {
    "go_away_margin",
    "settle_grace",
    "trailing_quiet",
    "transcript_grace",
    "input_buffer",
}
MAY_BE_NONE = {"ping_interval", "ping_timeout", "tool_answer_timeout", "max_connection_age"}


@pytest.mark.parametrize("value", [-1, -0.001, math.nan, math.inf, -math.inf, True, "5", [1]])
@pytest.mark.parametrize("option", NUMBERS)
def test_a_number_that_cannot_work_is_refused(option: str, value: Any) -> None:
    """The text names the option, the value and what was expected."""
    with pytest.raises(ConfigurationError) as caught:
        ResilienceOptions(**{option: value})
    assert str(caught.value).startswith(f"{option}={value!r}: expected a ")
    assert caught.value.option == option


@pytest.mark.parametrize("option", NUMBERS)
def test_zero_is_accepted_where_it_means_at_once(option: str) -> None:
    """A time-out of 0 can never be met; a grace of 0 can."""
    if option in MAY_BE_ZERO:
        assert getattr(ResilienceOptions(**{option: 0}), option) == 0
    else:
        with pytest.raises(ConfigurationError, match="above 0"):
            ResilienceOptions(**{option: 0})


@pytest.mark.parametrize("option", NUMBERS)
def test_none_turns_off_what_says_so_and_nothing_else(option: str) -> None:
    """``None`` means never only where the docstring says so."""
    if option in MAY_BE_NONE:
        assert getattr(ResilienceOptions(**{option: None}), option) is None
    else:
        with pytest.raises(ConfigurationError):
            ResilienceOptions(**{option: None})


@pytest.mark.parametrize("value", ["never", "", "AUTO", None, 1, True, ["auto"]])
def test_an_unknown_safe_point_is_refused(value: Any) -> None:
    """The text lists the four that are known."""
    with pytest.raises(ConfigurationError) as caught:
        ResilienceOptions(restart_when=value)
    text = str(caught.value)
    assert text.startswith(f"restart_when={value!r}: expected one of ")
    assert all(repr(when.value) in text for when in RestartWhen)


@pytest.mark.parametrize("when", list(RestartWhen))
def test_a_safe_point_may_be_given_by_its_name(when: RestartWhen) -> None:
    """A string and the member are the same."""
    assert ResilienceOptions(restart_when=when.value).restart_when is when
    assert ResilienceOptions(restart_when=when).restart_when is when


def test_a_size_is_a_whole_number() -> None:
    """There is no half byte."""
    with pytest.raises(ConfigurationError, match=r"=1\.5: expected a whole number"):
        ResilienceOptions(max_result_bytes=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, 0, 1, "yes", []])
def test_input_is_held_or_not(value: Any) -> None:
    """What is merely true or false in a condition may have been meant for another option."""
    with pytest.raises(ConfigurationError, match="expected True or False"):
        ResilienceOptions(hold_input_during_call=value)


def test_a_configuration_error_is_a_value_error_and_one_of_ours() -> None:
    """Both ``except`` clauses catch it."""
    assert issubclass(ConfigurationError, ValueError)
    assert issubclass(ConfigurationError, ResilienceError)


def test_options_cannot_be_changed() -> None:
    """Sessions share them."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        ResilienceOptions().max_defer = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("value", ["", "transfer", b"all", None, 1, [1], ["transfer", None]])
def test_transition_tools_are_names_or_all(value: Any) -> None:
    """A single name would be taken for its letters."""
    with pytest.raises(ConfigurationError, match="transition_tools"):
        ResilienceOptions(transition_tools=value)


def test_names_of_transition_tools_may_come_in_any_collection() -> None:
    """All of them are ``"all"``."""
    for names in (["transfer"], {"transfer"}, ("transfer",)):
        assert ResilienceOptions(transition_tools=names).transition_names == {"transfer"}
    assert ResilienceOptions(transition_tools="all").transition_names is None
