"""By which way does a change of tools, instructions or options reach the server?

==============================  ================================================================
what changes                    its way
==============================  ================================================================
anything, to what cannot be     none: the connection that is there is kept, and an error tells
instructions, Vertex AI         a ``system`` turn, unless the model waits for a tool or one was
                                refused
tools, instructions             in place, where that is wanted and was not refused, and the
                                connection is not about to be replaced
everything else                 a new connection, when the rotation allows it
==============================  ================================================================
"""

from __future__ import annotations

from .effects import Effect, ReportError, UpdateContext
from .errors import SettingsRefused
from .events import InstructionsChanged, RestartCause, RestartRequested
from .floor import Floor
from .link import LinkState
from .parts import Parts
from .rotation import ToolUpdate
from .suspects import Kind


class Changes:
    """Takes what the user changes in mid-conversation.

    Args:
        parts: What is changed by it.
        floor: Who may speak.
    """

    def __init__(self, parts: Parts, floor: Floor) -> None:
        self._parts = parts
        self._floor = floor

    def instructions(self, event: InstructionsChanged, *, now: float) -> list[Effect]:
        """Take a new system instruction."""
        parts = self._parts
        # a model that waits for a tool takes no content, and its answer is to obey
        may = parts.prompts.can_inform and not parts.suspects.guilty(Kind.INSTRUCTIONS)
        if event.by_turn and may and not self._floor.content_waits:
            parts.telling.instructions = event.text
            return []
        cause, unusable, in_place = RestartCause.INSTRUCTIONS, event.unusable, event.in_place
        restart = RestartRequested(cause=cause, unusable=unusable, in_place=in_place)
        return self.restart(restart, now=now)

    def restart(self, event: RestartRequested, *, now: float) -> list[Effect]:
        """Take what needs another setup, or an update in place."""
        parts = self._parts
        if event.unusable is not None:
            # what runs is not given up for what cannot be
            error = SettingsRefused((), event.unusable)
            return [ReportError(error=error, recoverable=True)]
        parts.link.settings.changed()
        if self._goes_in_place(event):
            parts.link.settings.sent_in_place = True
            return [UpdateContext()]
        call_open, transition = parts.ledger.running, self._floor.in_transition
        parts.rotation.request(event.cause, call_open=call_open, now=now, transition=transition)
        return []

    def _goes_in_place(self, event: RestartRequested) -> bool:
        parts = self._parts
        wanted = parts.options.tool_update is ToolUpdate.CONTEXT_UPDATE and event.in_place
        possible = parts.link.state is LinkState.OPEN and not parts.rotation.requested
        return wanted and possible and parts.observed.behaviour.context_updates
