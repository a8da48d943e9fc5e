"""Patch 4: a call without an id is answered on the Gemini API as well (fault A11)."""

from __future__ import annotations

import asyncio

from livekit_gemini_resilient.testing import GeminiLiveServer, Say

from ..stack import WEATHER
from .line import plain_call


async def test_answer_to_a_call_without_an_id_is_sent_and_costs_no_connection() -> None:
    """The SDK refuses a response without an id, so the session must not try to send one.

    What the Gemini API makes of an id that it did not issue is not known; the simulator takes no
    notice of it.
    """
    async with GeminiLiveServer([Say("Hello.")]) as server, plain_call(server) as call:
        function_call = {"name": "get_weather", "args": {"city": "London"}}
        await server.send({"toolCall": {"functionCalls": [function_call]}})
        await asyncio.wait_for(call.tool_started.wait(), 10)
        await server.until(lambda: server.tool_responses, "an answer", call.patience)
        await server.send({"serverContent": {"turnComplete": True}})
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        assert WEATHER in str(server.tool_responses[0].response)
        assert len(server.connections) == 1
