"""One connection, from the dial to its end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from google.genai.live import AsyncSession

from . import wire
from .context import logger
from .core.effects import Dial, SendInput, SendRequest, UpdateContext
from .core.events import (
    Connected,
    ConnectionLost,
    Event,
    InputPushed,
    RestartCause,
    RestartRequested,
    SetupBuilt,
)
from .upstream import PluginSession

_MALFORMED_LIMIT = 5
"""Messages in a row that cannot be read before the connection is given up: one bad frame must not
cost a call, a stream of them is not a connection."""


Written = wire.Frame | SendRequest
"""What may wait to be written."""


class Outgoing:
    """What waits to be written; the connection of the moment takes it in order.

    Args:
        awaited: Whether anybody waits for that ``generate_reply``: one that was cancelled between
            being asked for and being written is not asked for.
    """

    def __init__(self, awaited: Callable[[int], bool]) -> None:
        self._awaited = awaited
        self._queue: asyncio.Queue[Written] = asyncio.Queue()

    def put(self, item: Written) -> None:
        """Write this when all before it is written."""
        self._queue.put_nowait(item)

    async def next(self) -> wire.Frame:
        """Take what comes next."""
        while True:
            item = await self._queue.get()
            if isinstance(item, SendRequest):
                frame = item.frame if self._awaited(item.request) else item.otherwise
                if frame is not None:
                    return frame
            else:
                return item

    def take_back(self) -> tuple[InputPushed, ...]:
        """Take what was meant for a connection that is gone; the core tells the rest anew."""
        pieces: list[InputPushed] = []
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if isinstance(item, SendInput):
                pieces.append(item.piece)
        return tuple(pieces)


class Connection:
    """A connection that is dialed, held and closed once.

    Args:
        session: Whose settings it is set up with.
        dial: Its number and handle.
        outgoing: What is to be written to it.
        receive: Told what happens on it.
        should_close: Set when it is to be closed.
    """

    def __init__(
        self,
        session: PluginSession,
        dial: Dial,
        *,
        outgoing: Outgoing,
        receive: Callable[[Event], None],
        should_close: asyncio.Event,
    ) -> None:
        self.failure: BaseException | None = None
        """Why it ended; ``None`` while it lasts, or when it was to be closed."""
        self._session = session
        self._dial = dial
        self._outgoing = outgoing
        self._receive = receive
        self._should_close = should_close

    async def run(
        self,
        *,
        announces_history: bool,
        as_accepted: bool,
        without: frozenset[str],
        dial_timeout: float,
    ) -> ConnectionLost:
        """Dial, hold the connection, close it; returns how it ended.

        Args:
            announces_history: Client content comes first, as history.
            as_accepted: Set it up as the last one that was accepted, if there is one.
            without: Functions that are not declared otherwise, by name.
            dial_timeout: Seconds for the dial, the answer to the setup included.

        Raises:
            Exception: A defect, of ours or of a listener.
        """
        session = self._session
        try:
            connecting = session._connect(
                self._dial.handle,
                announces_history=announces_history,
                as_accepted=as_accepted,
                without=without,
            )
        except Exception as e:
            return self._ended(e, invalid=True)
        self._receive(self._setup_built(announces_history=announces_history))
        started = time.perf_counter()
        try:
            connection = await asyncio.wait_for(connecting.__aenter__(), dial_timeout)
        except Exception as e:
            return self._ended(e, invalid=wire.cannot_be_expressed(e))
        session._setup_accepted()
        session._report_connected(time.perf_counter() - started)
        # what is taken back includes what came while it was being closed
        return self._ended(await self._hold(connecting, connection))

    def _setup_built(self, *, announces_history: bool) -> SetupBuilt:
        session = self._session
        return SetupBuilt(
            connection=self._dial.connection,
            tools_block=session._tools_block,
            announces_history=announces_history,
            is_new=session._is_new_setup,
            new_functions=session._new_functions,
            functions=session._functions_in_setup,
        )

    async def _hold(
        self, connecting: AbstractAsyncContextManager[AsyncSession], connection: AsyncSession
    ) -> BaseException | None:
        """Use the connection until it ends or is to be closed, and close it; returns why."""
        try:
            return await self._converse(connection)
        finally:
            self._session._set_active(None)
            with contextlib.suppress(Exception):
                await connecting.__aexit__(None, None, None)

    def _ended(self, error: BaseException | None, *, invalid: bool = False) -> ConnectionLost:
        self.failure = error
        return ConnectionLost(
            connection=self._dial.connection,
            code=wire.failure_code(error) if error else None,
            reason=wire.failure_reason(error) if error else "",
            invalid=invalid,
            timed_out=isinstance(error, TimeoutError | asyncio.TimeoutError),
            unsent=self._outgoing.take_back(),
        )

    async def _converse(self, connection: AsyncSession) -> BaseException | None:
        """Read and write until the connection ends or is to be closed."""
        self._session._set_active(connection)
        # the reconnect handler: what is owed is the first thing that the core asks to be sent
        items = self._session._history_items()
        self._receive(Connected(connection=self._dial.connection, items=items))
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._write_all(connection), name="gemini-resilient-send"),
            asyncio.create_task(self._read_all(connection), name="gemini-resilient-recv"),
            asyncio.create_task(self._should_close.wait(), name="gemini-resilient-close"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # LiveKit's cancel_and_wait leaves an exception of a task that ends otherwise
            # unretrieved
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        failures = [task.exception() for task in done]
        return next((failure for failure in failures if failure), None)

    async def _write_all(self, connection: AsyncSession) -> None:
        """Write frames in order, for as long as the connection takes them.

        Raises:
            Exception: Whatever the SDK raises for a connection that has ended.
        """
        while True:
            frame = await self._outgoing.next()
            try:
                await wire.write(frame, connection, self._session)
            except (ValueError, TypeError) as e:
                logger.error(
                    "the SDK cannot express a frame; it is left out",
                    extra={"frame": type(frame).__name__, "lk.pii.error": str(e)},
                )
                if isinstance(frame, UpdateContext):
                    # a new setup carries the change, or shows that nothing can
                    self._receive(RestartRequested(cause=RestartCause.TOOLS))

    async def _read_all(self, connection: AsyncSession) -> None:
        """Hand over every message, for as long as the connection lasts.

        Raises:
            Exception: Whatever the SDK raises for a connection that has ended, or for the last of
                ``_MALFORMED_LIMIT`` messages in a row that cannot be read.
        """
        messages = connection.receive()
        malformed = 0
        while True:
            try:
                frame = wire.read(await anext(messages), self._session, self._dial.connection)
            except StopAsyncIteration:
                # the SDK's iterator ends with each turn
                messages = connection.receive()
                continue
            except (ValueError, TypeError):
                malformed += 1
                logger.warning("a message of the server cannot be read; it is left out")
                if malformed >= _MALFORMED_LIMIT:
                    raise
                messages = connection.receive()
                continue
            malformed = 0
            self._receive(frame)
