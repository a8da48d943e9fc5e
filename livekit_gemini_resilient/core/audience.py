"""Does anybody take what the model says?

An agent that is being replaced takes no new generation: LiveKit lets the reply to its last tool
result pass by. Words of ours that ask for that reply once more wait for the agent that follows,
and a little longer, since it may ask for a reply by itself: then one reply serves both.
"""

from __future__ import annotations

ENTRY_GRACE = 0.25
"""Seconds for which an agent that takes over may ask for a reply before it is asked for one.
LiveKit runs ``on_enter`` right after it has handed over the agent's chat context."""


class Audience:
    """Whether the framework listens.

    Args:
        patience: Seconds after which words of ours no longer wait for a listener.
    """

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._entering = False
        self._away_until: float | None = None

    @property
    def is_away(self) -> bool:
        """Whether a reply would find nobody who takes it."""
        return self._away_until is not None

    @property
    def next_deadline(self) -> float | None:
        """When words of ours go out whoever listens, ``None`` if nothing waits."""
        return self._away_until

    def left(self, *, now: float) -> None:
        """A reply found nobody who took it."""
        self._away_until = now + self._patience

    def entered(self, *, now: float) -> None:
        """An agent begins to listen to a conversation in which a reply is due."""
        self._entering = True
        self._away_until = now + self._patience

    def handed_context(self, *, now: float) -> None:
        """The agent handed over its chat context."""
        if self._entering:
            self._entering = False
            self._away_until = now + ENTRY_GRACE

    def asked(self) -> None:
        """Somebody asked for a reply, and so listens."""
        self._entering, self._away_until = False, None

    def advance(self, *, now: float) -> None:
        """A deadline may have passed."""
        if self._away_until is not None and now >= self._away_until:
            self.asked()
