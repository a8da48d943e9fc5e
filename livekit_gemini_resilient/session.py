"""The asyncio adapter: what LiveKit calls, and how the core's effects are carried out.

It decides nothing. What is written, when, and what follows from a failure is the core's word.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from livekit.agents import ConversationItemAddedEvent, UserStateChangedEvent, llm, utils
from livekit.agents.types import NOT_GIVEN, NotGivenOr
from livekit.agents.utils import is_given

from . import context, handover
from .connection import Connection, Outgoing, Written
from .context import logger
from .core.behaviour import Observed
from .core.conversation import Conversation
from .core.effects import (
    CloseConnection,
    Dial,
    Effect,
    FailReply,
    ReportError,
    ReportLearned,
    ReportOutcome,
    ReportReconnected,
)
from .core.errors import ReplyRefused, ResilienceError, SessionFailed
from .core.events import (
    AudienceChanged,
    ConnectionLost,
    ContextUpdated,
    Event,
    GenerationSkipped,
    InputPushed,
    InstructionsChanged,
    MessageRecorded,
    ReplyRequested,
    ReplyWithdrawn,
    RestartCause,
    RestartRequested,
    ToolResult,
    VoiceDetected,
)
from .feed import Feed
from .listeners import Guarded
from .options import ResilienceOptions
from .replies import Replies
from .stage import Stage
from .upstream import PluginModel, PluginSession, stamps_words

_CLOSED = ReplyRefused("the session is closed", "start a new one")


class RealtimeSession(PluginSession):
    """One conversation with Gemini Live, over as many connections as it takes.

    Made by ``RealtimeModel.session()``. Its methods and events are those of LiveKit's realtime
    sessions; times are those of ``ResilienceOptions``. Besides, each tool result ends in one
    ``tool_result_settled`` event (``ReportOutcome``: ``call_id`` and ``outcome``), and each
    replacement of the connection in one ``session_reconnected``. A failure is an ``error`` event;
    with ``recoverable=False`` the conversation is over.

    Args:
        realtime_model: The model whose options are copied.
        resilience: Times and limits.
        observed: What the server is known to do; shared by the sessions of a model.
        young: See ``recovery.YOUNG``.
    """

    def __init__(
        self,
        realtime_model: PluginModel,
        resilience: ResilienceOptions,
        observed: Observed,
        *,
        young: float,
    ) -> None:
        super().__init__(realtime_model)
        self._resilience = resilience
        self._conversation = Conversation(
            resilience,
            new_id=utils.shortuuid,
            random=random.random,
            handle=self._first_handle,
            max_retry=self._conn_options.max_retry,
            retry_interval=self._conn_options.retry_interval,
            observed=observed,
            may_stay_silent=self._may_stay_silent,
            final_at_reply=not stamps_words(),
            young=young,
        )
        self._feed = Feed(self._conversation, self._run)
        self._next_dial: Dial | None = None
        self._session_should_close = asyncio.Event()
        self._replies = Replies(lambda n: self._receive(ReplyWithdrawn(request=n)))
        self._outgoing = Outgoing(self._replies.awaited)
        self._stage = Stage(
            self, self._replies.answer, lambda n: self._receive(GenerationSkipped(generation=n))
        )
        self._listener: handover.Listener | None = None
        self._failure: BaseException | None = None
        self._closing: asyncio.Task[None] | None = None

    # ------------------------------------------------------------ what can be seen from outside

    @property
    def _pending_tool_result(self) -> tuple[ToolResult, ...]:
        """Results that wait: produced while ``_session_should_close`` was set or while there was
        no connection, or told and not seen to arrive. The reconnect handler replays them."""
        return self._conversation.pending_results

    @property
    def _generation_completed(self) -> bool:
        """Whether the model has said all that it has to say for now."""
        return self._conversation.generation_completed

    @property
    def session_resumption_handle(self) -> str | None:
        """The newest usable resumption handle, ``None`` if there is none."""
        return self._conversation.link.handle

    @property
    def dropped_audio(self) -> float:
        """Seconds of the caller's audio given up: no connection could be had in time, or the
        server refused it."""
        return self._conversation.uplink.dropped_seconds

    # ------------------------------------------------------------ LiveKit's surface

    async def update_tools(self, tools: list[llm.Tool]) -> None:
        """Declare other tools. Returns once that is noted; see ``ResilienceOptions.restart_when``.

        Calls of functions that were removed are refused from now on.

        Args:
            tools: All tools from now on. Those that cannot be declared (a list of types, a ``$ref``
                to itself) are left out, with an ``error`` event (``ToolsUnusable``, recoverable).
        """
        usable, left_out = self._declarable(list(tools))
        if left_out is not None:
            self._receive(left_out)
        cause = self._set_tools(usable)
        if cause is not None:
            self._restart(cause)

    async def update_instructions(self, instructions: str) -> None:
        """Replace the system instruction: in place on Vertex AI, else over a new connection.

        Args:
            instructions: The whole new instruction.
        """
        if self._set_instructions(instructions):
            self._receive(
                InstructionsChanged(
                    text=instructions,
                    by_turn=self._takes_instructions_by_turn,
                    unusable=self._why_unusable(),
                    in_place=self._can_update_in_place,
                )
            )

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        """Hand over the chat context: what the server does not know of it is told once.

        A function output whose call was issued here is the answer to that call. One that comes
        alone, without its call, is put before the model in words; one that comes with the first
        context, or together with its call, is history. A second output for one call is dropped.

        Args:
            chat_ctx: The whole context. ``system`` and ``developer`` messages are left out, since
                the service refuses those roles; use ``update_instructions``. Where it lacks a
                message that was heard, or has it otherwise, a fresh session takes the place of
                the present one when the turn is over.
        """
        self._set_context(chat_ctx)
        items = self._history_items()
        leaving = self._listener is not None and self._listener.is_replaced
        self._receive(ContextUpdated(items=items, due=handover.take_due(items), leaving=leaving))

    def generate_reply(
        self,
        *,
        instructions: NotGivenOr[str] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        tools: NotGivenOr[list[llm.Tool]] = NOT_GIVEN,
    ) -> asyncio.Future[llm.GenerationCreatedEvent]:
        """Ask the model to speak.

        Args:
            instructions: What to do in this reply; without them it answers what was said last.
            tool_choice: Not supported per reply by the service; ignored.
            tools: Not supported per reply by the service; ignored.

        Returns:
            A future of the generation. It fails with ``llm.RealtimeError``: at once while a tool
            runs that the model waits for (see ``ResilienceOptions.reply_during_call``); 5 s after
            the request was written without a reply; at once when the model answers two ways of
            asking with an empty turn; 30 s after the call if it could not be written; when a newer
            request takes its place; when the conversation is given up, or the session closed.
            Cancelling it withdraws the request, which is then not written any more; if it was
            already, the reply is one that nobody asked for (``user_initiated`` is false).
        """
        if is_given(tools) or is_given(tool_choice):
            logger.warning("tools and tool_choice per reply are not supported and ignored")
        activity_end = self._end_of_activity()
        number, reply = self._replies.ask()
        if self._closing is not None:
            self._replies.fail(number, _CLOSED)
            return reply
        text = instructions if is_given(instructions) else None
        self._receive(ReplyRequested(request=number, instructions=text, activity_end=activity_end))
        return reply

    def on(self, event: Any, callback: Any = None) -> Any:
        """Listen to an event; an agent that listens to generations takes part from now on."""
        listening = super().on(event, callback)
        if callback is not None:
            # the emitter has refused what is no listener
            self.off(event, callback)
            super().on(event, Guarded(callback))
        listener = handover.Listener.of(callback) if event == "generation_created" else None
        if listener is not None:
            if self._listener is not None:
                self._listener.leave()
            self._listener = listener
            listener.join(
                conversation_item_added=self._item_added,
                user_state_changed=self._user_state_changed,
            )
            self._receive(AudienceChanged(handed_over=listener.take()))
        return listening

    async def aclose(self) -> None:
        """End the conversation; nothing of it is left when this returns. May be called twice.

        A caller that is cancelled, by a timeout say, leaves nothing half closed either.
        """
        if self._closing is None:
            followed = handover.leave(self._listener, self._conversation.ledger.due_replies)
            self._feed.close(handed_over=followed)
            self._feed.end()
            self._session_should_close.set()
            self._closing = asyncio.create_task(self._close(), name="gemini-resilient-aclose")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.leave()
        await self._stop_main_task()
        self._feed.stop()
        self._replies.fail_all(_CLOSED)
        self._stage.clear()
        await self._close_client()

    def _item_added(self, event: ConversationItemAddedEvent) -> None:
        """LiveKit recorded a message: of a reply as much as was heard, and none never played."""
        item = event.item
        if not isinstance(item, llm.ChatMessage) or item.role != "assistant":
            return
        if self._adopt(item, ours=self._conversation.history.has(item.id)):
            self._receive(MessageRecorded(item=context.message(item)))

    def _user_state_changed(self, event: UserStateChangedEvent) -> None:
        """LiveKit hears the caller; what it makes of events of ours is no news."""
        speaking = event.new_state == "speaking"
        if not (speaking and self._feed.is_running):
            self._receive(VoiceDetected(speaking=speaking))

    # ------------------------------------------------------------ upstream's hooks

    def _client_event(self, event: InputPushed) -> None:
        """Realtime input is to be written."""
        self._receive(event)

    def _options_changed(self) -> None:
        """An option of the setup changed."""
        self._restart(RestartCause.OPTIONS)

    # ------------------------------------------------------------ feeding the core

    def _restart(self, cause: RestartCause) -> None:
        in_place = self._can_update_in_place and cause is not RestartCause.OPTIONS
        unusable = self._why_unusable()
        self._receive(RestartRequested(cause=cause, unusable=unusable, in_place=in_place))

    def _receive(self, event: Event) -> None:
        self._feed.receive(event)

    # ------------------------------------------------------------ carrying out effects

    def _run(self, effect: Effect) -> None:
        match effect:
            case Dial():
                self._next_dial = effect
            case CloseConnection():
                self._session_should_close.set()
            case FailReply(request=request, error=error):
                self._replies.fail(request, error)
            case ReportError(error=error, recoverable=recoverable):
                self._report_error(error, recoverable=recoverable)
            case ReportReconnected(connection=connection, resumed=resumed):
                logger.info(
                    "Gemini Live reconnected", extra={"connection": connection, "resumed": resumed}
                )
                self.emit("session_reconnected", llm.RealtimeSessionReconnectedEvent())
            case ReportLearned(behaviour=behaviour):
                logger.warning("the server behaves otherwise than assumed: %r", behaviour)
            case ReportOutcome():
                self.emit("tool_result_settled", effect)
            case _ if isinstance(effect, Written):
                self._outgoing.put(effect)
            case _:
                self._stage.show(effect)

    def _report_error(self, error: ResilienceError, *, recoverable: bool) -> None:
        error.__cause__ = self._failure
        extra = {"kind": type(error).__name__, "recoverable": recoverable}
        logger.warning("Gemini Live session error", extra={**extra, "lk.pii.error": str(error)})
        self._report_failure(error, recoverable=recoverable)

    # ------------------------------------------------------------ connections

    async def _main_task(self) -> None:
        """Dial, hold the connection, report how it ended; for as long as the core wants to."""
        try:
            self._feed.start()
            while (dial := self._next_dial) is not None:
                self._next_dial = None
                await asyncio.sleep(dial.delay)
                self._receive(await self._connection(dial))
                self._failure = None
        except Exception as e:
            # a defect of ours or of a listener; nobody awaits this task
            self._failure = e
            self._feed.close()
            self._report_error(SessionFailed(type(e).__name__), recoverable=False)

    async def _connection(self, dial: Dial) -> ConnectionLost:
        """One connection, from the dial to its end."""
        self._session_should_close.clear()
        connection = Connection(
            self,
            dial,
            outgoing=self._outgoing,
            receive=self._receive,
            should_close=self._session_should_close,
        )
        lost = await connection.run(
            announces_history=self._can_announce_history and self._conversation.announces_history,
            as_accepted=self._conversation.repeats_setup,
            without=self._conversation.functions_left_out,
            dial_timeout=self._resilience.dial_timeout,
        )
        self._failure = connection.failure
        return lost
