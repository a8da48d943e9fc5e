"""Closing a session: prompt, from any state, with nothing left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from livekit.agents import llm

from livekit_gemini_resilient import Outcome, RealtimeModel, ReportOutcome
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .direct import Direct, connected

SCRIPT = [Call("get_weather", {}, handle_first=True), Say("It is foggy.")]


@contextlib.asynccontextmanager
async def dialing(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A dial that the server does not answer."""
    async with server.holding_dials() as held:
        direct.session.update_options(voice="Kore")
        await held.reached()
        yield


@contextlib.asynccontextmanager
async def backing_off(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A dial that was refused, and the wait before the next."""
    async with server.refusing_dials() as refused:
        direct.session.update_options(voice="Kore")
        await refused.reached()
        yield


@contextlib.asynccontextmanager
async def settling(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A resumed connection on which an exchange is being closed."""
    await server.caller_says("What is the weather?")
    call = await direct.call()
    await server.drop(1011)
    await direct.answer(call, "foggy")
    await server.until(lambda: server.connections[-1].tool_responses, "the response that settles")
    yield


@contextlib.asynccontextmanager
async def in_a_call(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A tool that is running."""
    await server.caller_says("What is the weather?")
    await direct.call()
    yield


@contextlib.asynccontextmanager
async def saying(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A resumed connection that was told a result in words, and has not answered."""
    async with settling(server, direct):
        server.go_on_with([Say("It is foggy.", gate=Gate(), gate_after=0)])
        await server.until(lambda: server.knows("foggy"), "the result in words")
        yield


@contextlib.asynccontextmanager
async def speaking(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A reply that is being spoken."""
    server.go_on_with([Say("It is foggy.", gate=Gate(), gate_after=2)])
    await server.caller_says("What is the weather?")
    await direct.until(lambda: not direct.session._generation_completed, "speech")
    yield


@contextlib.asynccontextmanager
async def about_to_rotate(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A restart that waits for the end of a sentence."""
    async with speaking(server, direct):
        direct.session.update_options(voice="Kore")
        assert direct.session._conversation._rotation.requested
        yield


@contextlib.asynccontextmanager
async def leaving(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A connection that is being replaced, by a server that does not answer its closing."""
    async with server.holding_closes() as held:
        direct.session.update_options(voice="Kore")
        await held.reached()
        yield


@contextlib.asynccontextmanager
async def in_silence(server: GeminiLiveServer, direct: Direct) -> AsyncIterator[None]:
    """A server that reads and does not react."""
    await server.mute()
    yield


@pytest.mark.fault("E10")
@pytest.mark.parametrize("asked", [True, False], ids=["asked", "not asked"])
@pytest.mark.parametrize(
    ("state", "script"),
    [
        (dialing, []),
        (backing_off, []),
        (settling, SCRIPT[:1]),
        (saying, SCRIPT[:1]),
        (in_a_call, SCRIPT[:1]),
        (about_to_rotate, []),
        (leaving, []),
        (in_silence, []),
    ],
)
async def test_close_returns_from_any_state_and_leaves_nothing(
    state: Any, script: Any, asked: bool
) -> None:
    """No task, no timer, no socket, no client, no reply that is never decided; twice is once."""
    before = asyncio.all_tasks()
    async with GeminiLiveServer(script) as server:
        excused = {"get_weather": "the session closes before it is told"}
        async with connected(server, excused=excused) as direct, state(server, direct):
            client = direct.session._client.aio._api_client._async_httpx_client
            reply = direct.session.generate_reply() if asked else None
            await asyncio.wait_for(direct.session.aclose(), 5)
            await direct.session.aclose()
            assert client.is_closed
            if reply is not None:
                with pytest.raises(llm.RealtimeError):
                    await reply
        await server.until(lambda: all(c.closed for c in server.connections), "every close")
    left = {t for t in asyncio.all_tasks() - before if "gemini" in t.get_name()}
    assert left == set()


@pytest.mark.fault("E10")
@pytest.mark.parametrize("refused", [True, False], ids=["refused", "unanswered"])
async def test_close_returns_although_there_never_was_a_connection(refused: bool) -> None:
    """The first dial is under way, or was refused and waits to be repeated."""
    before = asyncio.all_tasks()
    async with GeminiLiveServer() as server:
        model = RealtimeModel(**server.model_options())
        dials = server.refusing_dials(code=503) if refused else server.holding_dials()
        async with dials as met:
            session = model.session()
            await met.reached()
            reply = session.generate_reply()
            await asyncio.wait_for(session.aclose(), 5)
            with pytest.raises(llm.RealtimeError):
                await reply
        await model.aclose()
        assert session._client.aio._api_client._async_httpx_client.is_closed
        await server.until(lambda: all(c.closed for c in server.connections), "every close")
    assert {t for t in asyncio.all_tasks() - before if "gemini" in t.get_name()} == set()


@pytest.mark.parametrize(
    ("lost", "outcome"), [(False, Outcome.REPLIED), (True, Outcome.REPLIED)], ids=["kept", "lost"]
)
async def test_each_result_ends_in_one_observable_outcome(lost: bool, outcome: Outcome) -> None:
    """``tool_result_settled`` says what became of it."""
    settled: asyncio.Queue[ReportOutcome] = asyncio.Queue()
    async with GeminiLiveServer(SCRIPT) as server, connected(server) as direct:
        direct.session.on("tool_result_settled", settled.put_nowait)
        await server.caller_says("What is the weather?")
        call = await direct.call()
        if lost:
            await server.drop(1011)
            await direct.until(lambda: direct.reconnected, "a reconnect")
        await direct.answer(call, "foggy")
        event = await asyncio.wait_for(settled.get(), 10)
        assert (event.call_id, event.outcome) == (call.call_id, outcome)
        assert settled.empty()


@pytest.mark.fault("E10")
async def test_a_close_that_is_cancelled_leaves_nothing_half_closed() -> None:
    """A caller that gives up waiting for the closing handshake, and one that closes once more."""
    gate = Gate()
    script = [Say("Never heard to the end.", gate=gate, gate_after=2)]
    async with GeminiLiveServer(script) as server, connected(server) as direct:
        opened: asyncio.Queue[llm.GenerationCreatedEvent] = asyncio.Queue()
        direct.session.on("generation_created", opened.put_nowait)
        await server.caller_says("Tell me a story.")
        generation = await asyncio.wait_for(opened.get(), 10)
        async with server.holding_closes() as held:
            closing = asyncio.create_task(direct.session.aclose())
            await held.reached()
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            await asyncio.wait_for(direct.session.aclose(), 10)
            assert not {t for t in asyncio.all_tasks() if "gemini" in t.get_name()}
            async for message in generation.message_stream:
                assert [text async for text in message.text_stream]
        gate.open()
