"""One websocket over TLS, server side, with control over every byte.

The protocol is that of the websockets library without its I/O, so that a close frame can be
withheld, a frame cut in half, and a socket reset.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Protocol

from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

_PONG = bytes([0x80 | Opcode.PONG])
"""First byte of a pong, which is one frame; `data_to_send` returns frames one by one."""


class Endpoint(Protocol):
    """Who is told what happens on a `WebSocket`."""

    def opened(self) -> None:
        """The TCP connection stands."""

    def dialed(self, path: str) -> tuple[int, str] | None:
        """A client asks for ``path``. Return HTTP status and text to refuse it."""

    def received(self, payload: bytes) -> None:
        """A data message has arrived."""

    def close_received(self, code: int, reason: str) -> None:
        """The client has begun to close; `WebSocket.answer_close` answers."""

    def pong_held(self, let_go: Callable[[], None]) -> bool:
        """A ping is to be answered. Return whether that waits until ``let_go`` is called."""

    def lost(self) -> None:
        """The TCP connection is gone."""


class WebSocket(asyncio.Protocol):
    """A websocket; after `Endpoint.close_received` nothing is sent until `answer_close`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        # No limit: that of the service is unknown, and large results must get through.
        self._wire = ServerProtocol(max_size=None)
        self._transport: asyncio.Transport | None = None
        self._message = bytearray()
        self._withheld = False
        self._cut = False
        self._gone = asyncio.Event()

    async def gone(self) -> None:
        """Return once the TCP connection is gone."""
        await self._gone.wait()

    @property
    def usable(self) -> bool:
        """Whether messages can be sent."""
        return self._wire.state is State.OPEN

    def send(self, *payloads: bytes, text: bool = False) -> None:
        """Send data messages, all in one write. Without effect once the websocket is closing."""
        if not self.usable:
            return
        for payload in payloads:
            (self._wire.send_text if text else self._wire.send_binary)(payload)
        self._flush()

    def close(self, code: int, reason: str) -> None:
        """Send a close frame. The TCP connection ends when the client has answered."""
        if self.usable:
            self._wire.send_close(code, reason)
            self._flush()

    def answer_close(self) -> None:
        """Answer the client's close frame and end the TCP connection."""
        self._withheld = False
        self._flush()

    def abort(self) -> None:
        """Reset the TCP connection; what has not been sent is lost."""
        if self._transport is None:
            return
        self._cut = True
        raw = self._transport.get_extra_info("socket")
        if raw is not None:
            # Linger of zero: the kernel sends RST instead of FIN.
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def abort_within(self, payload: bytes) -> None:
        """Send the first half of a message's frame, then end TCP without a close frame."""
        if self.usable and self._transport is not None:
            self._wire.send_binary(payload)
            frame = b"".join(self._wire.data_to_send())
            self._transport.write(frame[: len(frame) // 2])
            self._transport.close()
            self._cut = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._endpoint.opened()

    def data_received(self, data: bytes) -> None:
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if isinstance(event, Request):
                self._answer_dial(event)
            elif isinstance(event, Frame):
                self._take(event)
        self._flush()

    def eof_received(self) -> None:
        self._wire.receive_eof()

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            # Python 3.10 takes a TLS transport for unclosed if only its peer has closed it.
            self._transport.abort()
        self._transport = None
        self._gone.set()
        self._endpoint.lost()

    def _answer_dial(self, request: Request) -> None:
        response = self._wire.accept(request)
        if response.status_code == 101 and (refusal := self._endpoint.dialed(request.path)):
            response = self._wire.reject(*refusal)
        self._wire.send_response(response)

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            self._message += frame.data
            if frame.fin:
                payload, self._message = bytes(self._message), bytearray()
                self._endpoint.received(payload)
        elif frame.opcode is Opcode.CLOSE and self._wire.close_rcvd_then_sent:
            self._withheld = True
            close = Close.parse(bytes(frame.data))
            self._endpoint.close_received(close.code, close.reason)

    def _flush(self) -> None:
        if self._withheld or self._cut or self._transport is None:
            return
        parts = [part for part in self._wire.data_to_send() if not self._holds(part)]
        self._write(b"".join(parts))
        # An empty part asks for the end of the stream; TLS has no half-close.
        if b"" in parts:
            self._transport.close()

    def _holds(self, frame: bytes) -> bool:
        return frame[:1] == _PONG and self._endpoint.pong_held(lambda: self._write(frame))

    def _write(self, payload: bytes) -> None:
        if payload and self._transport is not None and not self._cut:
            self._transport.write(payload)
