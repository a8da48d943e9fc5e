"""Which of the things that were written last closed the connection?

A server answers a frame that it does not take with 1007 or 1008 (observed), and the words of the
close say no more. What was written since the last sign of life, and not long before the close, is
suspected: a proxy that ends idle connections uses 1008 as well (observed). The first time it
goes out in another form on the next connection: client content as realtime text or as announced
history (see ``Observed``), instructions with the setup, a message without its pictures. What is
suspected a second time is not written again; of several things only those of the kind that is
missed least, in the order of ``Kind``, since the others may be good. What the server was seen to
take is not suspected any more. Tool results have rules of their own, see ``Telling``.
"""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """What may be to blame, the first to be blamed first."""

    INSTRUCTIONS = "instructions"
    """A system instruction in place; the setup is another way."""
    ACTIVITY = "activity"
    """The mark that the caller begins to speak."""
    REQUEST = "request"
    """What asks for a ``generate_reply``."""
    ANSWER = "answer"
    """What asks for the answer to the caller."""
    PICTURES = "pictures"
    """Parts of a message that are no text; the text can go without them."""
    MESSAGE = "message"
    """An item of the chat context."""


_ONCE = (Kind.INSTRUCTIONS, Kind.PICTURES)
"""What has another form whichever way words of ours go."""

WITHIN = 5.0
"""Seconds from writing something to the close that refuses it. Closes were observed straight after
the frame; a slow network may hold both up."""

Suspect = tuple[Kind, str]
"""What may be to blame, and which one."""


class Suspects:
    """What was written, and what is not to be written again."""

    def __init__(self) -> None:
        self._written: dict[Suspect, float] = {}
        self._before: set[Suspect] = set()
        self._guilty: set[Suspect] = set()
        self._sent_at: float | None = None

    def guilty(self, kind: Kind) -> frozenset[str]:
        """What is not to be written any more."""
        return frozenset(name for known, name in self._guilty if known is kind)

    def wrote(self, kind: Kind, *names: str, now: float) -> None:
        """These were written."""
        if names:
            self.sent(now=now)
        self._written.update(((kind, name), now) for name in names)

    def sent(self, *, now: float) -> None:
        """Something was written that is neither audio nor video."""
        self._sent_at = now

    def frame_received(self) -> None:
        """The server did not choke on it."""
        self._before.difference_update(self._written)
        self._written.clear()
        self._sent_at = None

    def model_spoke(self) -> None:
        """The caller is answered: what asks for an answer from now on asks for another."""
        self._before.discard((Kind.ANSWER, ""))

    def any(self, *, now: float) -> bool:
        """Whether anything but audio or video may be what the server refuses now."""
        return self._sent_at is not None and now - self._sent_at <= WITHIN

    def connection_lost(self, *, refused: bool, now: float) -> Kind | None:
        """The connection ended.

        Args:
            refused: By a code that refuses a frame, and it was not a tool result.
            now: Loop seconds.

        Returns:
            What is to blame: these are ``guilty`` from now on.
        """
        written = {suspect for suspect, at in self._written.items() if now - at <= WITHIN}
        self._written.clear()
        self._sent_at = None
        if not refused:
            return None
        once = {suspect for suspect in written if suspect[0] in _ONCE}
        for kind in Kind:
            again = {s for s in once or written & self._before if s[0] is kind}
            if again:
                self._guilty |= again
                return kind
        self._before |= written
        return None
