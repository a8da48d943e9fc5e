"""Which settings does the next setup carry, and what did the last one declare?

A setup is all or nothing: one schema that the server does not take costs every tool. In
mid-conversation the settings before are known to work, so what is new is tried, suspected, and
left out until it changes:

===========  ==================================  ===============================================
state        what was seen                       next setup
===========  ==================================  ===============================================
CURRENT      new settings refused or not built   those accepted last, with the handle: SUSPECTED
any          the refusal names some of the new   those of now without these: TRYING
             functions, and retries are left
SUSPECTED    accepted                            stays: the new settings were to blame (REFUSED)
SUSPECTED    refused as well                     those of now: the handle was to blame (CURRENT)
REFUSED      several functions may be to blame   some of them, when the turn is over: TRYING
TRYING       accepted                            stays: these functions are good (REFUSED)
TRYING       refused                             those accepted last: SUSPECTED
any          the settings change                 those of now: CURRENT
===========  ==================================  ===============================================

Which of several functions is to blame is found by halves. A try that fails costs two dials and one
retry, so it is made only while two retries are left (see ``Link``). With the usual three, one may
fail after the first refusal, and two after each turn that the model finishes. After ``TRIES``
refusals the rest is given up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from .effects import Effect, ReportError
from .errors import SettingsRefused, ToolsUnusable
from .events import SetupBuilt

_PLACE = re.compile(r"tools\[(\d+)\]\.function_declarations\[(\d+)\]")
"""Where the service says that it found something wrong, in the close reason of a 1007 (observed by
several clients, as in "… at 'setup.tools[0].function_declarations[5].parameters'"). A reason is
cut at 123 bytes, and is often just "Request contains an invalid argument."."""


TRIES = 6
"""Refusals of one and the same change; after one more, all of it that was not accepted is taken to
be bad. Enough to find two of six, and something else may be to blame."""


def named(reason: str, functions: Sequence[Sequence[str]]) -> frozenset[str]:
    """Functions that the reason of a refusal points at.

    Args:
        reason: What the server said.
        functions: See ``SetupBuilt``.
    """
    places = ((int(tool), int(place)) for tool, place in _PLACE.findall(reason))
    return frozenset(
        functions[tool][place]
        for tool, place in places
        if tool < len(functions) and place < len(functions[tool])
    )


class SettingsState(Enum):
    """What is known of the settings as they are now."""

    CURRENT = "current"
    """Nothing speaks against them."""
    SUSPECTED = "suspected"
    """A setup with them failed; the next one tells whether because of them."""
    REFUSED = "refused"
    """The settings before were accepted where these were not."""
    TRYING = "trying"
    """Some of what is new is declared, to see whether that is accepted."""


class Settings:
    """The settings of a conversation's setups.

    Args:
        searches: Whether the budget allows to find out which of several functions is to blame.
    """

    def __init__(self, *, searches: bool = True) -> None:
        self._searches = searches
        self.sent_in_place = False
        """Whether a change was written to the present connection, and nothing shows yet that the
        server took it."""
        self._built: SetupBuilt | None = None
        self.changed()

    def changed(self) -> None:
        """Something else is to be declared from now on."""
        self.state = SettingsState.CURRENT
        self._guilty: tuple[str, ...] = ()
        """New functions of which one at least is to blame."""
        self._untried: tuple[str, ...] = ()
        """New functions of which nothing is known."""
        self._tried: tuple[str, ...] = ()
        """Those of them that are declared next."""
        self._found: tuple[str, ...] = ()
        """Those that are to blame."""
        self._in_force = False
        self._refusals = 0
        self._why = ""

    @property
    def as_accepted(self) -> bool:
        """Whether the next setup is to be the one that was accepted last."""
        return self.state in (SettingsState.SUSPECTED, SettingsState.REFUSED)

    @property
    def left_out(self) -> frozenset[str]:
        """Functions that the next setup is not to declare, if it is made of the settings of now."""
        waiting = {*self._guilty, *self._untried}.difference(self._tried)
        return frozenset(waiting.union(self._found))

    @property
    def declared(self) -> tuple[str, ...]:
        """Functions of the last setup, in order."""
        return tuple(f for tool in self._built.functions for f in tool) if self._built else ()

    @property
    def tools_block(self) -> bool:
        """Whether the last setup declares that the model waits for tool results before it says
        anything else."""
        return self._built is None or self._built.tools_block

    def are_new(self, connection: int) -> bool:
        """Whether this connection's setup carries anything that no accepted one did."""
        built = self._built
        return built is not None and built.connection == connection and built.is_new

    def named(self, reason: str) -> frozenset[str]:
        """Functions of the last setup that the reason of its refusal points at."""
        return named(reason, self._built.functions) if self._built else frozenset()

    def frame_received(self) -> None:
        """The server said something after a change that was sent in place: it took it."""
        self.sent_in_place = False

    def built(self, setup: SetupBuilt) -> None:
        """A setup is on its way."""
        self._built = setup

    def refused(
        self, connection: int, why: str, *, again: bool = False, by_server: bool = True
    ) -> None:
        """A setup with new settings failed, and not for want of a network.

        Args:
            connection: The connection that was dialed.
            why: What the server or the SDK said.
            again: Another refusal can be afforded.
            by_server: It was the server that said so; anybody else is not asked twice.
        """
        self._refusals = self._refusals + 1 if by_server else TRIES + 1
        built = self._built if self.are_new(connection) else None
        new = tuple(sorted(built.new_functions)) if built else ()
        culprits = self.named(why).intersection(new)
        rest = tuple(name for name in new if name not in culprits)
        self._why = why
        self._found += tuple(sorted(culprits))
        others = tuple(n for n in (*self._guilty, *self._untried) if n not in new)
        self._guilty, self._untried = ((), (*rest, *others)) if culprits else (new, others)
        if culprits and rest and again:
            self.state, self._tried = SettingsState.TRYING, rest
        else:
            self.state = SettingsState.SUSPECTED

    def refused_again(self) -> None:
        """So did one with those that had been accepted: it is not the settings."""
        if self.state is SettingsState.SUSPECTED:
            self.changed()

    def accepted(self, connection: int) -> list[Effect]:
        """The server answered a setup."""
        new = self.are_new(connection)
        if self.state is SettingsState.TRYING and new:
            self._in_force = True
            self._guilty = tuple(n for n in self._guilty if n not in self._tried)
            self._untried = tuple(n for n in self._untried if n not in self._tried)
        elif self.state is not SettingsState.SUSPECTED or new:
            return []
        self.state = SettingsState.REFUSED
        if self._refusals > TRIES or not self._searches:
            self._found += (*self._guilty, *self._untried)
            self._guilty = self._untried = ()
        elif len(self._guilty) == 1:
            self._found, self._guilty = self._found + self._guilty, ()
        half = self._guilty[: len(self._guilty) // 2]
        self._tried = half or self._untried
        return [] if self._tried else [self._report()]

    def _report(self) -> Effect:
        found = tuple(sorted(self._found))
        refused = ToolsUnusable if self._in_force else SettingsRefused
        return ReportError(error=refused(found, self._why), recoverable=True)

    def try_next(self) -> bool:
        """Declare some of the functions that may be good with the next setup, if there are any.

        Returns:
            Whether a new connection is needed for that.
        """
        if self.state is not SettingsState.REFUSED or not self._tried:
            return False
        self.state = SettingsState.TRYING
        return True
