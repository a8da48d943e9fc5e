"""Patch 5: a connection that is lost in mid-conversation is replaced (faults E1 to E4)."""

from __future__ import annotations

import asyncio

from livekit.agents import APIConnectOptions

from livekit_gemini_resilient.testing import GeminiLiveServer, Say

from ..stack import OnCall
from .line import plain_call

SCRIPT = [Say("Hello."), Say("Goodbye.")]
QUICK = APIConnectOptions(max_retry=2, retry_interval=0.05)


async def goes_on(server: GeminiLiveServer, call: OnCall, *, fresh: bool) -> None:
    """The next connection that is accepted carries the conversation."""
    await server.until(
        lambda: server.current and server.current.number > 1, "a connection", call.patience
    )
    assert server.current is not None
    assert (server.current.resumed_from is None) is fresh
    await server.caller_says("Goodbye.")
    await call.says_within("Goodbye.")


async def greet(server: GeminiLiveServer, call: OnCall) -> None:
    """A turn, after which the session has a handle."""
    await server.caller_says("Hello?")
    await call.says("Hello.")
    await server.until(lambda: call.realtime.session_resumption_handle, "a handle")


async def test_one_failed_dial_in_mid_conversation_is_tried_again() -> None:
    """Only a first connection that fails says that the parameters are wrong."""
    async with (
        GeminiLiveServer(SCRIPT) as server,
        plain_call(server, conn_options=QUICK) as call,
    ):
        await greet(server, call)
        async with server.refusing_dials(times=1) as refused:
            await call.add_tool()
            await refused.reached()
            await goes_on(server, call, fresh=False)


async def test_refused_handle_is_dropped() -> None:
    """The next session starts afresh."""
    async with (
        GeminiLiveServer(SCRIPT) as server,
        plain_call(server, conn_options=QUICK) as call,
    ):
        await greet(server, call)
        await server.forget_handles()
        await call.add_tool()
        await goes_on(server, call, fresh=True)


async def test_first_1007_costs_the_handle_and_not_the_conversation() -> None:
    """It may have been the handle; only one without a handle is fatal."""
    async with (
        GeminiLiveServer(SCRIPT) as server,
        plain_call(server, conn_options=QUICK) as call,
    ):
        await greet(server, call)
        await server.drop(1007, "Request contains an invalid argument.")
        await goes_on(server, call, fresh=True)


async def test_connections_that_die_after_one_message_use_up_the_retries() -> None:
    """A message is no progress."""
    async with (
        GeminiLiveServer(strict=False) as server,
        plain_call(server, conn_options=QUICK) as call,
    ):
        for number in range(1, QUICK.max_retry + 2):
            connection = await server.connected(number)
            await server.send({"sessionResumptionUpdate": {}}, connection=connection)
            await server.drop(1011, connection=connection)
        await asyncio.wait([call.realtime._main_atask], timeout=call.patience)
        assert [error.recoverable for error in call.errors] == [True, True, False]
