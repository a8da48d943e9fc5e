"""Which user audio and video waits for a connection?

Audio given while nothing can be written arrives in order on the next connection, bounded in
seconds, oldest dropped first and counted: a minute of outage replayed as a burst would be
answered as one long utterance. Of video only the newest frame is kept.

Where the client marks the caller's activity by hand, an activity whose end a connection did not
live to see is opened again on the next one, before the audio that waits: an end without a start is
refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from .events import Activity, InputPushed


class Uplink:
    """A bounded queue of realtime input.

    Args:
        max_seconds: Seconds of audio that are kept.
    """

    def __init__(self, *, max_seconds: float) -> None:
        self._max_seconds = max_seconds
        self._waiting: deque[InputPushed] = deque()
        self._seconds = 0.0
        self.dropped_seconds = 0.0
        """Audio given up so far, in seconds."""
        self._start: InputPushed | None = None
        self._open_before = False
        self._open_here = False
        self._last: InputPushed | None = None
        self._given_up: InputPushed | None = None
        self.activities = 0
        """How many the client has begun."""

    @property
    def activity_open(self) -> bool:
        """Whether the caller is in the middle of an activity, as the client marks it."""
        marks = (p.activity for p in reversed(self._waiting) if p.activity is not None)
        return next(marks, Activity.START if self._open_before else None) is Activity.START

    @property
    def in_activity(self) -> bool:
        """Whether the server is in the middle of one, or will be."""
        return self._open_before or self.activity_open

    @property
    def asks(self) -> int | None:
        """The ``generate_reply`` that the end of an activity will ask for, if one waits here."""
        return next((p.request for p in self._waiting if p.request is not None), None)

    def push(self, piece: InputPushed, *, at_once: bool = False) -> None:
        """Keep one piece, making room for it.

        Args:
            piece: The piece.
            at_once: A connection listens: it is taken out before anything else happens, and does
                not wait.
        """
        unmarked = self._start is self._given_up is not None
        if unmarked and (piece.activity is Activity.END or piece is self._given_up):
            return
        if piece.activity is Activity.START and piece is not self._start:
            self._start = piece
            self.activities += 1
        if piece.is_video:
            self._waiting = deque(p for p in self._waiting if not p.is_video)
        self._waiting.append(piece)
        self._seconds += piece.seconds
        while self._seconds > self._max_seconds and not at_once:
            self._drop_oldest_audio()

    def connection_lost(self, unsent: Iterable[InputPushed], *, refused: bool = False) -> None:
        """Take back what was taken out and not written; it is older than all that waits.

        Args:
            unsent: What was not written.
            refused: The last piece that was written is to blame; it is given up.
        """
        pieces = tuple(unsent)
        if refused and self._last is not None and all(p is not self._last for p in pieces):
            self.dropped_seconds += self._last.seconds
        self._last = None
        self._open_here = False
        first = next((p.activity for p in pieces if p.activity is not None), None)
        if first is not None:
            self._open_before = first is Activity.END
        newer, self._waiting, self._seconds = tuple(self._waiting), deque(), 0.0
        for piece in (*pieces, *newer):
            self.push(piece)

    def give_up_activity(self) -> None:
        """The server takes no mark of the present activity: what the caller says goes without."""
        self._given_up, self._open_before = self._start, False

    def drain(self) -> Iterator[InputPushed]:
        """Take out everything, in order, for a connection that listens."""
        if self._open_before and not self._open_here and self._start is not None:
            self._open_here = True
            yield self._start
        while self._waiting:
            piece = self._waiting.popleft()
            self._seconds -= piece.seconds
            if piece.activity is Activity.END and not self._open_here:
                continue
            if piece.activity is not None:
                self._open_before = self._open_here = piece.activity is Activity.START
            self._last = piece
            yield piece
        self._seconds = 0.0

    def _drop_oldest_audio(self) -> None:
        for index, piece in enumerate(self._waiting):
            if piece.seconds:
                del self._waiting[index]
                self._seconds -= piece.seconds
                self.dropped_seconds += piece.seconds
                self._drop_emptied_activity(index)
                return
        self._seconds = 0.0

    def _drop_emptied_activity(self, index: int) -> None:
        """An activity of which nothing is left would be answered all the same."""
        if not 0 < index < len(self._waiting):
            return
        start, end = self._waiting[index - 1], self._waiting[index]
        marks = (start.activity, end.activity)
        if marks == (Activity.START, Activity.END) and end.request is None:
            del self._waiting[index - 1]
            del self._waiting[index - 1]
