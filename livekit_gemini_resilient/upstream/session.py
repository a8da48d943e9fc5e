"""What passes over a connection, and what the framework is shown and told of it."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

from google.genai import types
from google.genai.live import AsyncSession
from livekit import rtc
from livekit.agents import llm, utils
from livekit.agents.utils import is_given
from livekit.plugins.google.realtime import realtime_api as plugin

from ..context import history
from ..core.events import Activity, HistoryItem, InputPushed, ToolResult
from .model import PluginModel
from .setup import SetupSession

Generation = plugin._ResponseGeneration
"""Upstream's record of a generation: its metrics code reads it."""


class PluginSession(SetupSession):
    """Upstream's session, cut down to building the setup, resampling and metrics.

    Args:
        realtime_model: The model whose options the session copies.
    """

    def __init__(self, realtime_model: PluginModel) -> None:
        super().__init__(realtime_model)
        self._made_up_ids: set[str] = set()

    # ------------------------------------------------------------ hooks

    @abstractmethod
    def _client_event(self, event: InputPushed) -> None:
        """Realtime input is to be written."""

    @abstractmethod
    def _options_changed(self) -> None:
        """An option of the setup changed."""

    def _end_of_activity(self) -> InputPushed | None:
        """A reply is asked for: the end of the caller's activity, if the client opened one."""
        if not self._in_user_activity:
            return None
        self._in_user_activity = False
        return _input(types.LiveClientRealtimeInput(activity_end=types.ActivityEnd()))

    def _send_client_event(self, event: Any) -> None:
        """Upstream's single funnel; inherited code sends realtime input through it."""
        self._client_event(_input(event))

    def _mark_restart_needed(self, on_error: bool = False) -> None:
        """Upstream's drains and swaps the queue; its ``update_options`` calls it."""
        self._options_changed()

    # ------------------------------------------------------------ the connection

    def _set_active(self, connection: AsyncSession | None) -> None:
        """Keep ``_active_session`` true to the facts: inherited code reads it."""
        self._active_session = connection

    async def _stop_main_task(self) -> None:
        """End ``_main_task``, which upstream's constructor starts, and wait until it has ended."""
        await utils.aio.cancel_and_wait(self._main_atask)

    async def _close_client(self) -> None:
        """Close the HTTP clients of the session; 1.6.5 leaves them to the garbage collector."""
        await self._client.aio.aclose()

    def _report_connected(self, seconds: float) -> None:
        """Emit LiveKit's metrics of a connection that took so many seconds to open."""
        self._report_connection_acquired(seconds)

    def _report_failure(self, error: Exception, *, recoverable: bool) -> None:
        """Emit upstream's error event."""
        self._emit_error(error, recoverable)

    # ------------------------------------------------------------ reading and writing

    def _function_responses(self, results: tuple[ToolResult, ...]) -> list[types.FunctionResponse]:
        """Results in the service's terms, scheduled as the options say."""
        vertexai, scheduling = self._opts.vertexai, self._opts.tool_response_scheduling
        responses: list[types.FunctionResponse] = []
        for result in results:
            call_id: str | None = result.call_id
            if call_id in self._made_up_ids:
                # on the Gemini API the SDK wants the field; in protobuf JSON the empty id is none
                call_id = None if vertexai else ""
            response = types.FunctionResponse(
                id=call_id,
                name=result.name,
                response={"error" if result.is_error else "output": result.output},
            )
            # read by the Gemini API on NON_BLOCKING tools only (documented)
            if not vertexai and not self._tools_block and not result.reply_required:
                response.scheduling = types.FunctionResponseScheduling.SILENT
            elif not vertexai and is_given(scheduling):
                response.scheduling = scheduling
            responses.append(response)
        return responses

    def _made_up_id(self) -> str:
        """An id for a call that came without one; its response must carry none."""
        call_id = utils.shortuuid("fnc-call-")
        self._made_up_ids.add(call_id)
        return call_id

    def _transcript_of(self, content: types.LiveServerContent) -> str:
        """What belongs in the transcript of the model's speech; no thoughts."""
        spoken = content.output_transcription
        text = (spoken.text or "") if spoken else ""
        writes = (
            not self._realtime_model.capabilities.audio_output
            or self._opts.output_audio_transcription is None
        )
        parts = (content.model_turn.parts or []) if content.model_turn else []
        if writes:
            text = "".join(p.text for p in parts if p.text and not p.thought) + text
        return text

    # ------------------------------------------------------------ generations

    def _new_generation(self, response_id: str, input_id: str) -> Generation:
        """A generation as upstream's metrics code expects it, made the current one."""
        generation = Generation(
            message_ch=utils.aio.Chan[llm.MessageGeneration](),
            function_ch=utils.aio.Chan[llm.FunctionCall](),
            input_id=input_id,
            response_id=response_id,
            text_ch=utils.aio.Chan[str](),
            audio_ch=utils.aio.Chan[rtc.AudioFrame](),
        )
        self._current_generation = generation
        return generation

    def _end_audio(self, generation: Generation) -> None:
        """End the audio, which is when upstream takes a generation to be complete."""
        generation._completed_timestamp = generation._completed_timestamp or time.time()
        if not generation.audio_ch.closed:
            generation.audio_ch.close()

    def _close_generation(self, generation: Generation, *, interrupted: bool) -> None:
        """Close a generation's streams and record what was said in it."""
        if generation.output_text:
            message = llm.ChatMessage(
                id=generation.response_id,
                role="assistant",
                content=[generation.output_text],
                interrupted=interrupted,
                created_at=generation._created_timestamp,
            )
            self._record(message)
        self._close_text(generation)
        self._end_audio(generation)
        generation.function_ch.close()
        generation.message_ch.close()
        generation._done = True

    def _close_text(self, generation: Generation) -> None:
        """End the transcript; the transcription synchronizer wants a last piece without one."""
        if generation.text_ch.closed:
            return
        if self._opts.output_audio_transcription is None:
            generation.text_ch.send_nowait("")
        generation.text_ch.close()

    def _report_usage(self, generation: Generation, usage: Any) -> None:
        """Emit upstream's metrics for a generation."""
        self._current_generation = generation
        self._handle_usage_metadata(usage)

    # ------------------------------------------------------------ the chat context

    def _set_context(self, chat_ctx: llm.ChatContext) -> None:
        """Adopt a chat context without what cannot be told to the service."""
        self._chat_ctx = chat_ctx.copy(
            exclude_handoff=True,
            exclude_instructions=True,
            exclude_empty_message=True,
            exclude_config_update=True,
        )

    def _record(self, item: Any) -> None:
        """Add an item to the chat context, or replace the one with its id."""
        index = self._chat_ctx.index_by_id(item.id)
        if index is None:
            self._chat_ctx.insert(item)
        else:
            self._chat_ctx.items[index] = item

    def _adopt(self, item: llm.ChatMessage, *, ours: bool) -> bool:
        """Take over a message as LiveKit recorded it.

        Args:
            item: What LiveKit recorded.
            ours: Whether the server said it; it may have left the context while it was played.

        Returns:
            Whether it belongs to this session.
        """
        if not ours and self._chat_ctx.index_by_id(item.id) is None:
            return False
        self._record(item.model_copy(update={"content": list(item.content)}))
        return True

    def _history_items(self) -> tuple[HistoryItem, ...]:
        """The chat context in the core's terms."""
        # where all responses are SILENT nobody waits for a reply; Vertex AI has no scheduling
        scheduling = self._opts.tool_response_scheduling
        silent = not self._opts.vertexai and scheduling == types.FunctionResponseScheduling.SILENT
        return tuple(history(self._chat_ctx, silent=silent))


