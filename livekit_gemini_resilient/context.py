"""From LiveKit's chat context to the core's terms."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

from google.genai import types
from livekit.agents import llm

from .core.events import HistoryItem, ItemKind, ToolCall, ToolResult

logger = logging.getLogger("livekit.plugins.google.resilient")


def history(chat_ctx: llm.ChatContext, *, silent: bool = False) -> Iterator[HistoryItem]:
    """The items of a chat context that the core knows, oldest first; the others are left out.

    Args:
        chat_ctx: The chat context.
        silent: No result asks for a reply.
    """
    for item in chat_ctx.items:
        if item.type == "message" and item.role in ("user", "assistant"):
            yield message(item)
        elif item.type == "function_call":
            call = ToolCall(
                call_id=item.call_id, name=item.name, arguments=canonical(item.arguments)
            )
            yield HistoryItem(item_id=item.id, kind=ItemKind.CALL, call=call)
        elif item.type == "function_call_output":
            result = ToolResult(
                call_id=item.call_id,
                name=item.name,
                output=item.output,
                is_error=item.is_error,
                reply_required=not silent and getattr(item, "reply_required", True),
            )
            yield HistoryItem(item_id=item.id, kind=ItemKind.OUTPUT, result=result)


def message(item: llm.ChatMessage) -> HistoryItem:
    """What the caller or the model said."""
    role = "user" if item.role == "user" else "model"
    return HistoryItem(item_id=item.id, kind=ItemKind.MESSAGE, role=role, parts=_parts(item))


def _parts(message: llm.ChatMessage) -> tuple[object, ...]:
    parts: list[object] = []
    for content in message.content:
        if isinstance(content, str):
            parts += [content] if content.strip() else []
            continue
        if isinstance(content, llm.AudioContent):
            parts += [content.transcript] if (content.transcript or "").strip() else []
            continue
        try:
            parts += _converted(content)
        except Exception as e:
            # an image of an unknown kind, or the extra that encodes it is not installed; the rest
            # of the context holds what the model waits for
            logger.warning(
                "a part of a message cannot be told to the model; it is left out",
                extra={"item_id": message.id, "error": type(e).__name__},
            )
    return tuple(parts)


def _converted(content: Any) -> list[object]:
    message = llm.ChatMessage(role="user", content=[content])
    turns, _ = llm.ChatContext([message]).to_provider_format(
        format="google", inject_dummy_user_message=False
    )
    parts = [p for turn in turns for p in types.Content.model_validate(turn).parts or []]
    if any(part.file_data for part in parts):
        # the Live API documents no files by their address
        raise ValueError("a picture by its address")
    return [part.text or part for part in parts]


def canonical(arguments: Any) -> str:
    """Arguments as JSON text with sorted keys; text that is not JSON stays as it is."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return str(arguments)
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
