"""The one module that names private members of the google plugin, each with why.

``session`` and ``model`` see only what is here, but that ``session`` replaces ``_main_task`` and
its ``_session_should_close``. What upstream changes is mended here.
"""

from __future__ import annotations

import dataclasses
import time
from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Any

from google.genai import types
from google.genai.live import AsyncSession
from livekit import rtc
from livekit.agents import llm, utils
from livekit.agents.types import NOT_GIVEN
from livekit.agents.utils import is_given
from livekit.plugins.google import utils as tools_config
from livekit.plugins.google.realtime import realtime_api as plugin

from .context import history
from .core.events import (
    Activity,
    HistoryItem,
    InputPushed,
    RestartCause,
    ToolResult,
    ToolsLeftOut,
)
from .core.wording import clean

PlainModel = plugin.RealtimeModel
"""Upstream's model; the plugin's own name for it may come to stand for ours."""

Generation = plugin._ResponseGeneration
"""Upstream's record of a generation: its metrics code reads it."""

_UNNAMED_MODEL = "unnamed"
"""Stands in for the model's name while upstream's constructor runs, since that decides
capabilities and tool behaviour by parts of the name, and refuses some names."""


class PluginModel(PlainModel):
    """Upstream's model without what it infers from the model's name.

    Args:
        http_defaults: Arguments for the websocket that the user's own ``http_options`` override.
        **kwargs: Upstream's arguments.
    """

    def __init__(self, *, http_defaults: dict[str, Any], **kwargs: Any) -> None:
        name = kwargs.get("model", NOT_GIVEN)
        if is_given(name):
            kwargs["model"] = _UNNAMED_MODEL
        super().__init__(**kwargs)
        if is_given(name):
            self._opts.model = name
        # declared by the user or left to the server: upstream's default goes by the name
        self._opts.tool_behavior = kwargs.get("tool_behavior", NOT_GIVEN)
        self._opts.http_options = _http_options(
            self._opts.http_options, self._opts.conn_options.timeout, http_defaults
        )
        # ours can do both on every server: in place or over a new connection. mutable_tools stays
        # false: LiveKit would reuse the session for an AgentTask while the outer call is open
        self._capabilities = dataclasses.replace(
            self._capabilities,
            mutable_chat_context=True,
            mutable_instructions=True,
            mutable_tools=False,
        )


def _http_options(given: Any, timeout: float, defaults: dict[str, Any]) -> types.HttpOptions:
    """The user's options, copied (upstream writes into them), with our websocket arguments."""
    if given and is_given(given):
        options: types.HttpOptions = given.model_copy()
    else:
        options = types.HttpOptions(timeout=int(timeout * 1000))
    options.headers = dict(options.headers or {})
    options.async_client_args = {**defaults, **(options.async_client_args or {})}
    return options


