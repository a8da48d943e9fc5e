"""Serves the server's side of a recording to whoever connects."""

from __future__ import annotations

import base64
import copy
from typing import Any

from .dialect import Message
from .link import Link
from .profiles import Profile
from .recording import Exchange
from .server import GeminiLiveServer
from .transport import WebSocket
from .wire import frame_kind, normalise


class RecordingServer(GeminiLiveServer):
    """Plays a recording from its beginning to every connection.

    A client frame of the kind that was recorded next takes the recording on by one; others are
    ignored. Words and ids are the recorded ones, whatever the client says. Nothing is judged.

    Args:
        exchanges: the recording.
        profile: names the API to serve.
        port: to listen on; 0 takes a free one.
    """

    def __init__(self, exchanges: list[Exchange], *, profile: str | Profile, port: int = 0) -> None:
        super().__init__(profile=profile, strict=False, port=port)
        self._exchanges = exchanges

    def _new_socket(self) -> WebSocket:
        link = _PlayingLink(self._service, self._faults, self._links.append)
        link.exchanges = self._exchanges
        return link.socket


class _PlayingLink(Link):
    exchanges: list[Exchange]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._taken = 0

    def _consume(self, frame: dict[str, Any]) -> None:
        kinds = [frame_kind(normalise(f)) for exchange in self.exchanges for f in exchange.sent]
        if self._taken == len(kinds) or frame_kind(frame) != kinds[self._taken]:
            return
        self._taken += 1
        if not self.record.setup:
            self.record.setup, self.record.accepted = frame.get("setup", {}), True
        sent = 0
        for exchange in self.exchanges:
            sent += len(exchange.sent)
            if sent == self._taken:
                for message in exchange.received:
                    self.send(whole_samples(message))


def whole_samples(message: Message) -> Message:
    """Return the message with audio payloads of whole 16-bit samples.

    Recorders cut payloads short, at any length.
    """
    message = copy.deepcopy(message)
    turn = (message.get("serverContent") or {}).get("modelTurn") or {}
    for part in turn.get("parts", []):
        if "inlineData" in part:
            part["inlineData"]["data"] = _padded(part["inlineData"]["data"])
    return message


def _padded(encoded: str) -> str:
    # A single character beyond a group of four holds no whole byte.
    whole = encoded[:-1] if len(encoded) % 4 == 1 else encoded
    raw = base64.b64decode(whole + "=" * (-len(whole) % 4))
    return base64.b64encode(raw + b"\x00" * (len(raw) % 2)).decode()
