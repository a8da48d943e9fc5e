"""Is the caller speaking, as far as anybody can hear?

The server reports words some time after they were said. LiveKit's own voice detection, where the
``AgentSession`` has any, and the ``voiceActivity`` of some servers know earlier: a connection that
is replaced in the meantime would split the utterance, or part it from its answer. Evidence from
here holds a rotation and nothing else, and not without end, since a noise may pass for speech.
"""

from __future__ import annotations

from enum import Enum

HEARD_GRACE = 2.0
"""Seconds after the end of speech in which its words, or the answer, may arrive. Servers wait for
0.5 to 2 s of silence before they take an utterance for finished."""


class Ear(Enum):
    """Who hears the caller."""

    FRAMEWORK = "framework"
    """LiveKit's voice detection."""
    SERVER = "server"
    """The server's, on the present connection."""


class Caller:
    """What was detected of the caller's voice.

    Args:
        patience: Seconds for which speech is waited for at most, pauses in it included: who is not
            answered asks again.
    """

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._heard_by: set[Ear] = set()
        self._until: float | None = None
        self._at_most = 0.0

    @property
    def is_heard(self) -> bool:
        """Whether the caller speaks, or has just spoken and was not answered yet."""
        return self._until is not None

    @property
    def next_deadline(self) -> float | None:
        """When that is over at the latest, in loop seconds; ``None`` if it is."""
        return self._until

    def detected(self, ear: Ear, *, speaking: bool, now: float) -> None:
        """A voice detection says that the caller speaks, or does not."""
        before = bool(self._heard_by)
        (self._heard_by.add if speaking else self._heard_by.discard)(ear)
        if self._heard_by and not before:
            if self._until is None:
                self._at_most = now + self._patience
            self._until = self._at_most
        elif before and not self._heard_by and self._until is not None:
            self._until = min(self._until, now + HEARD_GRACE)

    def answered(self) -> None:
        """The model speaks: what had been said has been heard."""
        if not self._heard_by:
            self._until = None

    def advance(self, *, now: float) -> None:
        """A deadline may have passed."""
        if self._until is not None and now >= self._until:
            self._until = None
