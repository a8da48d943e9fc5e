"""A long conversation through one model, and what was lost in it.

The losses are read from the simulated model's memory and from LiveKit's record, not from what the
session says of itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from livekit import rtc
from livekit.agents import Agent, AgentSession, AgentTask, function_tool, llm

from ..model import RealtimeModel
from ..testing import Connection, GeminiLiveServer
from .line import Speaker, book_table
from .long_plan import Event, Turn, plan

_NOTICE = 30.0
"""Seconds of notice in ``goAway``; 30 to 300 were observed."""

_DEAD_AFTER = 2
"""Turns in a row that nobody hears or answers, after which a caller hangs up."""

_BREATH = rtc.AudioFrame(bytes(2 * 1600), 16000, 1, 1600)
"""A tenth of a second of the caller's audio."""


class _Consent(AgentTask[bool]):
    def __init__(self) -> None:
        super().__init__(instructions="Ask for consent.")

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Ask for consent.")

    @function_tool
    async def agree(self) -> None:
        """The caller agrees."""
        self.complete(True)


async def losses(
    make_model: Callable[..., llm.RealtimeModel], *, profile: str, seed: int, patience: float
) -> list[str]:
    """What is lost in a long conversation, in words.

    Args:
        make_model: Makes the realtime model from its arguments.
        profile: How the simulator behaves.
        seed: Which conversation it is.
        patience: Seconds for which anything is waited for.
    """
    async with GeminiLiveServer(profile=profile, strict=False) as server:
        model = make_model(**server.model_options())
        call = LongCall(server, model, patience)
        try:
            await call.lead(plan(seed))
        finally:
            await model.aclose()
        return call.losses


