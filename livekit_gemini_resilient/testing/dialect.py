"""Server messages in the form of one family (recorded, unless a line says otherwise)."""

from __future__ import annotations

import base64
import itertools
import math
import uuid
from collections.abc import Iterable, Iterator
from struct import pack
from typing import Any, Literal, NamedTuple, TypeAlias

from .profiles import Profile
from .records import IssuedCall
from .script import CHUNK_SECONDS, Say

Message: TypeAlias = dict[str, Any]

_RATE = 24_000
"""Output sample rate in Hz (documented)."""

_TOKENS_PER_SECOND = 25
"""Audio tokens (documented)."""

_TOKENS_PER_CALL = 5
"""Text tokens counted for a call; the recordings show 5 and 22."""

_WORDS_PER_PIECE = 3
"""Words in one piece of an input transcription. A choice."""

_SAMPLES = round(_RATE * CHUNK_SECONDS)
_TONE = base64.b64encode(
    b"".join(
        pack("<h", round(800 * math.sin(i * math.tau * 11 / _SAMPLES))) for i in range(_SAMPLES)
    )
).decode()
"""One chunk of a quiet tone of whole periods, so that chunks join without a click."""


def setup_complete(profile: Profile) -> Message:
    """Return the answer to the setup."""
    return {"setupComplete": {"sessionId": str(uuid.uuid4())} if profile.session_id else {}}


class Piece(NamedTuple):
    """One message of a speech."""

    message: Message
    text: str = ""
    """Words that it transcribes."""

    audio: bool = False


