"""Which settings does the next setup carry, and what did the last one declare?

A setup is all or nothing: one schema that the server does not take costs every tool. In
mid-conversation the settings before are known to work, so what is new is tried, suspected, and
left out until it changes:

===========  ==================================  ===============================================
state        what was seen                       next setup
===========  ==================================  ===============================================
CURRENT      new settings refused or not built   those accepted last, with the handle: SUSPECTED
SUSPECTED    accepted                            stays: the new settings were to blame (REFUSED)
SUSPECTED    refused as well                     those of now: the handle was to blame (CURRENT)
any          the settings change                 those of now: CURRENT
===========  ==================================  ===============================================
"""

from __future__ import annotations

from enum import Enum

from .effects import Effect, ReportError
from .errors import SettingsRefused
from .events import SetupBuilt


class SettingsState(Enum):
    """What is known of the settings as they are now."""

    CURRENT = "current"
    """Nothing speaks against them."""
    SUSPECTED = "suspected"
    """A setup with them failed; the next one tells whether because of them."""
    REFUSED = "refused"
    """The settings before were accepted where these were not."""


class Settings:
    """The settings of a conversation's setups."""

    def __init__(self) -> None:
        self.state = SettingsState.CURRENT
        self.sent_in_place = False
        """Whether a change was written to the present connection, and nothing shows yet that the
        server took it."""
        self._built: SetupBuilt | None = None
        self._blamed: frozenset[str] = frozenset()
        self._why = ""

    @property
    def as_accepted(self) -> bool:
        """Whether the next setup is to be the one that was accepted last."""
        return self.state is not SettingsState.CURRENT

    @property
    def tools_block(self) -> bool:
        """Whether the last setup declares that the model waits for tool results before it says
        anything else."""
        return self._built is None or self._built.tools_block

    def are_new(self, connection: int) -> bool:
        """Whether this connection's setup carries anything that no accepted one did."""
        built = self._built
        return built is not None and built.connection == connection and built.is_new

    def changed(self) -> None:
        """Something else is to be declared from now on."""
        self.state = SettingsState.CURRENT

    def frame_received(self) -> None:
        """The server said something after a change that was sent in place: it took it."""
        self.sent_in_place = False

    def built(self, setup: SetupBuilt) -> None:
        """A setup is on its way."""
        self._built = setup

    def refused(self, connection: int, why: str) -> None:
        """A setup with new settings failed, and not for want of a network."""
        self.state = SettingsState.SUSPECTED
        built = self._built if self.are_new(connection) else None
        self._blamed = built.new_functions if built else frozenset()
        self._why = why

    def refused_again(self) -> None:
        """So did one with those that had been accepted: it is not the settings."""
        if self.state is SettingsState.SUSPECTED:
            self.state = SettingsState.CURRENT

    def accepted(self, connection: int) -> list[Effect]:
        """The server answered a setup."""
        if self.state is not SettingsState.SUSPECTED or self.are_new(connection):
            return []
        self.state = SettingsState.REFUSED
        error = SettingsRefused(tuple(sorted(self._blamed)), self._why)
        return [ReportError(error=error, recoverable=True)]
