"""A caller who was heard is answered, whatever became of the link or of the model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Gate, GeminiLiveServer, Say

from .stack import EVERY, OnCall, connected_client, on_call, ours_and_plain

QUESTION = "What time is it?"
TIME = "It is four o'clock."
STORY = "Once upon a time there was a fog over London."

SOON = ResilienceOptions(reply_timeout=2.0)
"""So that the tests need not wait for the 10 s that are left to a real model; long enough for a
busy machine to answer before it is asked again."""


async def ask_in_vain(call: OnCall) -> None:
    """The caller asks something, the session has heard it, and nothing follows."""
    heard = asyncio.Event()

    def listen(event: Any) -> None:
        if event.transcript == QUESTION:
            heard.set()

    call.realtime.on("input_audio_transcription_completed", listen)
    await call.server.caller_says(QUESTION, infer=False)
    await asyncio.wait_for(heard.wait(), 10)


@pytest.mark.fault("B15")
@pytest.mark.parametrize("abort", [False, True], ids=["closed", "cut"])
@ours_and_plain(on=EVERY)
async def test_words_heard_before_the_link_was_lost_are_answered_once(
    profile: str, abort: bool, plain: bool
) -> None:
    """On the new connection, which knows them once."""
    async with (
        GeminiLiveServer([Say("Hello."), Say(TIME)], profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        await ask_in_vain(call)
        await (server.abort() if abort else server.drop(1011))
        await call.says_within(TIME)
        reply = server.replies[-1]
        assert reply.connection == 2
        assert reply.knew(QUESTION)
        assert server.times_told(QUESTION) == 1
        assert call.errors[1:] == []


@pytest.mark.fault("B15")
@ours_and_plain(on=EVERY)
async def test_a_caller_who_gets_nothing_at_all_is_answered_after_a_nudge(
    profile: str, plain: bool
) -> None:
    """On a healthy link: asked once."""
    options = {} if plain else {"resilience": SOON}
    async with (
        GeminiLiveServer([Say(TIME)], profile=profile) as server,
        on_call(server, plain=plain, **options) as call,
    ):
        await ask_in_vain(call)
        await call.says_within(TIME)
        assert len(server.connections) == 1


@pytest.mark.fault("B15")
@ours_and_plain()
async def test_messages_without_content_do_not_put_off_the_nudge(profile: str, plain: bool) -> None:
    """Handles and empty messages come from a server whose model is mute as well."""
    options = {} if plain else {"resilience": SOON}

    async def goes_on(server: GeminiLiveServer) -> None:
        while not server.replies:
            await server.issue_handle()
            await server.send({"serverContent": {}})
            await asyncio.sleep(0.2)  # how often it sends them

    async with (
        GeminiLiveServer([Say(TIME)], profile=profile) as server,
        on_call(server, plain=plain, **options) as call,
    ):
        await ask_in_vain(call)
        sending = asyncio.create_task(goes_on(server))
        try:
            await call.says_within(TIME)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


@pytest.mark.fault("B15")
async def test_a_model_with_proactive_audio_may_stay_silent() -> None:
    """What the user declared counts: nothing is asked."""
    async with (
        GeminiLiveServer([Say(TIME)]) as server,
        on_call(server, resilience=SOON, proactivity=True) as call,
    ):
        stopped = asyncio.Event()
        call.realtime.on("input_speech_stopped", lambda _: stopped.set())
        await ask_in_vain(call)
        await asyncio.wait_for(stopped.wait(), 10)
        await server.caller_says("Hello?")
        await call.says(TIME)
        assert [reply.trigger for reply in server.replies] == ["caller"]


@pytest.mark.fault("B16")
@ours_and_plain(on=EVERY)
async def test_a_reply_that_freezes_ends_as_interrupted_and_is_asked_for(
    profile: str, plain: bool
) -> None:
    """The agent does not stay "speaking" for ever, and the caller hears the rest."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2), Say("That was it.")]
    options = {} if plain else {"resilience": SOON}
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, **options) as call,
    ):
        await server.caller_says("Tell me a story.")
        await gate.reached()
        await server.stall()
        await call.says_within("That was it.")
        assert len(call.said("assistant", interrupted=True)) == 1
        assert len(server.connections) == 1


@pytest.mark.fault("B16")
@ours_and_plain(on=EVERY)
async def test_a_model_that_does_not_react_to_the_nudge_gets_a_fresh_session(
    profile: str, plain: bool
) -> None:
    """It knows the conversation, and answers."""
    gate = Gate()
    script = [
        Say("Hello."),
        Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2),
        Say("That was it."),
    ]
    options = {} if plain else {"resilience": SOON}
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, **options) as call,
    ):
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        await server.caller_says("Tell me a story.")
        await gate.reached()
        await server.mute()
        await call.says_within("That was it.")
        assert len(call.said("assistant", interrupted=True)) == 1
        second = server.replies[-1]
        assert second.connection == 2
        assert server.connections[1].resumed_from is None
        assert second.knew("Tell me a story.")
        await connected_client(call.realtime)
