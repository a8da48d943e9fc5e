"""``generate_reply`` works with every server, whatever its model is called."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents import llm

from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .stack import PROFILES, WEATHER, on_call, ours_and_plain

NAMES = ["gemini-3.1-flash-live-preview", "gemini-3.8-live", "gemini-live-2.5-flash-native-audio"]


@pytest.mark.fault("C1")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("instructions", [None, "Greet the caller."])
async def test_generate_reply_works_under_any_model_name(
    profile: str, name: str, instructions: str | None
) -> None:
    """A reply is asked for in a way that no recorded family refuses, by no model's name."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server, model=name) as call,
    ):
        options = {} if instructions is None else {"instructions": instructions}
        call.session.generate_reply(**options)
        await call.says("Hello.")


@pytest.mark.fault("C1")
@ours_and_plain(plain_survives=("1.8.3", "1.8.9"))
async def test_generate_reply_is_not_refused_for_newer_models(profile: str, plain: bool) -> None:
    """1.6.5 refuses by the model's name; we do not."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server, plain=plain, model="gemini-3.1-flash-live-preview") as call,
    ):
        call.session.generate_reply(instructions="Greet the caller.")
        await call.says_within("Hello.")


@pytest.mark.parametrize("profile", PROFILES)
async def test_typed_input_is_answered_once(profile: str) -> None:
    """Text input goes out with its request, as one turn of the caller."""
    async with (
        GeminiLiveServer([Say("Hello, Ada.")], profile=profile) as server,
        on_call(server) as call,
    ):
        call.session.generate_reply(user_input="My name is Ada.")
        await call.says("Hello, Ada.")
        assert server.replies[0].knew("My name is Ada.")
        assert server.times_told("My name is Ada.") == 1


@pytest.mark.fault("C2")
@pytest.mark.parametrize("profile", PROFILES)
async def test_reply_that_is_asked_for_during_a_reconnect_comes_on_the_new_connection(
    profile: str,
) -> None:
    """A queued request survives the replacement of the connection."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server) as call,
    ):
        async with server.holding_dials() as held:
            await call.add_tool()
            await held.reached()
            call.session.generate_reply(instructions="Greet the caller.")
            await asyncio.sleep(0)
        await call.says("Hello.")
        assert server.replies[0].connection == 2


@pytest.mark.fault("C3")
@ours_and_plain()
async def test_reply_that_was_asked_for_before_a_drop_is_asked_for_again(
    profile: str, plain: bool
) -> None:
    """A request that was written and not begun is asked once more on the next connection."""
    gate = Gate()
    script = [Say("Never heard.", gate=gate, gate_after=0), Say("Hello.")]
    async with (
        GeminiLiveServer(script, profile=profile, strict=False) as server,
        on_call(server, plain=plain) as call,
    ):
        call.session.generate_reply(instructions="Greet the caller.")
        await gate.reached()
        await server.drop(1011)
        await call.says_within("Hello.")
        gate.open()


@pytest.mark.fault("C6")
async def test_reply_inside_a_tool_fails_at_once_and_says_what_to_do() -> None:
    """LiveKit withholds the result while a reply is pending; a blocking model waits for it."""
    failures: list[llm.RealtimeError] = []
    script = [Call("get_weather", {"city": "London"}), Say("It is foggy.")]
    async with GeminiLiveServer(script) as server, on_call(server) as call:

        async def in_tool() -> None:
            with pytest.raises(llm.RealtimeError, match="return from the tool first") as caught:
                await call.realtime.generate_reply(instructions="Say that you are looking.")
            failures.append(caught.value)

        call.in_tool = in_tool
        await server.caller_says("What is the weather in London?")
        await call.says("It is foggy.")
        assert len(failures) == 1
        assert server.replies[0].knew(WEATHER)


@pytest.mark.fault("C7")
async def test_reply_that_is_pending_at_close_fails_with_a_realtime_error() -> None:
    """Never with a bare ``CancelledError``."""
    gate = Gate()
    script = [Say("Too late.", gate=gate, gate_after=0)]
    async with GeminiLiveServer(script, strict=False) as server, on_call(server) as call:
        pending = call.realtime.generate_reply()
        await gate.reached()
        await call.realtime.aclose()
        with pytest.raises(llm.RealtimeError, match="closed"):
            await pending
        with pytest.raises(llm.RealtimeError, match="closed"):
            await call.realtime.generate_reply()
