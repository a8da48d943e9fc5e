"""A frame that the server refuses closes the connection, and is not written again for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.genai import types
from livekit import rtc
from livekit.agents import APIConnectOptions, llm

from livekit_gemini_resilient import ConnectionFailed, MessagesLeftOut, ReplyRefused
from livekit_gemini_resilient.testing import GeminiLiveServer, Say

from .direct import Direct, connected
from .stack import EVERY, eventually
from .test_strange_contexts import PICTURE

QUICK = APIConnectOptions(max_retry=3, retry_interval=0.05, timeout=10.0)
MANUAL = types.RealtimeInputConfig(
    automatic_activity_detection=types.AutomaticActivityDetection(disabled=True)
)
BAD = "Words that nobody takes."
CODES = pytest.mark.parametrize("code", [1007, 1008])
ON = pytest.mark.parametrize("profile", EVERY)


async def stands(direct: Direct, server: GeminiLiveServer) -> None:
    """The session has a connection, and knows that it has no other."""
    link = direct.session._conversation.link
    await eventually(
        lambda: link.is_up and server.current and server.current.number == link.number,
        "a connection",
    )


async def goes_on(direct: Direct, server: GeminiLiveServer, *, within: int) -> None:
    """The caller is heard and answered, over no more than so many connections."""
    await stands(direct, server)
    before = len(server.replies)
    await server.caller_says("Hello?")
    reply = await server.replied(before + 1)
    assert reply.knew("Hello?")
    assert len(server.connections) <= within
    assert all(event.recoverable for event in direct.errors)


def context(*contents: Any) -> llm.ChatContext:
    """A chat context of things that the caller said."""
    made = llm.ChatContext.empty()
    for content in contents:
        made.add_message(role="user", content=content)
    return made


@pytest.mark.fault("E3")
@CODES
@pytest.mark.parametrize("profile", [name for name in EVERY if "vertex" not in name])
async def test_a_message_that_is_refused_is_left_out(profile: str, code: int) -> None:
    """Once it has closed two connections; what is told later is told. (On Vertex AI no history can
    be announced: the message waits for words that ask for a reply.)"""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        connected(server, conn_options=QUICK) as direct,
    ):
        trap = server.drop_on("client_content", code, holding=BAD, times=None)
        await direct.hand_over(*context(BAD).items)
        await eventually(lambda: trap.count == 2 and direct.reconnected == 2, "two refusals")
        await direct.hand_over(*context("Good words.").items)
        await server.until(lambda: server.knows("Good words."), "the words that are good")
        await goes_on(direct, server, within=3)
        assert {type(event.error) for event in direct.errors} == {ConnectionFailed, MessagesLeftOut}
        assert all(event.error.__cause__ is not None for event in direct.errors)
        assert server.replies[-1].knew("Good words.")
        assert not server.replies[-1].knew(BAD)
        assert direct.session._conversation._observed.behaviour.content_at_any_time


@pytest.mark.fault("E3")
@ON
async def test_a_picture_that_is_refused_costs_no_word(profile: str) -> None:
    """The message is told without it."""
    first = context("Before.", ["Look at this.", llm.ImageContent(image=PICTURE)])
    async with GeminiLiveServer([Say("Hello.")], profile=profile) as server:
        server.drop_on("client_content", 1007, holding="inline_data", times=None)
        async with connected(server, chat_ctx=first, conn_options=QUICK) as direct:
            await server.until(lambda: server.knows("Look at this."), "the words")
            await goes_on(direct, server, within=3)
            assert server.replies[-1].knew("Before.")


@pytest.mark.fault("E3")
@CODES
@ON
async def test_a_request_that_is_refused_fails_and_the_history_stays(
    profile: str, code: int
) -> None:
    """It goes out in two forms, and then fails with an error that says what to do."""
    first = context("My name is Ada.")
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        connected(server, chat_ctx=first, conn_options=QUICK) as direct,
    ):
        traps = [
            server.drop_on(kind, code, holding=BAD, times=None)
            for kind in ("client_content", "realtime_input.text")
        ]
        with pytest.raises(llm.RealtimeError) as failed:
            await asyncio.wait_for(direct.session.generate_reply(instructions=BAD), 10)
        assert "change the instructions" in str(failed.value)
        assert isinstance(failed.value.__cause__, ReplyRefused)
        assert [trap.count for trap in traps] == [1, 1]
        await stands(direct, server)
        await server.until(lambda: server.connections[-1].knows("Ada"), "the history")
        await goes_on(direct, server, within=3)
        assert server.replies[-1].knew("Ada")


@pytest.mark.fault("E3")
@CODES
async def test_an_instruction_that_is_refused_in_place_goes_with_the_setup(code: int) -> None:
    """And so do those after it: the other form costs less than a lost connection."""
    script = [Say("Hello."), Say("Hello.")]
    async with (
        GeminiLiveServer(script, profile="vertex-live-2.5") as server,
        connected(server, conn_options=QUICK) as direct,
    ):
        trap = server.drop_on("client_content", code, holding="Be curt", times=None)
        await direct.session.update_instructions("Be curt.")
        await direct.until(lambda: direct.reconnected == 1, "a connection")
        await goes_on(direct, server, within=2)
        await direct.session.update_instructions("Be curt and kind.")
        await direct.until(lambda: direct.reconnected == 2, "a connection")
        await goes_on(direct, server, within=3)
        assert "Be curt and kind." in str(server.connections[-1].setup)
        assert trap.count == 1


@pytest.mark.fault("E3")
@CODES
@ON
async def test_audio_that_is_refused_is_dropped_and_counted(profile: str, code: int) -> None:
    """The rest of it goes to the next connection."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        connected(server, conn_options=QUICK) as direct,
    ):
        trap = server.drop_on("realtime_input.audio", code)
        direct.session.push_audio(_audio(0.05))
        await asyncio.wait_for(trap.sprung.wait(), 10)
        await direct.until(lambda: direct.reconnected == 1, "a connection")
        assert direct.session.dropped_audio == pytest.approx(0.05)
        await goes_on(direct, server, within=2)


