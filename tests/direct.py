"""A realtime session by itself, without an AgentSession: results arrive one by one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from livekit.agents import function_tool, llm

from livekit_gemini_resilient import RealtimeModel, RealtimeSession, ResilienceOptions
from livekit_gemini_resilient.testing import GeminiLiveServer

from .invariants import Excuses, Watch
from .stack import connected_client


@function_tool
async def get_time() -> str:
    """Tell the time."""
    return "a quarter past nine"


@function_tool
async def get_weather() -> str:
    """Look up the weather."""
    return "foggy and 12 degrees"


@dataclass
class Direct:
    """A session, and everything that it reported."""

    session: RealtimeSession
    called: asyncio.Queue[llm.FunctionCall] = field(default_factory=asyncio.Queue)
    errors: list[Any] = field(default_factory=list)
    reconnected: int = 0
    _happened: asyncio.Event = field(default_factory=asyncio.Event)
    _readers: set[asyncio.Task[None]] = field(default_factory=set)

    def listen(self) -> None:
        """Collect calls, errors and reconnects."""
        self.session.on("generation_created", self._read)
        self.session.on("error", self.errors.append)
        self.session.on("session_reconnected", self._count)
        receive = self.session._receive

        def watched(event: Any) -> None:
            receive(event)
            self._happened.set()

        self.session._receive = watched  # type: ignore[method-assign]

    async def until(self, predicate: Callable[[], Any], what: str) -> None:
        """Wait for a state of the session; looked at after every event that it takes.

        Raises:
            AssertionError: It did not come within 10 s.
        """
        while not predicate():
            self._happened.clear()
            try:
                await asyncio.wait_for(self._happened.wait(), 10)
            except asyncio.TimeoutError:
                raise AssertionError(f"waited 10 s for {what}") from None

    def _count(self, _: Any) -> None:
        self.reconnected += 1

    def _read(self, event: llm.GenerationCreatedEvent) -> None:
        async def read() -> None:
            async for call in event.function_stream:
                self.called.put_nowait(call)

        task = asyncio.get_running_loop().create_task(read())
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def readers_end(self) -> None:
        """Every stream of calls has ended, since the session was closed."""
        await asyncio.wait_for(asyncio.gather(*self._readers), 10)

    async def call(self) -> llm.FunctionCall:
        """The next call of the model."""
        return await asyncio.wait_for(self.called.get(), 10)

    async def hand_over(self, *items: Any) -> None:
        """Add items to the chat context, as LiveKit does."""
        context = self.session.chat_ctx
        context.items.extend(items)
        await self.session.update_chat_ctx(context)

    async def answer(self, call: llm.FunctionCall, output: str, *, is_error: bool = False) -> None:
        """Hand over the result of a call."""
        await self.hand_over(output_of(call, output, is_error=is_error))


def output_of(
    call: llm.FunctionCall, output: str, *, is_error: bool = False
) -> llm.FunctionCallOutput:
    """The output item of a call."""
    return llm.FunctionCallOutput(
        call_id=call.call_id, name=call.name, output=output, is_error=is_error
    )


@contextlib.asynccontextmanager
async def connected(
    server: GeminiLiveServer,
    *,
    tools: list[Any] | None = None,
    chat_ctx: llm.ChatContext | None = None,
    resilience: ResilienceOptions | None = None,
    excused: Excuses | None = None,
    **options: Any,
) -> AsyncIterator[Direct]:
    """A session that has connected with its tools declared.

    Args:
        server: The simulator.
        tools: What to declare; two tools without them.
        chat_ctx: The first chat context.
        resilience: Options of ours.
        excused: By function: why its results may be lost here.
        **options: Further arguments of the model.
    """
    model = RealtimeModel(resilience=resilience, **{**server.model_options(), **options})
    watch = Watch(model)
    direct = Direct(model.session())
    direct.listen()
    await direct.session.update_tools(tools or [get_time, get_weather])
    await direct.session.update_chat_ctx(chat_ctx or llm.ChatContext.empty())
    try:
        await connected_client(direct.session)
        yield direct
        await watch.nothing_pends(excused or {})
    finally:
        await direct.session.aclose()
        await model.aclose()
    await direct.readers_end()
    await watch.all_is_over(server, excused or {})
