"""Whatever a chat context holds, no server is told what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import llm

from livekit_gemini_resilient.testing import Connection, GeminiLiveServer, Say

from .direct import connected
from .stack import EVERY, on_call, ours_and_plain

PICTURE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

FRAME_LIMIT = 512 * 1024
"""Bytes. Half of what the SDK takes in itself."""


def strange() -> llm.ChatContext:
    """Everything that a context may hold beside words of the caller and the model."""
    context = llm.ChatContext.empty()
    silence = rtc.AudioFrame(bytes(320), 16000, 1, 160)
    said: list[tuple[Any, Any]] = [
        ("assistant", "Welcome."),
        ("system", "Be brief."),
        ("developer", "Be kind."),
        ("user", ""),
        ("user", "  "),
        ("user", []),
        ("user", [llm.ImageContent(image=PICTURE)]),
        ("user", [llm.ImageContent(image="https://example.com/picture.png")]),
        ("user", ["Look:", llm.ImageContent(image="data:image/tiff;base64,AAAA")]),
        ("user", [llm.AudioContent(frame=[silence], transcript="These words were recorded.")]),
        ("user", [llm.AudioContent(frame=[silence])]),
        ("assistant", "I see."),
        ("assistant", "And further?"),
        ("user", "Nul\x00 here."),
    ]
    for role, content in said:
        context.items.append(
            llm.ChatMessage(role=role, content=[content] if isinstance(content, str) else content)
        )
    context.items.append(llm.AgentHandoff(old_agent_id="a", new_agent_id="b"))
    context.items.append(llm.AgentConfigUpdate(instructions="Be curt."))
    return context


def told(connection: Connection) -> list[tuple[str, str]]:
    """Who is said to have said what; pictures are no text."""
    return [(entry.kind, entry.text.strip()) for entry in connection.context]


@pytest.mark.fault("F7")
@ours_and_plain(on=EVERY)
async def test_what_a_server_refuses_is_left_out_and_the_rest_is_told_in_order(
    profile: str, plain: bool
) -> None:
    """Instructions, hand-offs, addresses of pictures, control characters and empty messages would
    close the connection, or tell the model what nobody said."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server, plain=plain, chat_ctx=strange()) as call,
    ):
        await server.until(lambda: server.knows("here."), "the history", call.patience)
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        (only,) = server.connections
        assert told(only) == [
            ("model", "Welcome."),
            ("user", ""),
            ("user", "Look:"),
            ("user", "These words were recorded."),
            ("model", "I see."),
            ("model", "And further?"),
            ("user", "Nul here."),
            ("user", "Hello?"),
            ("model", "Hello."),
        ]
        parts = [
            part
            for frame in only.frames
            for turn in frame.get("client_content", {}).get("turns", [])
            for part in turn["parts"]
        ]
        assert sum("inline_data" in part for part in parts) == 1
        assert all(part.keys() <= {"text", "inline_data"} for part in parts)
        assert call.errors == []


@pytest.mark.fault("F7")
@pytest.mark.parametrize("profile", EVERY)
async def test_lone_surrogates_and_content_of_an_unknown_kind_are_no_text(profile: str) -> None:
    """Protobuf strings cannot hold the former; the latter comes with a newer LiveKit."""
    context = llm.ChatContext.empty()
    content = ["A lone surrogate \ud800 here.", object()]
    context.items.append(
        llm.ChatMessage.model_construct(id="item_1", role="user", content=content, created_at=0.0)
    )
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        connected(server, chat_ctx=context) as direct,
    ):
        await server.until(lambda: server.knows("A lone surrogate ? here."), "the history")
        await server.caller_says("Hello?")
        await server.replied()
        assert told(server.connections[0])[0] == ("user", "A lone surrogate ? here.")
        assert direct.errors == []


@pytest.mark.fault("F7")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_history_of_two_thousand_messages_is_told_once_in_frames_of_bounded_size(
    profile: str,
) -> None:
    """One of them is larger than a frame, and in a script that JSON writes with six bytes each."""
    context = llm.ChatContext.empty()
    texts = [f"Message {number} of a long conversation. " * 6 for number in range(2000)]
    texts[1000] = "Fog, " * 100 + "\u9727" * 100_000
    for number, text in enumerate(texts):
        context.add_message(role="assistant" if number % 2 else "user", content=text)
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        connected(server, chat_ctx=context) as direct,
    ):
        last = texts[-2]
        await server.until(lambda: server.knows(last), "the history")
        await server.caller_says("Hello?")
        await server.replied()
        (only,) = server.connections
        assert "".join(entry.text for entry in only.context) == "".join(
            [*texts, "Hello?", "Hello."]
        )
        sizes = [len(json.dumps(frame)) for frame in only.frames]
        assert max(sizes) < FRAME_LIMIT
        assert direct.errors == []
