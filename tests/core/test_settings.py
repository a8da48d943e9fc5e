"""Which settings the next setup carries, after one that failed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import pytest

from livekit_gemini_resilient.core.effects import ReportError
from livekit_gemini_resilient.core.errors import SettingsRefused, ToolsUnusable
from livekit_gemini_resilient.core.events import (
    ConnectionLost,
    InstructionsChanged,
    RestartCause,
    SetupBuilt,
)
from livekit_gemini_resilient.core.link import Link
from livekit_gemini_resilient.core.settings import TRIES, SettingsState, named

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


def refuse_setup(driver: Driver, code: int = 1007) -> None:
    """The server closes the connection for the settings of the dial that is waiting."""
    assert driver.dial is not None
    dial, driver.dial = driver.dial, None
    driver.feed(SetupBuilt(connection=dial.connection, is_new=True))
    driver.feed(ConnectionLost(connection=dial.connection, code=code))


def refused_options() -> Driver:
    """A conversation whose newest options were refused: the setup accepted before stays."""
    driver = Driver()
    driver.connect()
    driver.request_restart(RestartCause.OPTIONS)
    driver.finish_close()
    refuse_setup(driver)
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


@pytest.mark.parametrize("code", [1007, 1008])
@pytest.mark.parametrize("lost", [True, False], ids=["lost", "tools change"])
def test_instructions_replaced_in_place_outlive_a_setup_that_is_refused(
    code: int, lost: bool
) -> None:
    """Those before stay in force, and these were; the setup that is repeated has older ones."""
    driver = Driver()
    driver.connect()
    driver.feed(InstructionsChanged(text="Be <brief>."))
    if lost:
        driver.lose()
    else:
        driver.request_restart(RestartCause.TOOLS)
        driver.finish_close()
    refuse_setup(driver, code)
    for _ in range(2):
        driver.connect()
        assert driver.conversation.repeats_setup
        assert driver.server.live.text.count("system: Be <brief>.") == 1
        driver.lose()


def test_instructions_that_a_setup_has_replaced_since_are_not_put_in_place_again() -> None:
    """That setup was accepted, and is the one that is repeated."""
    driver = Driver()
    driver.connect()
    driver.feed(InstructionsChanged(text="Be <brief>."))
    driver.request_restart(RestartCause.INSTRUCTIONS)
    driver.settle()
    driver.lose()
    refuse_setup(driver)
    driver.connect()
    assert driver.conversation.repeats_setup
    assert "<brief>" not in driver.server.live.text


def test_instructions_that_are_refused_by_turn_and_in_a_setup_are_not_put_in_place_again() -> None:
    """They were never in force; another turn would cost each connection that follows."""
    driver = Driver()
    driver.connect()
    driver.feed(InstructionsChanged(text="Be <brief>."))
    driver.lose(1007)
    refuse_setup(driver)
    driver.connect()
    assert driver.conversation.repeats_setup
    assert "<brief>" not in driver.server.live.text


def test_instructions_that_are_refused_by_turn_go_with_a_setup_that_is_not_repeated() -> None:
    """It would bring back older ones, and the turn after it the close."""
    driver = refused_options()
    driver.feed(InstructionsChanged(text="Be <brief>."))
    driver.lose(1007)
    assert not driver.conversation.repeats_setup
    driver.settle()
    assert "<brief>" not in driver.server.live.text


# ---------------------------------------------------------------- which of several functions


BEFORE = ("get_time",)
NEW = ("a", "b", "c", "d", "e")


class Negotiation:
    """An adapter and a server that refuses some functions, in a call that goes on.

    Args:
        bad: What the server refuses.
        says_which: Whether its reason says where the first of them stands.
        max_retry: See ``Link``.
    """

    def __init__(self, bad: frozenset[str], *, says_which: bool, max_retry: int = 3) -> None:
        self.link = Link(handle=None, max_retry=max_retry, retry_interval=2.0, random=lambda: 0.5)
        self.bad, self.says_which = bad, says_which
        self.accepted: tuple[str, ...] = ()
        self.wanted = BEFORE
        self.reports: list[ReportError] = []
        self.setups: list[tuple[str, ...]] = []
        self.link.dial()
        self.answers_setup()
        self.wanted = BEFORE + NEW
        self.link.settings.changed()
        self.replace()

    def replace(self) -> None:
        """Replace the connection on purpose, and dial until one is accepted."""
        self.link.close()
        self.link.lost(ConnectionLost(connection=self.link.number), now=10.0)
        while not self.answers_setup():
            assert not self.link.has_ended

    def answers_setup(self) -> bool:
        """The setup of the dial under way is made, and accepted or not."""
        settings = self.link.settings
        names = tuple(n for n in self.wanted if n not in settings.left_out)
        if settings.as_accepted:
            names = self.accepted
        repeated = names in self.setups and self.bad.intersection(names)
        assert not repeated, "a setup that was refused was sent again"
        self.setups.append(names)
        new = frozenset(names).difference(self.accepted)
        built = SetupBuilt(
            connection=self.link.number,
            is_new=names != self.accepted,
            new_functions=new,
            functions=((), names),
        )
        settings.built(built)
        refused = next((n for n, name in enumerate(names) if name in self.bad), None)
        if refused is None:
            self.accepted = names
            happened = self.link.opened(now=10.0)
            self.reports += [e for e in happened if isinstance(e, ReportError)]
            return True
        where = f"'setup.tools[1].function_declarations[{refused}].parameters'"
        reason = f"Unknown name at {where}" if self.says_which else "invalid argument"
        lost = ConnectionLost(connection=self.link.number, code=1007, reason=reason)
        self.link.lost(lost, now=10.0)
        return False

    def settles(self) -> None:
        """The conversation goes on, turn after turn."""
        for _ in range(12):
            while self.link.tries_settings():
                self.replace()
            self.link.progressed()

    @property
    def refused(self) -> int:
        """How many setups were."""
        return sum(bool(self.bad.intersection(names)) for names in self.setups)


@pytest.mark.parametrize("says_which", [True, False])
@pytest.mark.parametrize("bad", [b for n in range(6) for b in combinations(NEW, n)], ids="".join)
def test_the_good_functions_of_a_batch_are_declared_and_the_bad_ones_named_once(
    bad: tuple[str, ...], says_which: bool
) -> None:
    """Whichever they are. Where many are bad and the server does not say which, good ones may be
    given up with them, and are named."""
    call = Negotiation(frozenset(bad), says_which=says_which)
    call.settles()
    given_up = frozenset(call.reports[0].error.args[0]) if call.reports else frozenset()
    assert given_up >= frozenset(bad)
    assert frozenset(call.accepted) == frozenset(BEFORE + NEW) - given_up
    assert len(call.reports) == bool(bad)
    assert call.refused <= TRIES + 1
    if says_which or len(bad) <= 2:
        assert given_up == frozenset(bad)


def test_a_function_that_the_reason_points_at_costs_one_dial() -> None:
    """The others are declared at once."""
    call = Negotiation(frozenset("c"), says_which=True)
    assert call.setups[1:] == [BEFORE + NEW, (*BEFORE, "a", "b", "d", "e")]
    (report,) = call.reports
    assert isinstance(report.error, ToolsUnusable)
    assert report.error.names == ("c",)
    assert "function_declarations[3]" in str(report.error)


def test_a_try_leaves_the_budget_what_a_failure_needs() -> None:
    """Of three retries: after the first refusal one that fails, and two when a turn has ended."""
    call = Negotiation(frozenset("ae"), says_which=False)
    assert call.accepted == BEFORE
    for most in (1, 2):
        for _ in range(most):
            assert call.link.tries_settings()
            call.replace()
            assert call.accepted == BEFORE
        assert not call.link.tries_settings()
        call.link.progressed()
    assert call.link.tries_settings()


@pytest.mark.parametrize("max_retry", [1, 2])
def test_a_small_budget_is_kept(max_retry: int) -> None:
    """The call goes on, with those before if need be."""
    call = Negotiation(frozenset("ab"), says_which=False, max_retry=max_retry)
    call.settles()
    assert set(call.accepted) >= set(BEFORE)
    assert len(call.reports) == 1


def test_other_settings_end_the_search() -> None:
    """They are tried as they are."""
    call = Negotiation(frozenset("a"), says_which=False)
    assert call.link.settings.left_out
    call.link.settings.changed()
    assert not call.link.settings.left_out
    assert not call.link.tries_settings()


@pytest.mark.parametrize(
    ("reason", "names"),
    [
        ("* BidiGenerateContentRequest.setup.tools[1].function_declarations[0].name: bad", {"b"}),
        ("at 'setup.tools[0].function_declarations[0]', 'tools[1].function_declarations[1]'", "ac"),
        ("tools[1].function_declarations[7].parameters", ()),
        ("tools[7].function_declarations[0].parameters", ()),
        ("Request contains an invalid argument.", ()),
        ("", ()),
    ],
)
def test_a_reason_names_functions_by_their_place(reason: str, names: Iterable[str]) -> None:
    """One that cannot be is nobody's."""
    assert named(reason, (("a",), ("b", "c"))) == frozenset(names)


@pytest.mark.parametrize("names_it", [True, False])
def test_a_first_setup_that_is_refused_says_which_tool(names_it: bool) -> None:
    """Or which tools were declared, where the server does not say."""
    link = Link(handle=None, max_retry=3, retry_interval=2.0, random=lambda: 0.5)
    link.dial()
    link.settings.built(SetupBuilt(connection=1, is_new=True, functions=(("a", "b"),)))
    reason = "at 'setup.tools[0].function_declarations[1]'" if names_it else "invalid argument"
    (report,) = link.lost(ConnectionLost(connection=1, code=1007, reason=reason), now=0.0)
    assert isinstance(report, ReportError)
    assert not report.recoverable
    assert ("tool(s) b," if names_it else "the tools were a, b") in str(report.error)