def _input(event: Any) -> InputPushed:
    """Realtime input in the core's terms."""
    audio = getattr(event, "audio", None)
    seconds = len(audio.data or b"") / (2 * plugin.INPUT_AUDIO_SAMPLE_RATE) if audio else 0.0
    activity = None
    if getattr(event, "activity_start", None) is not None:
        activity = Activity.START
    elif getattr(event, "activity_end", None) is not None:
        activity = Activity.END
    is_video = getattr(event, "video", None) is not None
    return InputPushed(payload=event, seconds=seconds, is_video=is_video, activity=activity)


def mark_first_token(generation: Generation) -> None:
    """The model begins to speak: 1.6.5 takes the time to the first token from that."""
    if hasattr(generation, "_first_token_timestamp"):
        generation._first_token_timestamp = generation._first_token_timestamp or time.time()


def audio_frame(data: bytes) -> rtc.AudioFrame:
    """Speech of the model as LiveKit plays it; an odd trailing byte is dropped.

    Args:
        data: 24 kHz mono s16le.
    """
    samples = len(data) // 2
    return rtc.AudioFrame(
        data=data[: samples * 2],
        sample_rate=plugin.OUTPUT_AUDIO_SAMPLE_RATE,
        num_channels=plugin.OUTPUT_AUDIO_CHANNELS,
        samples_per_channel=samples,
    )


def stamps_words() -> bool:
    """Whether the caller's message carries the time at which it began (newer than 1.6.5)."""
    event = llm.InputTranscriptionCompleted(item_id="", transcript="", is_final=False)
    return hasattr(event, "turn_started_at")


def wall_clock() -> float:
    """Seconds since the epoch, as LiveKit stamps its items."""
    return time.time()
