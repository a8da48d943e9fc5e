"""The client marks the caller's activity: an activity outlives the connection it began on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.genai import types
from livekit import rtc
from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from livekit_gemini_resilient import RealtimeModel
from livekit_gemini_resilient.testing import Connection, GeminiLiveServer, Say

from .direct import connected
from .stack import EVERY, connected_client, ours_and_plain

MANUAL = types.RealtimeInputConfig(
    automatic_activity_detection=types.AutomaticActivityDetection(disabled=True)
)


def marks(connection: Connection) -> list[str]:
    """The marks and audio that a connection was sent, repetitions of audio as one."""
    inputs = [frame["realtime_input"] for frame in connection.frames if "realtime_input" in frame]
    kinds = [next(iter(each)) for each in inputs]
    return [kind for i, kind in enumerate(kinds) if kind != "audio" or kinds[i - 1] != "audio"]


def audio(seconds: float = 0.2) -> rtc.AudioFrame:
    """16 kHz mono."""
    samples = round(16000 * seconds)
    return rtc.AudioFrame(
        data=bytes(2 * samples), sample_rate=16000, num_channels=1, samples_per_channel=samples
    )


@contextlib.asynccontextmanager
async def marking(server: GeminiLiveServer, *, plain: bool) -> AsyncIterator[Any]:
    """A connected session whose client marks the caller's activity."""
    make: Any = PluginModel if plain else RealtimeModel
    model = make(**server.model_options(), realtime_input_config=MANUAL)
    session = model.session()
    try:
        await connected_client(session)
        yield session
    finally:
        await session.aclose()
        await model.aclose()


@pytest.mark.fault("D8")
@pytest.mark.parametrize("how", ["lost", "replaced"])
@ours_and_plain(on=EVERY)
async def test_an_activity_is_opened_again_when_its_connection_is_gone(
    profile: str, how: str, plain: bool
) -> None:
    """Start, the audio, end; and what the caller said is answered, once."""
    script = [Say("I can hear you.")]
    async with (
        GeminiLiveServer(script, profile=profile, strict=not plain) as server,
        marking(server, plain=plain) as session,
    ):
        session.start_user_activity()
        session.push_audio(audio())
        first = server.connections[0]
        await server.until(lambda: "audio" in marks(first), "the caller's first words")
        if how == "lost":
            await server.drop(1011)
        else:
            await server.go_away(0)
        second = await server.connected(2)
        session.push_audio(audio())
        await server.until(lambda: "audio" in marks(second), "the caller's other words")
        await server.caller_says("Can you hear me?")
        session.generate_reply()
        await server.until(lambda: "activity_end" in marks(second), "the end of the activity")
        assert marks(second) == ["activity_start", "audio", "activity_end"]
        reply = await server.replied()
        assert (reply.trigger, len(server.replies)) == ("activity_end", 1)
        assert reply.knew("Can you hear me?")


@pytest.mark.fault("D8")
@pytest.mark.parametrize("instructions", [None, "Be kind."])
@ours_and_plain(on=EVERY)
async def test_a_reply_that_ends_an_activity_is_asked_for_once(
    profile: str, instructions: str | None, plain: bool
) -> None:
    """The end of the activity asks for it; what the reply is to be about goes before it."""
    async with (
        GeminiLiveServer([Say("Hello."), Say("Twice.")], profile=profile) as server,
        marking(server, plain=plain) as session,
    ):
        session.start_user_activity()
        await server.until(lambda: marks(server.connections[0]) == ["activity_start"], "the start")
        await server.caller_says("Hello?")
        given = {} if instructions is None else {"instructions": instructions}
        created = await asyncio.wait_for(session.generate_reply(**given), 10)
        assert created.user_initiated
        reply = await server.replied()
        assert reply.text == "Hello."
        assert reply.trigger == "activity_end"
        assert reply.knew("Hello?")
        assert instructions is None or reply.knew(instructions)
        session.start_user_activity()
        await server.caller_says("Again?")
        await asyncio.wait_for(session.generate_reply(), 10)
        reply = await server.replied(2)
        assert reply.text == "Twice."


@pytest.mark.fault("D9")
@ours_and_plain(on=EVERY)
async def test_a_rotation_waits_until_the_caller_has_spoken(profile: str, plain: bool) -> None:
    """The utterance is not split between two connections, and its answer is not cut."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile, strict=not plain) as server,
        marking(server, plain=plain) as session,
    ):
        session.start_user_activity()
        session.push_audio(audio())
        first = server.connections[0]
        await server.until(lambda: "audio" in marks(first), "the caller's first words")
        session.update_options(voice="Kore")
        await server.go_away(60)
        if plain:
            await server.until(lambda: first.closing, "the close of the socket")
        assert not first.closing
        session.push_audio(audio())
        await server.caller_says("Hello?")
        session.generate_reply()
        reply = await server.replied()
        assert reply.connection == 1
        assert marks(first)[-1] == "activity_end"
        second = await server.connected(2)
        assert "Kore" in str(second.setup)
        assert "activity_start" not in marks(second)


@pytest.mark.fault("D9")
async def test_a_caller_who_does_not_stop_is_not_waited_for_beyond_the_deadline() -> None:
    """The activity goes on, on the next connection."""
    async with (
        GeminiLiveServer([Say("Hello.")]) as server,
        connected(server, realtime_input_config=MANUAL) as direct,
    ):
        direct.session.start_user_activity()
        direct.session.push_audio(audio())
        first = server.connections[0]
        await server.until(lambda: "audio" in marks(first), "the caller's first words")
        await server.go_away(5.2)
        second = await server.connected(2)
        await server.until(lambda: marks(second) == ["activity_start"], "the activity")
        await server.caller_says("Hello?")
        direct.session.generate_reply()
        reply = await server.replied()
        assert reply.trigger == "activity_end"
