"""An agent on the simulator, as an application would build it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.voice import io
from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from ..testing import GeminiLiveServer

WEATHER = "foggy and 12 degrees"
"""What the tool finds out; nothing else in the call says it, so a memory can be searched for it."""


class Speaker(io.AudioOutput):
    """Plays every segment at once: nobody listens."""

    playing: asyncio.Event
    """Set when something is being played."""

    def __init__(self) -> None:
        super().__init__(
            label="demo", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=24000
        )
        self._captured = 0.0
        self.playing = asyncio.Event()

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        """Take a frame of a segment; see ``AudioOutput``."""
        await super().capture_frame(frame)
        if not self._captured:
            # without it LiveKit takes what it interrupts for never played
            self.on_playback_started(created_at=time.time())
        self.playing.set()
        self._captured += frame.duration

    def flush(self) -> None:
        """The segment is complete, and has been heard."""
        super().flush()
        self._finish(interrupted=False)

    def clear_buffer(self) -> None:
        """The segment was interrupted."""
        self._finish(interrupted=True)

    def _finish(self, *, interrupted: bool) -> None:
        self.playing.clear()
        played, self._captured = self._captured, 0.0
        if played:
            self.on_playback_finished(playback_position=played, interrupted=interrupted)


@function_tool
async def book_table(day: str) -> str:
    """Book a table.

    Args:
        day: The day.
    """
    return f"booked for {day}"


class Line:
    """A running agent with a weather tool, and what may be done to it.

    Args:
        server: The simulator that it is connected to.
        in_tool: Runs in the tool, before it returns.
    """

    def __init__(
        self, server: GeminiLiveServer, in_tool: Callable[[Line], Awaitable[None]]
    ) -> None:
        self.server = server
        self.tool_running = asyncio.Event()
        self._in_tool = in_tool
        self.agent = Agent(instructions="Be brief.", tools=[self._weather_tool()])

    def _weather_tool(self) -> Any:
        @function_tool
        async def get_weather(city: str) -> str:
            """Look up the weather.

            Args:
                city: The city.
            """
            self.tool_running.set()
            await self._in_tool(self)
            return WEATHER

        return get_weather

    async def add_tool(self) -> None:
        """Give the agent a second tool."""
        await self.agent.update_tools([*self.agent.tools, book_table])

    def change_voice(self, voice: str) -> None:
        """Let the model speak with another voice."""
        session: Any = self.agent.realtime_llm_session
        session.update_options(voice=voice)


@contextlib.asynccontextmanager
async def open_line(
    server: GeminiLiveServer,
    model_type: type[PluginModel],
    *,
    in_tool: Callable[[Line], Awaitable[None]],
    on_error: Callable[[str], None],
) -> AsyncIterator[Line]:
    """Start an agent, and end it with the block.

    Args:
        server: The simulator that it talks to.
        model_type: The realtime model that it uses.
        in_tool: Runs in the tool, before it returns.
        on_error: Called with a line about each error that LiveKit reports.
    """
    line = Line(server, in_tool)
    model = model_type(**server.model_options())
    session: AgentSession[None] = AgentSession(llm=model)
    session.output.audio = Speaker()
    session.on("error", lambda event: on_error(_told(event.error)))
    await session.start(line.agent)
    try:
        await server.connected()
        yield line
    finally:
        await session.aclose()
        await model.aclose()


def _told(error: Any) -> str:
    cause = type(getattr(error, "error", error)).__name__
    return f"{cause}, {'recoverable' if getattr(error, 'recoverable', False) else 'fatal'}"
