"""Between the SDK's messages and the core's events, in both directions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from google.genai import errors, types
from google.genai.live import AsyncSession
from websockets.exceptions import ConnectionClosed, InvalidStatus

from .context import canonical
from .core.effects import (
    SendContent,
    SendInput,
    SendText,
    SendToolResponse,
    UpdateContext,
)
from .core.events import ServerFrame, ToolCall, Turn
from .core.wording import CALLS_REFUSED
from .upstream import PluginSession, one_line

_ABNORMAL = 1006
"""The SDK reports an abort, a local keepalive failure and a refused frame size as this."""


def read(message: types.LiveServerMessage, session: PluginSession, connection: int) -> ServerFrame:
    """One server message in the core's terms."""
    content = message.server_content or types.LiveServerContent()
    words = content.input_transcription
    update = message.session_resumption_update
    cancellation = message.tool_call_cancellation
    return ServerFrame(
        connection=connection,
        audio=_audio(content),
        text=session._transcript_of(content),
        user_words=(words.text or "") if words else "",
        at_work=bool(content.model_turn and content.model_turn.parts)
        or content.output_transcription is not None,
        calls=_calls(message.tool_call, session),
        calls_refused=CALLS_REFUSED if session._refuses_calls else None,
        removed_functions=session._removed_functions,
        cancelled=tuple(cancellation.ids or ()) if cancellation else (),
        cancels_unnamed=cancellation is not None and not cancellation.ids,
        caller_speaks=_caller_speaks(message.voice_activity),
        interrupted=bool(content.interrupted),
        generation_complete=bool(content.generation_complete),
        turn_complete=bool(content.turn_complete),
        # older releases of the SDK leave the field out
        more_follows=getattr(content, "interaction_status", None) == "IN_PROGRESS",
        handle=update.new_handle if update and update.resumable and update.new_handle else None,
        time_left=_seconds(message.go_away.time_left) if message.go_away else None,
        usage=message.usage_metadata,
    )


def _caller_speaks(activity: types.VoiceActivity | None) -> bool | None:
    kind = activity.voice_activity_type if activity else None
    if kind not in (types.VoiceActivityType.ACTIVITY_START, types.VoiceActivityType.ACTIVITY_END):
        return None
    return kind is types.VoiceActivityType.ACTIVITY_START


def _audio(content: types.LiveServerContent) -> tuple[bytes, ...]:
    parts = (content.model_turn.parts or []) if content.model_turn else []
    blobs = [part.inline_data for part in parts if part.inline_data]
    return tuple(blob.data for blob in blobs if isinstance(blob.data, bytes) and blob.data)


def _calls(
    tool_call: types.LiveServerToolCall | None, session: PluginSession
) -> tuple[ToolCall, ...]:
    calls = (tool_call.function_calls or []) if tool_call else []
    return tuple(
        ToolCall(
            call_id=call.id or session._made_up_id(),
            name=call.name or "",
            arguments=canonical(call.args or {}),
            has_id=bool(call.id),
        )
        for call in calls
    )


def _seconds(duration: str | None) -> float:
    """A protobuf duration such as ``"50s"``; ``math.inf`` where it is missing or unreadable."""
    try:
        seconds = float((duration or "").rstrip("s"))
    except ValueError:
        return math.inf
    return math.inf if math.isnan(seconds) else max(0.0, seconds)


def failure_code(error: BaseException) -> int | None:
    """Close code or HTTP status behind an error of the SDK, ``None`` if there is none."""
    code: object
    if isinstance(error, errors.APIError):
        code = error.code
    elif isinstance(error, ConnectionClosed):
        code = error.rcvd.code if error.rcvd else None
    elif isinstance(error, InvalidStatus):
        code = error.response.status_code
    else:
        return None
    return code if isinstance(code, int) and code != _ABNORMAL else None


def failure_reason(error: BaseException) -> str:
    """What the server or the network said, in one line of at most 200 characters."""
    if isinstance(error, errors.APIError):
        said = str(error.details or error.message or "")
    elif isinstance(error, ConnectionClosed):
        said = error.rcvd.reason if error.rcvd else ""
    elif isinstance(error, InvalidStatus):
        said = f"HTTP status {error.response.status_code}"
    else:
        return one_line(error)
    return " ".join(said.split())[:200]


def cannot_be_expressed(error: BaseException) -> bool:
    """Whether the SDK refused, before it dialed, to make a setup of the configuration.

    Exactly these types: what it raises for a certificate or for an answer of the wrong form derives
    from them. For an answer that is no JSON it raises a plain one in the place of the decoder's.
    """
    unread = isinstance(error.__context__, ValueError)
    return type(error) in (ValueError, TypeError) and not unread


_FRAME_LIMIT = 256 * 1024
"""Bytes of client content in one frame. The service's own limit is not documented; the SDK takes
no frame of more than 1 MiB itself, and a history of 2,000 messages has half of that."""

_ESCAPED = 12
"""Bytes that one character may take in JSON that is ASCII."""

Frame = SendToolResponse | SendContent | SendText | SendInput | UpdateContext
"""What is written to a connection."""


async def write(frame: Frame, connection: AsyncSession, session: PluginSession) -> None:
    """Write one frame; returns when the socket has taken it."""
    match frame:
        case SendToolResponse(results=results):
            await connection.send_tool_response(
                function_responses=session._function_responses(results)
            )
        case SendContent(turns=turns, turn_complete=turn_complete):
            *earlier, last = _frames(turns)
            for content in earlier:
                await connection.send_client_content(turns=content, turn_complete=False)
            await connection.send_client_content(turns=last or None, turn_complete=turn_complete)
        case SendText(text=text):
            await connection.send_realtime_input(text=text)
        case SendInput(piece=piece):
            await _write_input(piece.payload, connection)
        case UpdateContext():
            await session._update_in_place(connection)


def _frames(turns: Iterable[Turn]) -> list[list[Any]]:
    """Turns in frames of a bounded size; a turn that does not fit goes on in the next one."""
    frames: list[list[Any]] = [[]]
    size = 0
    for turn in turns:
        content: types.Content | None = None
        for part in chain.from_iterable(map(_pieces, turn.parts)):
            more = _size(part)
            if size and size + more > _FRAME_LIMIT:
                frames.append([])
                size, content = 0, None
            size += more
            if content is None:
                content = types.Content(role=turn.role, parts=[])
                frames[-1].append(content)
            content.parts.append(part)  # type: ignore[union-attr]
    return frames


def _pieces(part: Any) -> Iterator[types.Part]:
    """Text in pieces that fit into a frame; a picture cannot be taken apart."""
    if not isinstance(part, str):
        yield part
        return
    step = _FRAME_LIMIT // _ESCAPED
    if len(part) <= step or len(json.dumps(part)) <= _FRAME_LIMIT:
        yield types.Part(text=part)
        return
    for at in range(0, len(part), step):
        yield types.Part(text=part[at : at + step])


def _size(part: types.Part) -> int:
    """Bytes on the wire: the SDK writes JSON that is ASCII, and pictures in base64."""
    picture = part.inline_data.data if part.inline_data else None
    return len(json.dumps(part.text or "")) + len(picture or b"") * 4 // 3


async def _write_input(payload: Any, connection: AsyncSession) -> None:
    for name in ("audio", "video", "text", "activity_start", "activity_end", "audio_stream_end"):
        value = getattr(payload, name, None)
        if value is not None:
            await connection.send_realtime_input(**{name: value})
