"""Recordings of Live traffic: how they are read, and what script a recording amounts to.

A recording is a YAML document with a list ``interactions``; each has a ``direction``, ``sent`` (by
the client) or ``received`` (from the service), and the frame under ``data``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .dialect import Message
from .profiles import Profile
from .script import CHUNK_SECONDS, Call, Calls, Say, Silence, Step

_NO_RECORDING = (
    "not a recording (expected YAML with a list 'interactions' of mappings with 'direction', sent "
    "or received, and the frame under 'data'; the first one sent)"
)


_THOUGHT = "Hmm."
"""Stands for thoughts that were counted and not sent, as on 3.8."""


class Exchange(NamedTuple):
    """Frames that the client sent in a row, and what the service sent before the next one."""

    sent: list[Message]
    received: list[Message]


class RecordingError(ValueError):
    """A file that cannot be read as a recording.

    Attributes:
        path: the file.
        why: what is the matter with it.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def load(path: Path) -> list[Exchange]:
    """Read a recording.

    Raises:
        RecordingError: there is no such file, it is no recording, or does not begin with a frame of
            the client.
    """
    exchanges: list[Exchange] = []
    for interaction in _interactions(path):
        if interaction["direction"] == "received":
            exchanges[-1].received.append(interaction["data"])
        elif exchanges and not exchanges[-1].received:
            exchanges[-1].sent.append(interaction["data"])
        else:
            exchanges.append(Exchange([interaction["data"]], []))
    return exchanges


def _interactions(path: Path) -> list[dict[str, Any]]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RecordingError(path, "no such file") from error
    except OSError as error:
        raise RecordingError(path, (error.strerror or str(error)).lower()) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecordingError(path, _NO_RECORDING) from error
    match document:
        case {"interactions": [{"direction": "sent"}, *_] as interactions} if all(
            map(_is_interaction, interactions)
        ):
            return list(interactions)
    raise RecordingError(path, _NO_RECORDING)


def _is_interaction(value: Any) -> bool:
    match value:
        case {"direction": "sent" | "received", "data": dict()}:
            return True
    return False


@dataclass(slots=True)
class _Heard:
    """What has been received since the last step."""

    words: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    chunks: int = 0

    def add(self, content: Message) -> None:
        self.words.append((content.get("outputTranscription") or {}).get("text", ""))
        for part in (content.get("modelTurn") or {}).get("parts", []):
            self.chunks += "inlineData" in part
            self.thoughts += [part["text"]] if part.get("thought") else []

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def thought(self) -> str:
        return "".join(self.thoughts)


def script_of(received: Iterable[Message], profile: Profile) -> list[Step]:
    """Return the steps that made the service send this.

    The empty turn after a tool call is no step where the profile has rounds of two turns.
    """
    steps: list[Step] = []
    heard, called = _Heard(), False
    for message in received:
        content: dict[str, Any] = message.get("serverContent") or {}
        heard.add(content)
        if "toolCall" in message:
            issued = message["toolCall"]["functionCalls"]
            batch = [Call(call["name"], call.get("args") or {}) for call in issued]
            steps.append(Calls(batch, say_first=heard.text, thought=heard.thought))
            heard, called = _Heard(), True
        if content.get("turnComplete"):
            if heard.text or heard.chunks:
                counted = "thoughtsTokenCount" in message.get("usageMetadata", {})
                unsent = _THOUGHT if counted and profile.thoughts == "counted" else ""
                thought = heard.thought or unsent
                seconds = heard.chunks * CHUNK_SECONDS
                steps.append(Say(heard.text, audio_seconds=seconds, thought=thought))
            elif not (called and profile.tool_round == "two_turns"):
                steps.append(Silence(usage="usageMetadata" in message))
            heard, called = _Heard(), False
    return steps
