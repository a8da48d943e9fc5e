"""What has this server been seen to do?

Behaviour is declared or observed, never read off a model's name. The first guess is what no
recorded family refuses; a close straight after our own frame corrects it.
"""

from __future__ import annotations

from enum import Enum


class Trigger(Enum):
    """How words of ours make the model speak."""

    CLIENT_CONTENT = "client_content"
    """A user turn with ``turn_complete``: accepted with explicit roles by all recorded families."""
    REALTIME_TEXT = "realtime_text"
    """Realtime text: always answered by newer families (observed); for servers that take client
    content only as initial history (observed in spring 2026, close 1007)."""


class Behaviour:
    """What one server, for one model, has shown."""

    def __init__(self) -> None:
        self.trigger = Trigger.CLIENT_CONTENT
        """How to make the model speak."""
        self.takes_foreign_responses = True
        """Whether a response to a call that another connection issued is worth a try. Ignored by
        2.5 and 3.1, needed by 3.8 to close the dead exchange (observed); a gateway refuses it."""

    @property
    def other_trigger(self) -> Trigger:
        """The way that is not the usual one."""
        if self.trigger is Trigger.CLIENT_CONTENT:
            return Trigger.REALTIME_TEXT
        return Trigger.CLIENT_CONTENT

    def refused(self, trigger: Trigger) -> None:
        """The server closed the connection straight after this trigger."""
        if trigger is self.trigger:
            self.trigger = self.other_trigger
