"""Which settings the next setup carries, after one that failed."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.effects import ReportError
from livekit_gemini_resilient.core.errors import SettingsRefused
from livekit_gemini_resilient.core.events import (
    ConnectionLost,
    InstructionsChanged,
    RestartCause,
    SetupBuilt,
)
from livekit_gemini_resilient.core.link import Link
from livekit_gemini_resilient.core.settings import SettingsState

from .driver import Driver


def opened(*, handle: str | None = None) -> Link:
    """A link whose first connection was accepted, about to dial with a new function."""
    link = Link(handle=None, max_retry=3, retry_interval=2.0, random=lambda: 0.5)
    link.dial()
    link.settings.built(SetupBuilt(connection=1, is_new=True))
    assert link.opened(now=0.0) == []
    link.handle = handle
    link.close()
    link.lost(ConnectionLost(connection=1), now=10.0)
    link.settings.changed()
    link.settings.built(
        SetupBuilt(connection=2, is_new=True, new_functions=frozenset({"find_order"}))
    )
    return link


def fails(link: Link, code: int | None = 1007, *, invalid: bool = False) -> None:
    """The dial under way fails."""
    lost = ConnectionLost(connection=link.number, code=code, reason="why", invalid=invalid)
    link.lost(lost, now=11.0)


@pytest.mark.parametrize("invalid", [False, True])
def test_new_settings_are_suspected_first_and_the_handle_is_kept(invalid: bool) -> None:
    """Those accepted last are known to work."""
    link = opened(handle="h")
    fails(link, None if invalid else 1007, invalid=invalid)
    assert link.settings.state is SettingsState.SUSPECTED
    assert link.settings.as_accepted
    assert link.handle == "h"


@pytest.mark.parametrize("code", [None, 1011, 503, 429])
def test_a_network_that_fails_tells_nothing_against_settings(code: int | None) -> None:
    """They are tried again."""
    link = opened()
    fails(link, code)
    assert link.settings.state is SettingsState.CURRENT


def test_settings_are_refused_when_those_before_are_accepted() -> None:
    """The error names what was new, and says why."""
    link = opened()
    fails(link)
    link.settings.built(SetupBuilt(connection=3))
    _, report = link.opened(now=12.0)
    assert isinstance(report, ReportError)
    assert report.recoverable
    assert isinstance(report.error, SettingsRefused)
    assert report.error.functions == ("find_order",)
    assert report.error.reason == "why"
    assert link.settings.as_accepted, "also by the dials after it"
    link.settings.changed()
    assert not link.settings.as_accepted


def test_a_handle_is_to_blame_when_the_settings_before_are_refused_as_well() -> None:
    """It is dropped, and the new settings are tried without it."""
    link = opened(handle="expired")
    fails(link)
    link.settings.built(SetupBuilt(connection=3))
    fails(link)
    assert link.handle is None
    assert not link.settings.as_accepted
    link.settings.built(SetupBuilt(connection=4, is_new=True))
    assert link.opened(now=20.0)[1:] == []


def test_a_function_of_another_setup_is_not_blamed() -> None:
    """No setup could be made at all: nothing is known of what is new in it."""
    link = opened()
    fails(link, 1011)
    fails(link, None, invalid=True)
    link.settings.built(SetupBuilt(connection=4))
    _, report = link.opened(now=12.0)
    assert isinstance(report, ReportError)
    assert isinstance(report.error, SettingsRefused)
    assert report.error.functions == ()


def test_refusals_without_end_are_bounded() -> None:
    """The budget holds for settings, too."""
    link = opened(handle="h")
    for _ in range(4):
        assert not link.has_ended
        link.settings.built(
            SetupBuilt(connection=link.number, is_new=not link.settings.as_accepted)
        )
        fails(link)
    assert link.has_ended


def test_a_request_that_cannot_be_served_costs_no_connection() -> None:
    """An error event; what runs goes on."""
    driver = Driver()
    driver.connect()
    driver.request_restart(RestartCause.OPTIONS, unusable="ValueError: no such voice")
    assert driver.closing is None
    ((error, recoverable),) = driver.errors
    assert recoverable
    assert "no such voice" in str(error)


def refused_options() -> Driver:
    """A conversation whose newest options were refused: the setup accepted before stays."""
    driver = Driver()
    driver.connect()
    driver.request_restart(RestartCause.OPTIONS)
    driver.finish_close()
    assert driver.dial is not None
    dial, driver.dial = driver.dial, None
    driver.feed(SetupBuilt(connection=dial.connection, is_new=True))
    driver.feed(ConnectionLost(connection=dial.connection, code=1007))
    driver.connect()
    assert driver.conversation.repeats_setup
    return driver


@pytest.mark.parametrize("told", [True, False])
def test_instructions_replaced_in_place_outlive_a_setup_that_is_repeated(told: bool) -> None:
    """The setup accepted last has older ones; told already or not, they are put in its place."""
    driver = refused_options()
    if not told:
        driver.server.hear(driver.conversation.link.number, "w1.")
        driver.deliver(frames=2)
    driver.feed(InstructionsChanged(text="Be <brief>."))
    for _ in range(2):
        driver.lose()
        driver.settle()
        assert driver.server.live.text.count("system: Be <brief>.") == 1


def test_a_setup_that_carries_them_is_told_nothing() -> None:
    """They are in it."""
    driver = refused_options()
    driver.feed(InstructionsChanged(text="Be <brief>."))
    driver.request_restart(RestartCause.OPTIONS)
    driver.settle()
    assert not driver.conversation.repeats_setup
    assert "<brief>" not in driver.server.live.text
