"""Writes down what happens in a call, from the simulator's records."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ..testing import Connection, GeminiLiveServer, Reply, ToolResponse
from .line import WEATHER

_FOR_EVER = 3600.0
"""Seconds; longer than any call of the demo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the timeline."""

    at: float
    """Seconds since the demo began."""
    phase: str
    """The part of the call that it belongs to."""
    kind: str
    """caller, connection, call, tool, result, reply, restart, fault or error."""
    text: str
    """What happened."""


def tells(response: ToolResponse) -> bool:
    """Whether a response carries the result, and not that the tool is still running."""
    return WEATHER in str(response.response)


class Scribe:
    """Turns what is new in the simulator's records into rows, at the moment it happens.

    Args:
        server: The simulator.
        start: Loop time of the beginning of the demo, seconds.
    """

    def __init__(self, server: GeminiLiveServer, start: float) -> None:
        self.rows: list[Row] = []
        self._server = server
        self._start = start
        self._phase = ""
        self._seen: set[tuple[str, object]] = set()

    def begin(self, phase: str) -> None:
        """What happens from now on belongs to this part of the call."""
        self._look()
        self._phase = phase

    def write(self, kind: str, text: str) -> None:
        """Add a row."""
        now = asyncio.get_running_loop().time()
        self.rows.append(Row(at=now - self._start, phase=self._phase, kind=kind, text=text))

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Write down what happens on the server while the block runs."""
        self._look()
        watch = asyncio.create_task(self._server.until(self._look, "the end", _FOR_EVER))
        try:
            yield
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch

    def _look(self) -> bool:
        for connection in self._server.connections:
            self._look_at(connection)
        for call in self._server.calls:
            if self._new("call", call):
                self.write("call", f"{call.name} on connection {call.connection}")
        for reply in self._server.replies:
            if reply.completed and self._new("reply", reply):
                self.write("reply", self._said(reply))
            elif reply.interrupted and self._new("reply", reply):
                self.write("reply", "cut short in mid-sentence")
        return False

    def _look_at(self, connection: Connection) -> None:
        number = connection.number
        if connection.accepted and self._new("opened", number):
            how = "resumed from a handle" if connection.resumed_from else "opened afresh"
            self.write("connection", f"{number} {how}")
        for index, response in enumerate(connection.tool_responses):
            if self._new("response", (number, index)):
                what = "tool_response" if tells(response) else "placeholder"
                self.write("result", f"{what} on {number}: {response.verdict}")
        for index, entry in enumerate(connection.context):
            told = entry.kind == "user" and WEATHER in entry.text and index >= connection.restored
            if told and self._new("told", (number, index)):
                self.write("result", f"told in words on {number}")
        is_over = connection.accepted and (connection.closing or connection.closed)
        if is_over and self._new("closed", number):
            self._write_end(connection)

    def _write_end(self, connection: Connection) -> None:
        number, closed = connection.number, connection.closed
        if closed is None or closed.by == "client":
            self.write("restart", f"the client closes connection {number}")
        else:
            self.write("connection", f"{number} is gone, {closed.code}")
        for reply in self._server.replies:
            if reply.connection == number and not reply.completed and self._new("reply", reply):
                self.write("reply", "cut short in mid-sentence")

    def _said(self, reply: Reply) -> str:
        # a script's words prove nothing; what the model knew when it said them does
        is_greeting = reply is self._server.replies[0]
        if is_greeting or reply.knew(WEATHER):
            return f'"{reply.text.strip()}"'
        return "speaks, not knowing the result"

    def _new(self, what: str, which: object) -> bool:
        is_new = (what, which) not in self._seen
        self._seen.add((what, which))
        return is_new
