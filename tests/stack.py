"""A real AgentSession on the simulator, with hooks where a test wants a barrier."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool, llm
from livekit.agents.voice import io
from livekit.plugins.google import version as plugin_version
from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from livekit_gemini_resilient import RealtimeModel, ResilienceOptions
from livekit_gemini_resilient.testing import GeminiLiveServer, Profile, Reply

from .invariants import Excuses, Watch

PROFILES = ["2.5-native-audio", "3.1-flash-live", "vertex-live-2.5"]
"""The families of which recordings are published."""

NEWER = ["vertex-live-2.5-no-ids", "3.8-live", "3.8-extended-thinking"]
"""Families that are simulated from documents and reports alone: no frame of them is published."""

EVERY = [*PROFILES, *NEWER]
"""Every family that the simulator plays."""

PLUGIN = plugin_version.__version__


MUST_FAIL = pytest.mark.xfail(
    strict=True, raises=AssertionError, reason=f"livekit-plugins-google {PLUGIN} has the fault"
)
"""For a scenario that is run with the google plugin."""


SURVIVES = "survives"
"""In the place of ``plain=True``: the google plugin must pass, and is given the time for it."""


def patience(plain: bool | str) -> float:
    """Seconds to wait for what must happen; the plugin gets less, for what never will."""
    return 1.5 if plain is True else 10.0


def ours_and_plain(
    *,
    plain_survives: Collection[str] = (),
    on: Mapping[str, str | Profile] | Collection[str] = PROFILES,
    plain_on: str | None = None,
) -> pytest.MarkDecorator:
    """Run a scenario with ours on several profiles, and with the google plugin, which must fail it.

    The plugin is run on the first: its faults lie before the wire, and each run costs the time in
    which nothing happens.

    Args:
        plain_survives: Versions of the plugin that must pass it too.
        on: The profiles, or names of them.
        plain_on: Where the plugin is run, if not on the first.
    """
    marks = () if PLUGIN in plain_survives else (MUST_FAIL,)
    profiles = on if isinstance(on, Mapping) else {name: name for name in on}
    ours = [pytest.param(p, False, id=f"ours-{name}") for name, p in profiles.items()]
    name = plain_on or next(iter(profiles))
    which = SURVIVES if PLUGIN in plain_survives else True
    plain = pytest.param(profiles.get(name, name), which, id=f"plain-{name}", marks=marks)
    return pytest.mark.parametrize(("profile", "plain"), [*ours, plain])


WEATHER = "foggy and 12 degrees"
"""What the tool answers; distinctive, so that the simulated model's memory can be searched."""

ANSWER = "It is foggy in London."
"""What the scripted model says about it."""


def answers(server: GeminiLiveServer) -> list[Reply]:
    """Completed replies about the weather."""
    return [r for r in server.replies if r.completed and r.text.strip() == ANSWER]


class Speaker(io.AudioOutput):
    """An audio sink that has played everything as soon as a segment is flushed."""

    def __init__(self) -> None:
        super().__init__(
            label="speaker", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=24000
        )
        self.heard = 0.0
        self.playing = asyncio.Event()
        self._segment = 0.0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if not self._segment:
            # without it LiveKit takes what it interrupts for never played
            self.on_playback_started(created_at=time.time())
        self.playing.set()
        self._segment += frame.duration

    def flush(self) -> None:
        super().flush()
        self._finish(interrupted=False)

    def clear_buffer(self) -> None:
        self._finish(interrupted=True)

    def _finish(self, *, interrupted: bool) -> None:
        if not self._segment:
            return
        played, self._segment = self._segment, 0.0
        self.heard += played
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


@function_tool
async def book_table(day: str) -> str:
    """Book a table.

    Args:
        day: The day.
    """
    return f"booked for {day}"


async def _nothing() -> None:
    """The default of every hook."""


