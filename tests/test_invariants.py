"""What is checked at the end of every test can fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.genai import types

from livekit_gemini_resilient import Outcome, ReportOutcome
from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .direct import Direct, connected
from .stack import WEATHER

SCRIPT = [Call("get_weather"), Say("It is foggy.")]


async def told_twice(server: GeminiLiveServer, direct: Direct) -> None:
    """Put the result before the model once more, behind the session's back."""
    again = types.Content(role="user", parts=[types.Part(text=f"It returned: {WEATHER}")])
    await direct.session._active_session.send_client_content(turns=again, turn_complete=True)
    await server.replied(2)


async def settled_twice(_: GeminiLiveServer, direct: Direct) -> None:
    """Report an outcome once more."""
    [call] = [i for i in direct.session.chat_ctx.items if i.type == "function_call"]
    report = ReportOutcome(call_id=call.call_id, outcome=Outcome.KNOWN)
    direct.session.emit("tool_result_settled", report)


@pytest.mark.parametrize(
    ("misdeed", "script", "fault"),
    [
        (told_twice, [*SCRIPT, Say("It is foggy.")], "2 completed replies to 'foggy"),
        (settled_twice, SCRIPT, "1 results of .*, 2 outcomes"),
    ],
)
async def test_what_is_done_twice_fails_the_test(misdeed: Any, script: Any, fault: str) -> None:
    """One completed reply and one outcome for each result."""

    async def misbehaves() -> None:
        async with GeminiLiveServer(script) as server, connected(server) as direct:
            await server.caller_says("What is the weather?")
            await direct.answer(await direct.call(), WEATHER)
            await server.replied()
            await misdeed(server, direct)

    with pytest.raises(AssertionError, match=fault):
        await misbehaves()


async def test_a_task_that_is_left_fails_the_test() -> None:
    """It is named."""
    stray: asyncio.Task[None] | None = None
    with pytest.raises(AssertionError, match="a task is left: stray"):
        async with GeminiLiveServer() as server, connected(server):
            stray = asyncio.create_task(asyncio.sleep(60), name="stray")
    assert stray is not None
    stray.cancel()


async def test_a_result_that_is_lost_fails_the_test_unless_that_is_excused() -> None:
    """The excuse names the function, and says why."""

    async def closes_too_early(**excused: str) -> None:
        async with GeminiLiveServer(SCRIPT[:1]) as server, connected(server, excused=excused) as d:
            await server.caller_says("What is the weather?")
            call = await d.call()
            async with server.holding_dials() as held:
                await server.drop(1011)
                await held.reached()
                await d.answer(call, WEATHER)
                await d.session.aclose()

    with pytest.raises(AssertionError, match="get_weather ended as undelivered"):
        await closes_too_early()
    await closes_too_early(get_weather="the session is closed first")
