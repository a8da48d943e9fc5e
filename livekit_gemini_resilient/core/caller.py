"""Is the caller speaking, as far as anybody here can hear?

The server reports words some time after they were said. LiveKit's own voice detection, where the
``AgentSession`` has any, knows earlier: a connection that is replaced in the meantime would split
the utterance, or part it from its answer. Evidence from here holds a rotation and nothing else,
and not without end, since a noise may pass for speech.
"""

from __future__ import annotations

HEARD_GRACE = 2.0
"""Seconds after the end of speech in which its words, or the answer, may arrive. Servers wait for
0.5 to 2 s of silence before they take an utterance for finished."""


class Caller:
    """What was detected of the caller's voice.

    Args:
        patience: Seconds for which speech is waited for at most.
    """

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._speaking = False
        self._until: float | None = None

    @property
    def is_heard(self) -> bool:
        """Whether the caller speaks, or has just spoken and was not answered yet."""
        return self._until is not None

    @property
    def next_deadline(self) -> float | None:
        """When that is over at the latest, in loop seconds; ``None`` if it is."""
        return self._until

    def detected(self, *, speaking: bool, now: float) -> None:
        """The voice detection says that the caller speaks, or does not."""
        if speaking and not self._speaking:
            self._until = now + self._patience
        elif self._speaking and not speaking and self._until is not None:
            self._until = min(self._until, now + HEARD_GRACE)
        self._speaking = speaking

    def answered(self) -> None:
        """The model speaks: what had been said has been heard."""
        if not self._speaking:
            self._until = None

    def advance(self, *, now: float) -> None:
        """A deadline may have passed."""
        if self._until is not None and now >= self._until:
            self._until = None
