"""Tools and instructions that change in place, where SDK and server can do that. Opt-in."""

from __future__ import annotations

import dataclasses

import pytest
from google.genai.live import AsyncSession
from livekit.plugins.google.tools import VertexRAGRetrieval

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.core.errors import SettingsRefused
from livekit_gemini_resilient.testing import PROFILES as SIMULATED
from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .direct import connected, get_time
from .stack import ANSWER, EVERY, WEATHER, connected_client, on_call

IN_PLACE = ResilienceOptions(tool_update="context_update")
KNOWN = hasattr(AsyncSession, "send_context_update")
"""Whether this SDK has the frame; without it the change is carried by a new connection."""

SCRIPT = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]


@pytest.mark.parametrize("profile", EVERY)
async def test_a_change_in_place_costs_no_connection(profile: str) -> None:
    """The tool that asked for it is answered, once, on the connection that called it."""
    async with (
        GeminiLiveServer(SCRIPT, profile=profile) as server,
        on_call(server, resilience=IN_PLACE) as call,
    ):
        call.in_tool = call.add_tool
        await server.caller_says("What is the weather in London?")
        await call.says(ANSWER)
        assert len(server.connections) == (1 if KNOWN else 2)
        assert server.connections[-1].declared_tools == {"get_weather", "book_table"}
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
        assert call.errors == []


@pytest.mark.parametrize("code", [1007, 1008])
@pytest.mark.parametrize("profile", EVERY)
async def test_a_server_that_refuses_it_gets_a_new_connection_and_is_remembered(
    profile: str, code: int
) -> None:
    """Nothing is lost, and it is not asked again."""
    picky = dataclasses.replace(SIMULATED[profile], context_update=code)
    async with (
        GeminiLiveServer(SCRIPT, profile=picky) as server,
        on_call(server, resilience=IN_PLACE) as call,
    ):
        call.in_tool = call.add_tool
        await server.caller_says("What is the weather in London?")
        await call.says(ANSWER)
        assert server.replies[-1].knew(WEATHER)
        assert call.runs == 1
        assert call.model._observed.behaviour.context_updates is not KNOWN
        await call.agent.update_tools([*call.agent.tools, get_time])
        await server.until(
            lambda: server.current and "get_time" in server.current.declared_tools, "the tool"
        )
        updates = [f for c in server.connections for f in c.frames if "context_update" in f]
        assert len(updates) == (1 if KNOWN else 0)
        await connected_client(call.realtime)
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")


async def test_a_change_that_the_sdk_cannot_express_is_an_error_that_says_so() -> None:
    """Nothing of the call is lost: what was accepted before goes on."""
    only_vertex = VertexRAGRetrieval(rag_resources=["projects/1/locations/a/ragCorpora/1"])
    async with (
        GeminiLiveServer([Say("Hello.")]) as server,
        connected(server, resilience=IN_PLACE) as direct,
    ):
        await direct.session.update_tools([get_time])
        await direct.session.update_tools([get_time, only_vertex])
        await direct.until(
            lambda: any(isinstance(e.error, SettingsRefused) for e in direct.errors), "the error"
        )
        await direct.until(lambda: server.current, "what was accepted before")
        await server.caller_says("Hello?")
        await server.replied()


async def test_it_is_off_by_default() -> None:
    """A new connection carries the change."""
    async with GeminiLiveServer(SCRIPT[2:]) as server, on_call(server) as call:
        await call.add_tool()
        await server.until(
            lambda: server.current and "book_table" in server.current.declared_tools, "the tool"
        )
        assert len(server.connections) == 2
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