@dataclass
class OnCall:
    """A running session, and what a test may do to it."""

    server: GeminiLiveServer
    patience: float = 10.0
    """Seconds to wait for what must happen; see ``patience``."""
    session: AgentSession[Any] = field(default_factory=AgentSession)
    agent: Agent = field(default_factory=lambda: Agent(instructions="Be brief."))
    speaker: Speaker = field(default_factory=Speaker)
    in_tool: Callable[[], Awaitable[None]] = _nothing
    """Runs inside the tool, before it returns."""
    before_delivery: Callable[[], Awaitable[None]] = _nothing
    """Runs right before LiveKit hands the result to the realtime session, in the same tick."""
    after_delivery: Callable[[], Awaitable[None]] = _nothing
    """Runs right after that, in the same tick."""
    tool_started: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the tool runs."""
    tool_may_return: asyncio.Event = field(default_factory=asyncio.Event)
    """For a tool that is held by ``in_tool``."""
    arriving: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when LiveKit hands over the result."""
    returns: Any = WEATHER
    """What the tool returns, or raises."""
    runs: int = 0
    """How often the tool ran."""
    errors: list[Any] = field(default_factory=list)
    """Error events of the session."""
    spoken: list[str] = field(default_factory=list)
    """What the agent said to the end, as LiveKit recorded it."""
    started: int = 0
    """How many generations the realtime session announced."""
    _recorded: asyncio.Event = field(default_factory=asyncio.Event)

    def record(self, event: Any) -> None:
        """LiveKit recorded an item of the conversation."""
        item = event.item
        if item.type == "message" and item.role == "assistant" and not item.interrupted:
            self.spoken.append((item.text_content or "").strip())
        self._recorded.set()

    def generation_created(self, _: Any) -> None:
        """The realtime session announced a generation."""
        self.started += 1

    async def says(self, text: str, timeout: float = 10.0) -> None:
        """Wait until the agent has said this to the end.

        Raises:
            AssertionError: It has not within ``timeout`` seconds.
        """
        await self.recorded(lambda: text in self.spoken, f"the agent to say {text!r}", timeout)

    async def recorded(
        self, predicate: Callable[[], bool], what: str, timeout: float | None = None
    ) -> None:
        """Wait for a state of the conversation; looked at after every item that LiveKit records.

        Raises:
            AssertionError: It has not come within ``timeout`` seconds (``patience`` by default).
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self.patience if timeout is None else timeout)
        while not predicate():
            self._recorded.clear()
            try:
                await asyncio.wait_for(self._recorded.wait(), max(0.0, deadline - loop.time()))
            except asyncio.TimeoutError:
                raise AssertionError(f"waited for {what}: {self.said('assistant')}") from None

    def said(self, role: str, *, interrupted: bool | None = None) -> list[str]:
        """What one side said, message by message, as LiveKit recorded it.

        Args:
            role: ``user`` or ``assistant``.
            interrupted: Only messages that were interrupted, or that were not.
        """
        return [
            (item.text_content or "").strip()
            for item in self.session.history.items
            if item.type == "message" and item.role == role
            if interrupted is None or item.interrupted == interrupted
        ]

    @property
    def realtime(self) -> Any:
        """The realtime session that the agent talks to."""
        activity = self.agent._get_activity_or_raise()
        assert activity.realtime_llm_session is not None
        return activity.realtime_llm_session

    @property
    def model(self) -> Any:
        """The realtime model of the session."""
        return self.session.llm

    async def says_within(self, text: str) -> None:
        """Wait until the agent has said this, for as long as it is worth waiting."""
        await self.says(text, self.patience)

    async def hold_tool(self) -> None:
        """For ``in_tool``: the tool works until ``tool_may_return`` is set."""
        await asyncio.wait_for(self.tool_may_return.wait(), 20)

    async def ask_and_hold(self) -> None:
        """The caller asks for the weather, and the tool starts and is held.

        Raises:
            AssertionError: It did not start.
        """
        self.in_tool = self.hold_tool
        await self.server.caller_says("What is the weather in London?")
        try:
            await asyncio.wait_for(self.tool_started.wait(), self.patience)
        except asyncio.TimeoutError:
            raise AssertionError("the tool did not start") from None

    async def arrives(self) -> None:
        """Wait until LiveKit has handed over the result."""
        await asyncio.wait_for(self.arriving.wait(), 10)
        await asyncio.sleep(0)

    async def becomes_resumable(self) -> None:
        """Wait until the session has the newest handle, and so has read all that came before it."""

        async def resumable() -> None:
            while not has_newest_handle(self.realtime, self.server):  # noqa: ASYNC110, no event tells
                await asyncio.sleep(0)

        await asyncio.wait_for(resumable(), 10)

    async def add_tool(self) -> None:
        """Declare one more tool: the change that upstream replaces its socket for."""
        await self.agent.update_tools([*self.agent.tools, book_table])

    async def add_tool_at_once(self) -> None:
        """The same on the realtime session itself, without a tick in between."""
        await self.realtime.update_tools([*self.realtime.tools.flatten(), book_table])


def _tool(call: OnCall) -> Any:
    @function_tool
    async def get_weather(city: str) -> Any:
        """Look up the weather.

        Args:
            city: The city.
        """
        call.runs += 1
        call.tool_started.set()
        await call.in_tool()
        if isinstance(call.returns, Exception):
            raise call.returns
        return call.returns

    return get_weather


def _watch_delivery(call: OnCall) -> None:
    realtime = call.realtime
    hand_over = realtime.update_chat_ctx

    async def update_chat_ctx(chat_ctx: llm.ChatContext) -> None:
        known = {i.call_id for i in realtime.chat_ctx.items if i.type == "function_call_output"}
        new = [
            i for i in chat_ctx.items if i.type == "function_call_output" and i.call_id not in known
        ]
        if new:
            call.arriving.set()
            await call.before_delivery()
        await hand_over(chat_ctx)
        if new:
            await call.after_delivery()

    realtime.update_chat_ctx = update_chat_ctx


def has_newest_handle(session: Any, server: GeminiLiveServer) -> bool:
    """Whether a session has read the last handle of its server, and so all that came before."""
    issued = [handle for connection in server.connections for handle in connection.handles]
    return issued[-1:] == [session.session_resumption_handle]


async def connected_client(realtime: Any) -> None:
    """Wait until the session itself, not only the server, has its connection."""
    acquired = asyncio.Event()
    realtime.on("metrics_collected", lambda _: acquired.set())
    while realtime._active_session is None:
        await asyncio.wait_for(acquired.wait(), 10)
        await asyncio.sleep(0)


async def eventually(predicate: Callable[[], Any], what: str) -> None:
    """Wait for a state that no event tells; looked at in every pass of the loop.

    Raises:
        AssertionError: It did not come within 10 s.
    """
    deadline = asyncio.get_running_loop().time() + 10
    while not predicate():
        assert asyncio.get_running_loop().time() < deadline, f"waited 10 s for {what}"
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def on_call(
    server: GeminiLiveServer,
    *,
    plain: bool = False,
    resilience: ResilienceOptions | None = None,
    tools: list[Any] | None = None,
    also: Collection[Any] = (),
    chat_ctx: llm.ChatContext | None = None,
    excused: Excuses | None = None,
    unheard: int = 0,
    **options: Any,
) -> AsyncIterator[OnCall]:
    """An agent with a weather tool that has connected to the simulator.

    Args:
        server: The simulator.
        plain: Use the google plugin's own model.
        resilience: Options of ours.
        tools: Tools in place of ``get_weather``.
        also: Tools besides ``get_weather``.
        chat_ctx: The first chat context.
        excused: By function: why its results may be lost here.
        unheard: Replies to one result that LiveKit lets pass by here.
        **options: Further arguments of the model.
    """
    arguments = {**server.model_options(), **options}
    model = PluginModel(**arguments) if plain else RealtimeModel(resilience=resilience, **arguments)
    watch = Watch(model)
    call = OnCall(server, patience=patience(plain))
    call.session = AgentSession(llm=model)
    call.session.output.audio = call.speaker
    tools = tools or [_tool(call), *also]
    call.agent = Agent(instructions="Be brief.", tools=tools, chat_ctx=chat_ctx)
    call.session.on("conversation_item_added", call.record)
    call.session.on("error", lambda event: call.errors.append(event.error))
    await call.session.start(call.agent)
    _watch_delivery(call)
    call.realtime.on("generation_created", call.generation_created)
    try:
        await connected_client(call.realtime)
        yield call
        await watch.nothing_pends(excused or {})
    finally:
        # LiveKit waits for tools when it closes
        call.tool_may_return.set()
        if plain:
            # a speech that the plugin never ends would be waited for, for 5 s; its close raises
            # what its main task died of
            with contextlib.suppress(Exception):
                await call.realtime.aclose()
        await call.session.aclose()
        await model.aclose()
    await watch.all_is_over(server, excused or {}, unheard)