class Dialect:
    """Builds the messages of one connection.

    Args:
        profile: the family.
        transcribes: whether the setup asked for ``outputAudioTranscription``.
        writes: whether the setup asked for text in the place of audio.
    """

    def __init__(self, profile: Profile, *, transcribes: bool, writes: bool = False) -> None:
        self._profile = profile
        self._transcribes = transcribes and not writes
        self._writes = writes

    def opening(self) -> list[Message]:
        """Return what precedes the first content of a turn."""
        if self._profile.opening == "empty_content":
            return [*self.blank(), _content()]
        if self._profile.opening == "empty_transcription" and self._transcribes:
            return [self.empty_transcription()]
        return []

    def blank(self) -> list[Message]:
        """Return what comes before a message of the model's and says nothing."""
        return [{}] if self._profile.blank_messages else []

    @property
    def counts_thoughts(self) -> bool:
        """Whether thoughts appear in the usage."""
        return self._profile.thoughts != "none"

    def thought(self, summary: str) -> list[Message]:
        """Return a thought summary, a block of its own, if the family sends them."""
        if not summary or self._profile.thoughts != "sent":
            return []
        return [self._model_turn({"text": summary, "thought": True})]

    def speech(self, say: Say) -> Iterator[Piece]:
        """Yield the messages of a speech, its opening left out."""
        for message in self.thought(say.thought):
            yield Piece(message)
        yield from self.words(say.text, say.chunks)

    def words(self, text: str, chunks: int) -> Iterator[Piece]:
        """Yield the messages of so many words and audio chunks, both spread evenly.

        Where text was asked for, words are parts of the model's turn, and there is no audio
        (documented).
        """
        if self._writes:
            for part in _parts(text, max(1, chunks // 2)):
                yield Piece(self._model_turn({"text": part}), text=part)
            return
        if self._profile.speech == "transcript_first":
            if self._transcribes:
                yield from (_transcript(part) for part in _parts(text, 2))
                yield Piece(_content(outputTranscription={"finished": True}))
            parts = [] if self._transcribes else [text]
        else:
            # Fewer parts than chunks: audio goes on after the last word, as recorded.
            parts = _parts(text, max(1, chunks // 2))
        for index in range(max(chunks, len(parts))):
            part = parts[index] if index < len(parts) else ""
            yield from self._spoken(part, audio=index < chunks)

    def _spoken(self, part: str, *, audio: bool) -> Iterator[Piece]:
        turn = self._model_turn(
            {"inlineData": {"mimeType": self._profile.audio_mime, "data": _TONE}}
        )
        if not self._transcribes:
            # The words are known to whoever judges, though not sent.
            yield Piece(turn if audio else _content(), text=part, audio=audio)
        elif part and audio and self._profile.speech == "bundled":
            turn["serverContent"].update(outputTranscription={"text": part})
            yield Piece(turn, text=part, audio=True)
        else:
            if part:
                yield _transcript(part)
            if audio:
                yield Piece(turn, audio=True)

    def empty_transcription(self) -> Message:
        """Return an output transcription without fields."""
        return _content(outputTranscription={})

    def after_answer(self) -> list[Message]:
        """Return what ends the empty first turn of a tool round of two turns."""
        finished = [_content(outputTranscription={"finished": True})] if self._transcribes else []
        return [*finished, self.generation_complete()]

    def generation_complete(self) -> Message:
        """Return the end of a generation."""
        return _content(generationComplete=True)

    def interrupted(self) -> Message:
        """Return the notice of an interruption, a message of its own."""
        return _content(interrupted=True)

    def turn_complete(self, usage: Message | None, *, in_progress: bool) -> Message:
        """Return the end of a turn, with usage in the same message.

        Args:
            usage: the usage, if it is sent.
            in_progress: whether more follows unasked.
        """
        extra: Message = {"groundingMetadata": {}} if self._profile.grounding_metadata else {}
        if self._profile.interaction_status:
            extra["interactionStatus"] = "IN_PROGRESS" if in_progress else "IDLE"
        message = _content(turnComplete=True, **extra)
        return message if usage is None else {**message, "usageMetadata": usage}

    def usage(self, *, prompt: int, seconds: float, calls: int, thoughts: int) -> Message:
        """Return usage; counts of zero are left out, as in protobuf JSON.

        Args:
            prompt: tokens of the prompt.
            seconds: of audio in the turn.
            calls: number of function calls in the turn.
            thoughts: tokens of thoughts in the turn.
        """
        audio, text = round(seconds * _TOKENS_PER_SECOND), calls * _TOKENS_PER_CALL
        output = {
            f"{self._profile.usage}TokenCount": audio + text,
            f"{self._profile.usage}TokensDetails": [_count("TEXT", text), _count("AUDIO", audio)],
        }
        return {
            "promptTokenCount": prompt,
            **(output if audio + text else {}),
            "totalTokenCount": prompt + audio + text,
            "promptTokensDetails": [_count("TEXT", prompt)],
            **({"thoughtsTokenCount": thoughts} if thoughts else {}),
        }

    def new_call_id(self) -> str:
        """Return an id in the family's style; an empty one if its calls carry none."""
        if self._profile.call_ids == "none":
            return ""
        number = uuid.uuid4().int % 10**19
        if self._profile.call_ids == "uuid":
            return str(uuid.uuid4())
        return f"{'fc_' if self._profile.call_ids == 'fc_N' else 'function-call-'}{number:019d}"

    def deliveries(
        self, calls: Iterable[IssuedCall], how: Literal["once", "twice", "two_shapes"]
    ) -> list[Message]:
        """Return the messages that issue the calls; see `Call`."""
        issued = [
            {"name": call.name, "args": call.args, **({"id": call.id} if call.id else {})}
            for call in calls
        ]
        message = {"toolCall": {"functionCalls": issued}}
        if how == "twice":
            return [message, message]
        if how == "two_shapes":
            return [self._model_turn(*({"functionCall": call} for call in issued)), message]
        return [message]

    def cancellation(self, calls: Iterable[IssuedCall]) -> Message:
        """Return the message that takes the calls back (documented); it names those with an id."""
        return {"toolCallCancellation": {"ids": [call.id for call in calls if call.id]}}

    def heard(self, text: str) -> list[Message]:
        """Return the caller's words as transcription; none is marked finished."""
        words = text.split()
        if self._profile.hears == "at_once":
            pieces = [" ".join(words)] if words else []
        else:
            starts = range(0, len(words), _WORDS_PER_PIECE)
            pieces = [" " + " ".join(words[i : i + _WORDS_PER_PIECE]) for i in starts]
        return [_content(inputTranscription={"text": piece}) for piece in pieces]

    def voice_activity(self, change: Literal["START", "END"]) -> list[Message]:
        """Return what says that the caller begins to speak, or has finished."""
        activity = {"voiceActivity": {"type": f"ACTIVITY_{change}", "audioOffset": "0s"}}
        if self._profile.voice_activity == "never":
            return []
        return [activity if self._profile.voice_activity == "alone" else {**_content(), **activity}]

    def handle(self, handle: str) -> Message:
        """Return a usable handle."""
        return {"sessionResumptionUpdate": {"newHandle": handle, "resumable": True}}

    def not_resumable(self) -> list[Message]:
        """Return what says that there is no usable handle for now; see the profile."""
        if self._profile.not_resumable == "never":
            return []
        flag = {"resumable": False} if self._profile.not_resumable == "flag" else {}
        return [{"sessionResumptionUpdate": flag}]

    def _model_turn(self, *parts: Message) -> Message:
        role = {"role": "model"} if self._profile.model_role else {}
        return _content(modelTurn={**role, "parts": list(parts)})


def _content(**fields: Any) -> Message:
    return {"serverContent": fields}


def _transcript(text: str) -> Piece:
    return Piece(_content(outputTranscription={"text": text}), text=text)


def _count(modality: str, tokens: int) -> Message:
    return {"modality": modality, **({"tokenCount": tokens} if tokens else {})}


def _parts(text: str, most: int) -> list[str]:
    """Split at words into at most so many parts, which joined give ``text`` again."""
    words = [word if i == 0 else f" {word}" for i, word in enumerate(text.split(" "))]
    count = min(most, len(words)) if text else 0
    edges = [round(i * len(words) / count) for i in range(count + 1)] if count else []
    return ["".join(words[a:b]) for a, b in itertools.pairwise(edges)]