@pytest.mark.fault("E3")
@CODES
@ON
async def test_a_picture_of_a_stream_that_is_refused_is_not_repeated(
    profile: str, code: int
) -> None:
    """The next one is newer in any case."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        connected(server, conn_options=QUICK) as direct,
    ):
        trap = server.drop_on("realtime_input.video", code, times=None)
        # what ``push_video`` does, but for the encoding, which needs an extra
        picture = types.Blob(data=b"JPEG", mime_type="image/jpeg")
        direct.session._send_client_event(types.LiveClientRealtimeInput(video=picture))
        await direct.until(lambda: direct.reconnected == 1, "a connection")
        await goes_on(direct, server, within=2)
        assert trap.count == 1


@pytest.mark.fault("E3")
@CODES
@ON
async def test_an_activity_whose_start_is_refused_is_not_opened_for_ever(
    profile: str, code: int
) -> None:
    """What the caller says goes without marks; the next activity is marked."""
    async with (
        GeminiLiveServer([Say("Hello."), Say("Again.")], profile=profile) as server,
        connected(server, conn_options=QUICK, realtime_input_config=MANUAL) as direct,
    ):
        trap = server.drop_on("realtime_input.activity_start", code, times=2)
        direct.session.start_user_activity()
        await direct.until(lambda: direct.reconnected == 2, "the second connection after it")
        await asyncio.wait_for(direct.session.generate_reply(instructions="Greet."), 10)
        await server.replied()
        direct.session.start_user_activity()
        await server.caller_says("Are you there?", infer=False)
        await asyncio.wait_for(direct.session.generate_reply(), 10)
        reply = await server.replied(2)
        assert reply.trigger == "activity_end"
        assert trap.count == 2
        assert len(server.connections) == 3


def _audio(seconds: float) -> rtc.AudioFrame:
    samples = round(16000 * seconds)
    return rtc.AudioFrame(
        data=bytes(2 * samples), sample_rate=16000, num_channels=1, samples_per_channel=samples
    )
