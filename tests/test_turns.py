"""Turns and generations, as a full AgentSession lives through them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.genai import types
from livekit.agents import Agent, function_tool

from livekit_gemini_resilient.testing import CHUNK_SECONDS, Call, Gate, GeminiLiveServer, Say

from .stack import (
    ANSWER,
    EVERY,
    PLUGIN,
    PROFILES,
    WEATHER,
    OnCall,
    connected_client,
    eventually,
    on_call,
    ours_and_plain,
)

STORY = "Once upon a time there was a fog over London."


@pytest.mark.fault("B1")
@pytest.mark.fault("B2")
@ours_and_plain()
async def test_speech_that_trails_a_call_is_played_and_the_tool_runs_and_is_answered(
    profile: str, plain: bool
) -> None:
    """Frames in the tick of the call neither interrupt speech nor cancel the tool."""
    script = [
        Call("get_weather", {"city": "London"}, say_first="Let me", trailing=" look that up."),
        Say(ANSWER),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await call.says_within(ANSWER)
        assert "look that up." in " ".join(call.spoken)
        assert call.runs == 1
        assert [r.verdict for r in server.tool_responses] == ["accepted"]
        assert not any(getattr(i, "interrupted", False) for i in call.session.history.items)


@pytest.mark.fault("B1")
@ours_and_plain()
async def test_speech_that_trails_a_call_while_the_tool_runs_does_not_interrupt_it(
    profile: str, plain: bool
) -> None:
    """The same when it arrives while the tool is at work."""
    script = [Call("get_weather", {"city": "London"}, say_first="Let me see."), Say(ANSWER)]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await call.ask_and_hold()
        heard = call.speaker.heard
        silence = "AAAA" * 640
        await server.send(
            {
                "serverContent": {
                    "modelTurn": {
                        "parts": [{"inlineData": {"mimeType": "audio/pcm", "data": silence}}]
                    },
                    "outputTranscription": {"text": "One moment."},
                }
            }
        )
        await call.says_within("One moment.")
        assert call.speaker.heard > heard
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert call.runs == 1
        assert [r.verdict for r in server.tool_responses] == ["accepted"]


@pytest.mark.fault("B5")
@ours_and_plain()
async def test_speech_ends_at_generation_complete_while_the_server_waits_for_playout(
    profile: str, plain: bool
) -> None:
    """A late ``turnComplete`` does not keep the agent speaking.

    1.8.9 ends the streams of the message in time, but not the message.
    """
    gate = Gate()
    async with (
        GeminiLiveServer([Say("Hello there.", turn_gate=gate)], profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Hello?")
        await gate.reached()
        await call.says_within("Hello there.")
        gate.open()
        await server.replied()
        assert call.speaker.heard >= CHUNK_SECONDS


def speech(text: str = "") -> dict[str, Any]:
    """One chunk of speech as the service sends it, in the wire's spelling."""
    audio = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAA" * 640}}
    content: dict[str, Any] = {"modelTurn": {"parts": [audio]}}
    if text:
        content["outputTranscription"] = {"text": text}
    return {"serverContent": content}


@pytest.mark.fault("B4")
@ours_and_plain(on=EVERY)
async def test_words_that_trail_a_call_join_the_turn_that_asked(profile: str, plain: bool) -> None:
    """A late transcript neither interrupts the tool nor becomes a turn of its own."""
    asked = "What is the weather in London? Please."
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER)]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await call.ask_and_hold()
        await server.send({"serverContent": {"inputTranscription": {"text": " Please."}}})
        await call.recorded(lambda: asked in call.said("user"), "the caller's words")
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        (message,) = [m for m in call.agent.chat_ctx.messages() if m.role == "user"]
        assert message.text_content == asked
        assert call.runs == 1
        assert [r.verdict for r in server.tool_responses] == ["accepted"]


