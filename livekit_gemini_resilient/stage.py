"""What the framework sees and hears: generations, transcripts, and who is speaking."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

from livekit.agents import llm

from .core.effects import (
    Effect,
    EndAudio,
    EndGeneration,
    OpenGeneration,
    PushAudio,
    PushCall,
    PushText,
    ReportSpeechStarted,
    ReportSpeechStopped,
    ReportUsage,
    Transcribe,
)
from .upstream import (
    Generation,
    PluginSession,
    audio_frame,
    mark_first_token,
    stamps_words,
    wall_clock,
)

Skipped = Callable[[int], None]
"""Told the number of a generation that nobody took."""

Answer = Callable[[int, llm.GenerationCreatedEvent], bool]
"""Hands a generation to the ``generate_reply`` with that number; whether anyone waited for it."""


class _Stream:
    """A stream of an announced generation, apart from the channel that the session writes to."""

    def __init__(self, channel: AsyncIterable[Any]) -> None:
        self._channel = channel

    def __aiter__(self) -> AsyncIterator[Any]:
        return aiter(self._channel)


class Stage:
    """Shows the core's effects to LiveKit, in the events of its realtime sessions.

    Args:
        session: The session that emits the events and owns the chat context.
        answer: Called with each generation that a ``generate_reply`` asked for.
        skipped: Called with each generation that nobody took.
    """

    def __init__(self, session: PluginSession, answer: Answer, skipped: Skipped) -> None:
        self._session = session
        self._answer = answer
        self._skipped = skipped
        self._open: dict[int, Generation] = {}
        self._newest: Generation | None = None
        self._words_started: dict[str, float] = {}
        self._last_words = ""

    def show(self, effect: Effect) -> None:
        """Carry out one effect; effects of other kinds are not for the stage."""
        match effect:
            case OpenGeneration():
                self._open_generation(effect)
            case PushAudio(generation=number, data=data):
                mark_first_token(self._open[number])
                if not self._open[number].audio_ch.closed:
                    self._open[number].audio_ch.send_nowait(audio_frame(data))
            case PushText(generation=number, text=text):
                self._open[number].push_text(text)
            case PushCall():
                self._push_call(effect)
            case EndAudio(generation=number):
                self._session._end_audio(self._open[number])
            case EndGeneration(generation=number, interrupted=interrupted):
                self._session._close_generation(self._open.pop(number), interrupted=interrupted)
            case Transcribe():
                self._transcribe(effect)
            case ReportSpeechStarted():
                self._session.emit("input_speech_started", llm.InputSpeechStartedEvent())
            case ReportSpeechStopped():
                stopped = llm.InputSpeechStoppedEvent(user_transcription_enabled=False)
                self._session.emit("input_speech_stopped", stopped)
            case ReportUsage(usage=usage):
                # tokens are paid for, also where no generation was shown yet
                self._newest = self._newest or self._session._new_generation("", "")
                self._session._report_usage(self._newest, usage)

    def clear(self) -> None:
        """End whatever is open: the conversation is over."""
        while self._open:
            _, generation = self._open.popitem()
            self._session._close_generation(generation, interrupted=True)

    def _open_generation(self, effect: OpenGeneration) -> None:
        # the caller spoke before the model, also where both are heard of in one message; words
        # may still trail the last message, and none before it
        last = {i: at for i, at in self._words_started.items() if i == self._last_words}
        self._words_started = {**last, effect.input_id: wall_clock()}
        generation = self._session._new_generation(effect.response_id, effect.input_id)
        self._open[effect.generation] = self._newest = generation
        speaks = self._session.realtime_model.capabilities.audio_output
        modalities: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        modalities.set_result(["audio", "text"] if speaks else ["text"])
        if not speaks:
            generation.audio_ch.close()
        generation.message_ch.send_nowait(
            llm.MessageGeneration(
                message_id=effect.response_id,
                text_stream=generation.text_ch,
                audio_stream=generation.audio_ch,
                modalities=modalities,
            )
        )
        if not self._announce(effect, generation):
            self._skipped(effect.generation)

    def _announce(self, effect: OpenGeneration, generation: Generation) -> bool:
        """Announce a generation; whether anybody took it.

        An activity of LiveKit that is being drained or paused lets go of the event, and nothing
        else tells that it did: nobody holds the event or one of its streams any more. CPython
        frees them at once; where that is not so, or a listener keeps them, they count as taken.
        """
        messages, functions = _Stream(generation.message_ch), _Stream(generation.function_ch)
        created = llm.GenerationCreatedEvent(
            message_stream=messages,
            function_stream=functions,
            user_initiated=effect.request is not None,
            response_id=effect.response_id,
        )
        held: list[weakref.ref[Any]] = [weakref.ref(o) for o in (created, messages, functions)]
        if effect.request is not None and not self._answer(effect.request, created):
            created.user_initiated = False
        self._session.emit("generation_created", created)
        del created, messages, functions
        return any(reference() is not None for reference in held)

    def _push_call(self, effect: PushCall) -> None:
        call = llm.FunctionCall(
            call_id=effect.call.call_id,
            name=effect.call.name,
            arguments=effect.call.arguments,
        )
        self._session._record(call)
        self._open[effect.generation].function_ch.send_nowait(call)

    def _transcribe(self, effect: Transcribe) -> None:
        self._last_words = effect.item_id
        started_at = self._words_started.setdefault(effect.item_id, wall_clock())
        event = llm.InputTranscriptionCompleted(
            item_id=effect.item_id, transcript=effect.text, is_final=effect.is_final
        )
        # newer agents place the caller's message where it was spoken
        if stamps_words():
            event.turn_started_at = started_at
        self._session.emit("input_audio_transcription_completed", event)
        if effect.is_final:
            self._session._record(
                llm.ChatMessage(
                    id=effect.item_id, role="user", content=[effect.text], created_at=started_at
                )
            )