class LongCall:
    """A caller, an agent and a server that live through the turns of a plan.

    Args:
        server: The simulator; not strict, since what is lost is counted here.
        model: The realtime model that the agent uses.
        patience: Seconds for which anything is waited for.
    """

    def __init__(self, server: GeminiLiveServer, model: llm.RealtimeModel, patience: float) -> None:
        self.losses: list[str] = []
        """What was lost, in words."""
        self._server = server
        self._patience = patience
        self._session: AgentSession[None] = AgentSession(llm=model)
        self._speaker = Speaker()
        self._recorded = asyncio.Event()
        self._turn = Turn(number=0, event=Event.NOTHING)
        self._heard: list[Turn] = []
        if isinstance(model, RealtimeModel):
            # scaled down in time: what is lost within seconds here has lived for minutes
            model._young = 0.0

    async def lead(self, turns: list[Turn]) -> None:
        """Live through a plan; it ends early where nobody answers any more."""
        self._session.output.audio = self._speaker
        self._session.on("conversation_item_added", lambda _: self._recorded.set())
        await self._session.start(Agent(instructions="Be brief.", tools=self._tools()))
        try:
            silent = 0
            for turn in turns:
                before = len(self.losses)
                await self._live_through(turn)
                silent = silent + 1 if len(self.losses) > before else 0
                if silent == _DEAD_AFTER and turn is not turns[-1]:
                    self.losses.append(f"the call is given up after turn {turn.number}")
                    break
            self._judge()
        finally:
            with contextlib.suppress(Exception):
                # what the plugin's main task died of, or a speech that it never ends
                await asyncio.wait_for(self._session.aclose(), 2 * self._patience)

    # ------------------------------------------------------------ one turn

    async def _live_through(self, turn: Turn) -> None:
        self._turn = turn
        self._server.go_on_with(turn.script)
        number = self._number
        trap = None
        if turn.event in (Event.DROP_AT_RESPONSE, Event.DROP_AFTER_RESPONSE):
            after = turn.event is Event.DROP_AFTER_RESPONSE
            trap = self._server.drop_on("tool_response", after=after)
        try:
            await self._hears(turn)
            await self._strike(turn)
            if turn.is_answered:
                await self._until(lambda: self._spoke(turn.reply, cut=False), "an answer")
            if turn.is_cut:
                await self._until(lambda: self._spoke(turn.cut, cut=True), "what was cut")
            if turn.event is Event.DROP_IDLE:
                await self._server.drop()
            if turn.event.replaces:
                await self._server.until(
                    lambda: self._number > number, "another connection", self._patience
                )
        except (AssertionError, RuntimeError, asyncio.TimeoutError) as e:
            missed = str(e).splitlines()[0] if str(e) else "time"
            self.losses.append(f"turn {turn.number} ({turn.event.value}): {missed}")
        finally:
            turn.gate.open()
            if trap is not None and not trap.sprung.is_set():
                trap.take_back()
        if self._server.remaining:
            self.losses.append(f"turn {turn.number} ({turn.event.value}): the model was not asked")

    async def _hears(self, turn: Turn) -> None:
        """The caller speaks: first audio arrives, after all that the model is told, then words."""
        await self._audio_arrives()
        await self._server.caller_says(turn.words)
        self._heard.append(turn)
        if turn.event is Event.TASK:
            await self._until(lambda: self._spoke("Do you agree?", cut=False), "a question")
            await self._audio_arrives()
            await self._server.caller_says("Yes, I do.")

    async def _audio_arrives(self) -> None:
        arrived = self._pieces
        realtime = self._session.current_agent.realtime_llm_session
        realtime.push_audio(_BREATH)
        await self._server.until(
            lambda: self._pieces > arrived and self._server.current,
            "the caller's audio",
            self._patience,
        )

    async def _strike(self, turn: Turn) -> None:
        """What happens in mid-sentence."""
        event = turn.event
        if event in (Event.DROP_IN_REPLY, Event.DROP_IN_ANSWER, Event.NOTICE_IN_REPLY, Event.VOICE):
            await turn.gate.reached(self._patience)
            await asyncio.wait_for(self._speaker.playing.wait(), self._patience)
        elif event is Event.DROP_UNANSWERED:
            await turn.gate.reached(self._patience)
        else:
            return
        if event is Event.NOTICE_IN_REPLY:
            await self._server.go_away(_NOTICE)
        elif event is Event.VOICE:
            realtime: Any = self._session.current_agent.realtime_llm_session
            realtime.update_options(voice="Kore")
        else:
            await self._server.drop()
        turn.gate.open()

    async def _in_tool(self, agent: Agent) -> None:
        match self._turn.event:
            case Event.NOTICE_IN_TOOL:
                await self._server.go_away(_NOTICE)
            case Event.DROP_IN_TOOL:
                await self._server.drop()
            case Event.TOOLS:
                await agent.update_tools([*agent.tools, book_table])
            case Event.TASK:
                await _Consent()

    def _tools(self) -> list[Any]:
        @function_tool
        async def look_up(number: int) -> str:
            """Look up a fact.

            Args:
                number: Which one.
            """
            await self._in_tool(self._session.current_agent)
            return f"fact {number:02}"

        @function_tool
        async def transfer(number: int) -> Any:
            """Hand over to another agent.

            Args:
                number: Which fact it is to know.
            """
            context = self._session.current_agent.chat_ctx
            agent = Agent(instructions="Be kind.", tools=[look_up], chat_ctx=context)
            return agent, f"fact {number:02}"

        return [look_up, transfer]

    # ------------------------------------------------------------ what is seen

    @property
    def _number(self) -> int:
        return self._server.current.number if self._server.current else 0

    @property
    def _pieces(self) -> int:
        frames = (frame for c in self._server.connections for frame in c.frames)
        return sum("audio" in frame.get("realtime_input", {}) for frame in frames)

    def _messages(self, role: str) -> list[llm.ChatMessage]:
        items = self._session.history.items
        return [item for item in items if item.type == "message" and item.role == role]

    def _spoke(self, text: str, *, cut: bool) -> bool:
        """Whether LiveKit recorded these words of the model, or the beginning of them."""
        said = [m for m in self._messages("assistant") if m.interrupted == cut]
        texts = [(message.text_content or "").strip() for message in said]
        return any(text.startswith(t) if cut else text == t for t in texts if t)

    async def _until(self, predicate: Callable[[], bool], what: str) -> None:
        deadline = asyncio.get_running_loop().time() + self._patience
        while not predicate():
            self._recorded.clear()
            left = deadline - asyncio.get_running_loop().time()
            try:
                await asyncio.wait_for(self._recorded.wait(), max(0.0, left))
            except asyncio.TimeoutError:
                raise AssertionError(f"waited {self._patience:g} s for {what}") from None

    # ------------------------------------------------------------ the verdict

    def _judge(self) -> None:
        self.losses += [f"the server objects: {breach.what}" for breach in self._server.breaches]
        words = [turn.words for turn in self._heard]
        recorded = [m.text_content for m in self._messages("user")]
        if [text for text in recorded if text in words] != words:
            self.losses.append(f"LiveKit recorded what the caller said as {recorded}")
        must_be_cut = sum(turn.is_cut for turn in self._heard)
        cut = [m.text_content for m in self._messages("assistant") if m.interrupted]
        if len(cut) != must_be_cut:
            self.losses.append(f"{len(cut)} replies were cut, not {must_be_cut}: {cut}")
        for connection in self._server.connections:
            self._judge_memory(connection)
        for turn in self._heard:
            self._judge_turn(turn)

    def _judge_memory(self, connection: Connection) -> None:
        """Nothing is told twice, and nothing out of order."""
        known = [entry.text for entry in connection.context if entry.kind != "model"]
        for turn in self._heard:
            for text, most in ((turn.words, 1), (turn.fact, turn.tellings)):
                times = sum(text in entry for entry in known)
                if times > most:
                    self.losses.append(f"connection {connection.number} knows {text!r} {times}x")
        order = [turn.number for entry in known for turn in self._heard if turn.words in entry]
        if order != sorted(order):
            self.losses.append(f"connection {connection.number} knows the turns as {order}")

    def _judge_turn(self, turn: Turn) -> None:
        name = f"turn {turn.number} ({turn.event.value})"
        times = self._server.times_told(turn.words)
        if times != 1:
            self.losses.append(f"{name}: at the end the model knows the words {times} times")
        if not turn.uses_tool:
            return
        times = self._server.times_told(turn.fact)
        # what a tool returns beside the next agent is in no context of that agent
        if not 1 <= times <= turn.tellings and turn.event is not Event.HAND_OFF:
            self.losses.append(f"{name}: at the end the model knows the result {times} times")
        replies = [r for r in self._server.replies if r.text.strip() == turn.reply and r.completed]
        if len(replies) != 1 or not replies[0].knew(turn.fact):
            self.losses.append(f"{name}: {len(replies)} replies, or without the result")
