"""Which user audio and video waits for a connection?

Audio given while nothing can be written arrives in order on the next connection, bounded in
seconds, oldest dropped first and counted: a minute of outage replayed as a burst would be
answered as one long utterance. Of video only the newest frame is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from .events import InputPushed


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

    def push(self, piece: InputPushed) -> None:
        """Keep one piece, making room for it."""
        if piece.is_video:
            self._waiting = deque(p for p in self._waiting if not p.is_video)
        self._waiting.append(piece)
        self._seconds += piece.seconds
        while self._seconds > self._max_seconds:
            self._drop_oldest_audio()

    def put_back(self, pieces: Iterable[InputPushed]) -> None:
        """Return what was taken out and not written; it is older than all that waits."""
        newer = list(self.drain())
        for piece in (*pieces, *newer):
            self.push(piece)

    def drain(self) -> Iterator[InputPushed]:
        """Take out everything, in order."""
        while self._waiting:
            piece = self._waiting.popleft()
            self._seconds -= piece.seconds
            yield piece
        self._seconds = 0.0

    def _drop_oldest_audio(self) -> None:
        for index, piece in enumerate(self._waiting):
            if piece.seconds:
                del self._waiting[index]
                self._seconds -= piece.seconds
                self.dropped_seconds += piece.seconds
                return
        self._seconds = 0.0
