"""``update_chat_ctx`` takes back or changes what was heard: a fresh session with the new history.

What was never played, or was cut short, was not heard as the server has it; LiveKit removes and
shortens such replies all the time, and no connection is replaced for it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import Agent, llm

from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say

from .stack import EVERY, PROFILES, WEATHER, OnCall, eventually, on_call, ours_and_plain

SECRET = "My number is 4711."
EDITED = "My number is a secret."
LONG = "Once upon a time there was a ship."


def without_secret(context: llm.ChatContext, *, edited: bool) -> llm.ChatContext:
    """The context without the secret, or with other words in its place."""
    kept: list[Any] = []
    for item in context.items:
        if item.type != "message" or item.text_content != SECRET:
            kept.append(item)
        elif edited:
            kept.append(item.model_copy(update={"content": [EDITED]}))
    return llm.ChatContext(kept)


@pytest.mark.fault("F6")
@pytest.mark.parametrize("edited", [True, False], ids=["edited", "removed"])
@ours_and_plain(on=EVERY)
async def test_the_model_forgets_what_is_taken_out_of_the_history(
    profile: str, plain: bool, edited: bool
) -> None:
    """The handle is dropped on purpose; the rest is told once."""
    script = [Say("Noted."), Say("You are welcome."), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says(SECRET)
        await call.says_within("Noted.")
        await server.caller_says("Thank you.")
        await call.says_within("You are welcome.")
        await call.becomes_resumable()
        await call.agent.update_chat_ctx(without_secret(call.agent.chat_ctx, edited=edited))
        await server.until(lambda: len(server.connections) == 2, "a session", call.patience)
        second = await server.connected(2)
        await server.until(lambda: second.knows("Thank you."), "the history")
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")
        assert second.resumed_from is None
        assert not second.knows(SECRET)
        assert second.times_told(EDITED) == edited
        assert second.times_told("Thank you.") == 1
        assert len(server.connections) == 2


@pytest.mark.parametrize("profile", EVERY)
async def test_a_tool_may_take_something_out_of_the_history(profile: str) -> None:
    """The reply to its result is spoken first, the next turn knows the new history only."""
    script = [Call("get_weather", {"city": "London"}), Say("It is foggy."), Say("Goodbye.")]
    async with GeminiLiveServer(script, profile=profile) as server, on_call(server) as call:

        async def forget() -> None:
            await call.agent.update_chat_ctx(without_secret(call.agent.chat_ctx, edited=False))

        call.in_tool = forget
        await server.caller_says(SECRET)
        await call.says("It is foggy.")
        second = await server.connected(2)
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
        assert second.resumed_from is None
        assert not second.knows(SECRET)
        assert second.times_told(WEATHER) == 1
        assert call.runs == 1


@pytest.mark.parametrize("played", [True, False], ids=["cut short", "never played"])
@pytest.mark.parametrize("profile", EVERY)
async def test_a_reply_that_was_interrupted_costs_no_connection(profile: str, played: bool) -> None:
    """LiveKit's context, handed over, has less of it than the model said, or nothing."""
    gate = Gate()
    script = [Say(LONG, audio_seconds=2.0, gate=gate, gate_after=25), Say("Yes."), Say("Goodbye.")]
    async with GeminiLiveServer(script, profile=profile) as server, on_call(server) as call:
        if not played:
            plays_nothing(call.speaker)
        await server.caller_says("Tell me a story.")
        await gate.reached()
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        await server.caller_says("Stop. Are you there?")
        await call.says("Yes.")
        gate.open()
        await call.agent.update_chat_ctx(call.agent.chat_ctx.copy())
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
        assert len(server.connections) == 1
        assert call.said("assistant", interrupted=True) == agreed(call, interrupted=True)
        assert bool(agreed(call, interrupted=True)) == played


def plays_nothing(speaker: Any) -> None:
    """What it is given never reaches the caller's ear."""
    finished = speaker.on_playback_finished
    speaker.on_playback_started = lambda **_: None
    speaker.on_playback_finished = lambda **how: finished(**{**how, "playback_position": 0.0})


def agreed(call: OnCall, *, interrupted: bool) -> list[str]:
    """Replies in the realtime session's context and in the agent's, which must agree."""
    ours, theirs = (
        [
            (item.text_content or "").strip()
            for item in context.items
            if item.type == "message" and item.role == "assistant"
            if item.interrupted == interrupted
        ]
        for context in (call.realtime.chat_ctx, call.agent.chat_ctx)
    )
    assert ours == theirs
    return ours


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_fresh_session_is_told_of_a_reply_what_was_heard_of_it(profile: str) -> None:
    """Not what the model had generated beyond."""
    gate = Gate()
    script = [Say(LONG, audio_seconds=2.0, gate=gate, gate_after=50), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile, handles="never") as server,
        on_call(server) as call,
    ):
        await server.caller_says("Tell me a story.")
        await gate.reached()
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        await call.session.interrupt()
        await eventually(lambda: call.said("assistant", interrupted=True), "a cut reply")
        gate.open()
        await server.until(lambda: server.replies[0].completed, "the end of the turn")
        await server.drop()
        second = await server.connected(2)
        await server.until(lambda: second.knows("Tell me a story."), "the history")
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
        (heard,) = call.said("assistant", interrupted=True)
        told = [entry.text.strip() for entry in second.context if entry.kind == "model"]
        assert heard in LONG
        assert told == [heard, "Goodbye."]


@pytest.mark.parametrize("knows", [True, False], ids=["with history", "without history"])
@pytest.mark.parametrize("profile", EVERY)
async def test_an_agent_that_takes_over_a_session_knows_what_its_context_says(
    profile: str, knows: bool
) -> None:
    """LiveKit keeps the session where the tools happen to be equal and makes a new one otherwise;
    what the next agent knows must not hang on that. Its context is what its author gave it."""
    async with (
        GeminiLiveServer([Say("Noted."), Say("Goodbye.")], profile=profile) as server,
        on_call(server) as call,
    ):
        await server.caller_says(SECRET)
        await call.says("Noted.")
        await call.becomes_resumable()
        reused = call.realtime
        context = call.agent.chat_ctx.copy() if knows else None
        agent = Agent(instructions="Be kind.", tools=list(call.agent.tools), chat_ctx=context)
        call.session.update_agent(agent)
        took_over = call.session._update_activity_atask
        assert took_over is not None
        await asyncio.wait_for(asyncio.shield(took_over), 10)
        call.agent = agent
        assert call.realtime is reused
        if not knows or server.profile.api == "gemini":
            await server.connected(2)
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")
        last = server.connections[-1]
        assert last.knows(SECRET) == knows
        # on Vertex AI instructions are replaced in place, and nothing needs a new connection
        if not knows:
            assert last.resumed_from is None
        else:
            assert last.times_told(SECRET) == (len(server.connections) == 1)