class PluginSession(plugin.RealtimeSession):
    """Upstream's session, cut down to building the setup, resampling and metrics.

    Args:
        realtime_model: The model whose options the session copies: upstream shares one object
            between all sessions, so that a change to one leaks into the others.
    """

    def __init__(self, realtime_model: PluginModel) -> None:
        super().__init__(realtime_model)
        # the model's update_options goes through these
        realtime_model._sessions.add(self)
        self._opts = dataclasses.replace(realtime_model._opts)
        if is_given(self._opts.instructions):
            self._opts.instructions = clean(self._opts.instructions)
        self._made_up_ids: set[str] = set()
        self._declared: llm.ToolContext | None = None
        self._setup: types.LiveConnectConfig | None = None
        self._accepted: tuple[types.LiveConnectConfig, llm.ToolContext] | None = None
        self._left_out: frozenset[str] = frozenset()
        self._withdrawn: frozenset[str] = frozenset()

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

    def _connect(
        self,
        handle: str | None,
        *,
        announces_history: bool,
        as_accepted: bool,
        without: frozenset[str],
    ) -> AbstractAsyncContextManager[AsyncSession]:
        """A connection that is set up from the options, tools and instructions as they are now.

        Args:
            handle: Resume from here; ``None`` for a fresh session.
            announces_history: Client content comes first, as history.
            as_accepted: Set it up as the last one that was accepted, if there is one.
            without: Functions that are not declared otherwise, by name.

        Raises:
            Exception: Whatever upstream raises for tools or options that it cannot express.
        """
        if as_accepted and self._accepted is not None:
            self._setup, self._declared = self._accepted
        else:
            self._setup, self._declared = self._settings(), self._tools.copy()
            if without:
                self._leave_out(self._setup, without)
        self._withdrawn = frozenset()
        self._session_resumption_handle = handle
        config = self._setup.model_copy()
        config.session_resumption = types.SessionResumptionConfig(handle=handle)
        if announces_history:
            config.history_config = types.HistoryConfig(initial_history_in_client_content=True)
        return self._client.aio.live.connect(model=self._opts.model, config=config)

    def _settings(self) -> types.LiveConnectConfig:
        """The setup as it is now, but for the handle and the history."""
        return self._build_connect_config().model_copy(update={"session_resumption": None})

    def _leave_out(self, setup: types.LiveConnectConfig, names: frozenset[str]) -> None:
        """Declare a setup's functions but for some."""
        for tool in setup.tools or ():
            if isinstance(tool, types.Tool) and tool.function_declarations:
                kept = [d for d in tool.function_declarations if d.name not in names]
                tool.function_declarations = kept or None
        setup.tools = [t for t in setup.tools or () if t != types.Tool()]
        functions = self._tools.function_tools
        kept_tools = [tool for name, tool in functions.items() if name not in names]
        self._declared = llm.ToolContext([*kept_tools, *self._tools.provider_tools])

    def _why_unusable(self) -> str | None:
        """Why no setup can be made of options, tools and instructions; ``None`` if one can."""
        try:
            self._settings()
        except Exception as e:
            return one_line(e)
        return None

    @property
    def _can_update_in_place(self) -> bool:
        """Whether the SDK can change tools and instructions of a connection (3.x)."""
        return hasattr(AsyncSession, "send_context_update")

    async def _update_in_place(self, connection: AsyncSession) -> None:
        """Send the tools and the instructions as they are now."""
        settings = self._settings()
        if self._declared is not None:
            # a call of one of them may be on its way
            self._withdrawn |= self._declared.function_tools.keys()
        self._declared = self._tools.copy()
        update: Any = connection
        await update.send_context_update(
            system_instruction=settings.system_instruction, tools=settings.tools or []
        )

    def _setup_accepted(self) -> None:
        """The server answered the setup."""
        if self._setup is not None and self._declared is not None:
            self._accepted = (self._setup, self._declared)

    @property
    def _is_new_setup(self) -> bool:
        """Whether the setup is another than the one that was accepted last."""
        return self._accepted is None or self._setup != self._accepted[0]

    @property
    def _new_functions(self) -> frozenset[str]:
        """Functions in the setup that are new or have changed since one was accepted."""
        declared = self._declared.function_tools if self._declared else {}
        accepted = self._accepted[1].function_tools if self._accepted else {}
        return frozenset(name for name, tool in declared.items() if accepted.get(name) != tool)

    @property
    def _functions_in_setup(self) -> tuple[tuple[str, ...], ...]:
        """Names of the functions in each entry of the setup's tools, in order."""
        tools = (self._setup.tools if self._setup else None) or ()
        declared = (getattr(tool, "function_declarations", None) or () for tool in tools)
        return tuple(tuple(each.name or "" for each in entry) for entry in declared)

    def _set_active(self, connection: AsyncSession | None) -> None:
        """Keep ``_active_session`` true to the facts: inherited code reads it."""
        self._active_session = connection

    async def _stop_main_task(self) -> None:
        """End ``_main_task``, which upstream's constructor starts, and wait until it has ended."""
        await utils.aio.cancel_and_wait(self._main_atask)

    async def _close_client(self) -> None:
        """Close the HTTP clients of the session; 1.6.5 leaves them to the garbage collector."""
        await self._client.aio.aclose()

    @property
    def _first_handle(self) -> str | None:
        """The resumption handle that the user supplied."""
        return self._session_resumption_handle

    @property
    def _refuses_calls(self) -> bool:
        """Whether ``tool_choice="none"`` is in force; the service has no such option."""
        return bool(self._opts.tool_choice == "none")

    @property
    def _tools_block(self) -> bool:
        """Whether the setup declares anything but NON_BLOCKING tools."""
        return bool(self._opts.tool_behavior != types.Behavior.NON_BLOCKING)

    @property
    def _can_announce_history(self) -> bool:
        """Whether the setup can say that client content comes first, as history; older versions
        of the SDK refuse that for Vertex AI."""
        return not self._opts.vertexai

    @property
    def _may_stay_silent(self) -> bool:
        """Whether the setup lets the model decide whether to answer (proactive audio)."""
        return bool(is_given(self._opts.proactivity) and self._opts.proactivity)

    @property
    def _takes_instructions_in_place(self) -> bool:
        """On Vertex AI a ``system`` turn replaces the instruction (documented)."""
        return bool(self._opts.vertexai)

    @property
    def _conn_options(self) -> Any:
        """Retry budget and interval."""
        return self._opts.conn_options

    def _set_instructions(self, instructions: str) -> bool:
        """Take a new instruction; ``False`` if it is the old one."""
        instructions = clean(instructions)
        if is_given(self._opts.instructions) and self._opts.instructions == instructions:
            return False
        self._opts.instructions = instructions
        return True

    def _declarable(self, tools: list[Any]) -> tuple[list[Any], ToolsLeftOut | None]:
        """The tools that can be declared, and news of those that cannot."""
        reasons: dict[str, str] = {}
        usable = []
        for tool in llm.ToolContext(tools).flatten():
            single = llm.ToolContext([tool])
            try:
                tools_config.create_tools_config(
                    single,
                    tool_behavior=self._opts.tool_behavior,
                    use_parameters_json_schema=False,
                )
            except Exception as e:
                name = next(iter(single.function_tools), type(tool).__name__)
                reasons[name] = one_line(e)
            else:
                usable.append(tool)
        known, self._left_out = self._left_out, frozenset(reasons)
        if self._left_out <= known:
            return usable, None
        return usable, ToolsLeftOut(names=tuple(reasons), reason=next(iter(reasons.values())))

    def _set_tools(self, tools: list[Any]) -> RestartCause | None:
        """Take new tools; what a new connection is needed for, ``None`` for nothing."""
        context = llm.ToolContext(tools)
        if self._tools == context:
            return None
        self._tools = context
        declared = self._declared
        if declared is None or declared.provider_tools != context.provider_tools:
            return RestartCause.TOOLS
        functions = declared.function_tools
        if any(functions.get(name) != tool for name, tool in context.function_tools.items()):
            return RestartCause.TOOLS
        return RestartCause.FEWER_TOOLS if self._removed_functions else None

    @property
    def _removed_functions(self) -> frozenset[str]:
        """Functions that the connection declares and that are not among the tools any more."""
        if self._declared is None:
            return frozenset()
        declared = self._withdrawn | self._declared.function_tools.keys()
        return frozenset(declared - self._tools.function_tools.keys())

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

    def _report_connected(self, seconds: float) -> None:
        """Emit LiveKit's metrics of a connection that took so many seconds to open."""
        self._report_connection_acquired(seconds)

    def _report_failure(self, error: Exception, *, recoverable: bool) -> None:
        """Emit upstream's error event."""
        self._emit_error(error, recoverable)

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


def one_line(error: BaseException) -> str:
    """What an exception says, in one line of at most 200 characters."""
    return " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())[:200]


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
