"""Turns and generations, as a full AgentSession lives through them."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.testing import CHUNK_SECONDS, Call, Gate, GeminiLiveServer, Say

from .stack import ANSWER, on_call, ours_and_plain


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