@pytest.mark.fault("B6")
@ours_and_plain(on=EVERY, plain_survives=("1.6.5",))
async def test_speech_that_follows_generation_complete_is_played(profile: str, plain: bool) -> None:
    """Audio after ``generationComplete``, in the same turn, is speech like any other."""
    gate = Gate()
    async with (
        GeminiLiveServer([Say("Hello there.", turn_gate=gate)], profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Hello?")
        await gate.reached()
        await server.send(speech("And welcome."))
        gate.open()
        await server.replied()
        await call.recorded(
            lambda: "And welcome." in " ".join(call.said("assistant")), "the words that followed"
        )
        assert call.speaker.heard == pytest.approx(0.2 + 640 * 3 / 2 / 24000)


@pytest.mark.fault("B17")
@ours_and_plain(on=EVERY, plain_survives=("1.6.5",))
async def test_last_words_of_a_transcript_belong_to_the_message_that_was_spoken(
    profile: str, plain: bool
) -> None:
    """The transcript may trail ``generationComplete``."""
    gate = Gate()
    async with (
        GeminiLiveServer([Say("Hello", turn_gate=gate)], profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Hello?")
        await gate.reached()
        await server.send({"serverContent": {"outputTranscription": {"text": " there."}}})
        gate.open()
        await call.says_within("Hello there.")
        assert call.said("assistant") == ["Hello there."]


async def story_is_interrupted(server: GeminiLiveServer, call: OnCall, gate: Gate) -> None:
    """In the middle, and the server does not say that the turn is over."""
    await server.caller_says("Tell me a story.")
    await asyncio.wait_for(call.speaker.playing.wait(), 10)
    await gate.reached()
    await server.interrupt(turn_complete=False)
    await call.recorded(
        lambda: bool(call.said("assistant", interrupted=True)), "the end of the message"
    )


@pytest.mark.fault("B7")
@ours_and_plain(on=EVERY)
async def test_an_interruption_without_its_end_does_not_swallow_the_next_turn(
    profile: str, plain: bool
) -> None:
    """The message ends at once, stale audio is not played, and the next turn is whole."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2), Say("Certainly.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await story_is_interrupted(server, call, gate)
        heard = call.speaker.heard
        await server.send(speech("about"))
        await server.caller_says("Stop, please.")
        await call.says_within("Certainly.")
        assert call.speaker.heard == pytest.approx(heard + 0.2)
        assert call.said("assistant")[-1] == "Certainly."


@pytest.mark.fault("B7")
@ours_and_plain(on=EVERY)
async def test_the_late_end_of_an_interrupted_turn_ends_nothing_that_came_after(
    profile: str, plain: bool
) -> None:
    """Its ``turnComplete`` arrives in the middle of the next reply."""
    first, second = Gate(), Gate()
    script = [
        Say(STORY, audio_seconds=0.4, gate=first, gate_after=2),
        Say("Certainly, at once.", gate=second, gate_after=2),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await story_is_interrupted(server, call, first)
        await server.caller_says("Stop, please.")
        await second.reached()
        await server.send({"serverContent": {"turnComplete": True}})
        second.open()
        await call.says_within("Certainly, at once.")
        assert call.said("assistant")[-1] == "Certainly, at once."


NOTHING = [
    {"serverContent": {}},
    {"serverContent": {"modelTurn": {"parts": []}}},
    {"serverContent": {"modelTurn": {"parts": [{"text": "Let me think.", "thought": True}]}}},
    {"serverContent": {"outputTranscription": {}}},
    {"serverContent": {"inputTranscription": {}}},
    {"usageMetadata": {"totalTokenCount": 7}},
]
"""Messages that say nothing; each was seen ahead of the first content of a turn."""


@pytest.mark.fault("B8")
@ours_and_plain(on=EVERY)
async def test_messages_that_say_nothing_open_no_generation(profile: str, plain: bool) -> None:
    """Nor do they interrupt what is being played."""
    async with (
        GeminiLiveServer([Say("Hello there.")], profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        for message in NOTHING:
            await server.send(message)
        handle = await server.issue_handle()
        await eventually(lambda: call.realtime.session_resumption_handle == handle, "the last")
        assert call.started == 0
        await server.caller_says("Hello?")
        await call.says_within("Hello there.")
        assert call.started == 1


knows_the_interaction = pytest.mark.skipif(
    "interaction_status" not in types.LiveServerContent.model_fields,
    reason="this google-genai leaves interactionStatus out of its messages",
)


@pytest.mark.fault("B9")
@knows_the_interaction
@ours_and_plain(on=["3.8-extended-thinking"], plain_on="3.8-extended-thinking")
async def test_every_utterance_of_a_request_is_heard_and_none_interrupts_the_one_before(
    profile: str, plain: bool
) -> None:
    """Each turn of an interaction is a generation that continues the one before."""
    script = [
        Say("One moment.", in_progress=True),
        Say("I am looking.", in_progress=True),
        Say("Here it is."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        starts: list[Any] = []
        call.realtime.on("input_speech_started", starts.append)
        await server.caller_says("Where is it?")
        await call.says_within("Here it is.")
        assert call.spoken == ["One moment.", "I am looking.", "Here it is."]
        assert len(starts) == 1, "only the caller's own words interrupt"


@pytest.mark.fault("B9")
@knows_the_interaction
@ours_and_plain(on=["3.8-extended-thinking"], plain_on="3.8-extended-thinking")
async def test_a_restart_waits_for_the_end_of_the_interaction(profile: str, plain: bool) -> None:
    """``IN_PROGRESS`` is no safe point, ``IDLE`` is."""
    gate = Gate()
    script = [Say("One moment.", in_progress=True), Say("Here it is.", gate=gate, gate_after=0)]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Where is it?")
        await gate.reached()
        await call.says_within("One moment.")
        call.realtime.update_options(voice="Kore")
        if plain:
            await server.until(lambda: server.connections[0].closing, "the close of the socket")
        gate.open()
        await call.says_within("Here it is.")
        await server.connected(2)


@pytest.mark.fault("B10")
@ours_and_plain(on=EVERY, plain_survives=[PLUGIN])
async def test_stray_content_after_a_resume_joins_no_other_message(
    profile: str, plain: bool
) -> None:
    """What a resumed connection says of its own accord is a message of its own."""
    gate = Gate()
    script = [Say("Hello."), Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2)]
    async with (
        GeminiLiveServer(script, profile=profile, strict=False) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        await server.caller_says("Tell me a story.")
        await gate.reached()
        await server.drop(1011)
        await server.connected(2)
        await connected_client(call.realtime)
        gate.open()
        for end in ("generationComplete", "turnComplete"):
            await server.send({"serverContent": {end: True}})
        await server.send(speech("As I was saying."))
        await server.send({"serverContent": {"turnComplete": True}})
        await call.says_within("As I was saying.")
        assert STORY not in call.said("assistant", interrupted=False)


@pytest.mark.fault("B11")
@ours_and_plain(on=[name for name in EVERY if not name.endswith("no-ids")])
async def test_a_refused_call_takes_nothing_else_of_its_message_along(
    profile: str, plain: bool
) -> None:
    """``tool_choice="none"`` refuses the call; handle, usage and words of that message stay."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile, strict=False) as server,
        on_call(
            server, plain=plain, excused={"fc-1": "no model of the simulator called it"}
        ) as call,
    ):
        used: list[int] = []
        call.realtime.on("metrics_collected", lambda m: used.append(getattr(m, "total_tokens", 0)))
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        call.realtime.update_options(tool_choice="none")
        await server.send(
            {
                "toolCall": {
                    "functionCalls": [
                        {"id": "fc-1", "name": "get_weather", "args": {"city": "London"}}
                    ]
                },
                "serverContent": {"outputTranscription": {"text": "Very well."}},
                "usageMetadata": {"totalTokenCount": 4711},
                "sessionResumptionUpdate": {"resumable": True, "newHandle": "of-that-message"},
            }
        )
        await server.until(lambda: server.tool_responses, "the refusal")
        assert "disabled" in str(server.tool_responses[0].response)
        assert call.runs == 0
        assert call.realtime.session_resumption_handle == "of-that-message"
        assert 4711 in used


@pytest.mark.fault("B12")
@ours_and_plain(on=EVERY, plain_survives=("1.7.1", "1.8.3", "1.8.9"))
async def test_what_the_caller_said_is_recorded_before_the_reply_to_it(
    profile: str, plain: bool
) -> None:
    """In the order in which it was spoken, although its transcript is final only later."""
    gate = Gate()
    script = [Say("Hello there.", audio_seconds=0.4, gate=gate, gate_after=2)]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Hello?")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        gate.open()
        await call.says_within("Hello there.")
        messages = call.session.history.messages()
        assert [m.role for m in messages] == ["user", "assistant"]
        assert messages[0].created_at <= messages[1].created_at


@pytest.mark.fault("B13")
@ours_and_plain(on=[*PROFILES, "vertex-live-2.5-no-ids"])
async def test_a_second_call_during_a_hand_off_does_not_undo_it(profile: str, plain: bool) -> None:
    """The hand-off completes, and both calls are answered.

    The reply is held until LiveKit has changed over: it hears no session while it does.
    """
    weather = asyncio.Event()
    entered = asyncio.Event()
    answer = Gate()

    class Successor(Agent):
        async def on_enter(self) -> None:
            entered.set()

    @function_tool
    async def transfer() -> Any:
        """Pass the caller on."""
        await asyncio.wait_for(weather.wait(), 20)
        return Successor(instructions="Be brief.", tools=[transfer, get_weather]), "passed on"

    @function_tool
    async def get_weather(city: str) -> str:
        """Look up the weather.

        Args:
            city: The city.
        """
        weather.set()
        return WEATHER

    script = [
        Call("transfer", then_next=True),
        Call("get_weather", {"city": "London"}),
        Say("You have been passed on.", gate=answer, gate_after=0),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tools=[transfer, get_weather]) as call,
    ):
        await server.caller_says("Pass me on, and what is the weather?")
        await asyncio.wait_for(weather.wait(), call.patience)
        try:
            await asyncio.wait_for(entered.wait(), call.patience)
        except asyncio.TimeoutError:
            raise AssertionError("the caller was not passed on") from None
        answer.open()
        await call.says_within("You have been passed on.")
        assert isinstance(call.session.current_agent, Successor)
        assert [r.verdict for r in server.tool_responses] == ["accepted", "accepted"]
