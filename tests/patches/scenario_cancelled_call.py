"""Patch 3: a call that the server cancelled is not answered (fault A10)."""

from __future__ import annotations

import asyncio

import pytest

from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .line import plain_call

PROFILES = ["2.5-native-audio", "3.1-flash-live"]


@pytest.mark.parametrize("profile", PROFILES)
async def test_cancelled_call_is_not_answered_although_its_tool_returns(profile: str) -> None:
    """The conversation goes on, and nothing is sent for the id."""
    script = [Call("get_weather", {"city": "London"}), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        plain_call(server) as call,
    ):
        await call.ask_and_hold()
        await server.cancel_calls("get_weather")
        call.tool_may_return.set()
        await asyncio.wait_for(call.arriving.wait(), 10)
        await server.caller_says("Never mind, goodbye.")
        await call.says("Goodbye.")
        assert server.tool_responses == []
