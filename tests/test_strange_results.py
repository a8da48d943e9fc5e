"""Whatever a tool returns or raises is delivered, or answered with a clear error; nothing ends."""

from __future__ import annotations

import pytest
from livekit.agents import llm
from livekit.agents.llm import ToolError

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .stack import ANSWER, EVERY, MUST_FAIL, answers, on_call

RESULTS = {
    "too large": ("x" * 2_000_000, "2000000 bytes, more than the 524288"),
    "empty": ("", ""),
    "not closed": ('{"not": "closed', '{"not": "closed'),
    "not a number": (float("nan"), "nan"),
    "control character": ("foggy\x00 and \x1bcold", "foggy and cold"),
    "lone surrogate": ("foggy \ud800 and cold", "foggy ? and cold"),
    "tool error": (ToolError("the station is offline"), "the station is offline"),
    "exception": (ValueError("a secret"), "An internal error occurred"),
}
"""What the tool returns or raises, and what the model is told."""

BREAKS_PLAIN = ("control character", "lone surrogate")
"""What the service refuses with 1007, and the plugin sends as it is."""

MEDIA = {
    "bytes": b"\x89PNG",
    "image": llm.ImageContent(image="data:image/png;base64,AAAA"),
}
"""What no version of LiveKit takes for a result: newer ones hand over an error in its place, older
ones nothing at all. The service could take an image in the ``parts`` of a response."""

CASES = [
    *(
        pytest.param(profile, result, lost, False, id=f"{result}-{where}-ours-{profile}")
        for result in RESULTS
        for lost, where in enumerate(("same connection", "later connection"))
        for profile in EVERY
    ),
    *(
        pytest.param(
            EVERY[0],
            result,
            False,
            True,
            id=f"{result}-plain-{EVERY[0]}",
            marks=MUST_FAIL,
        )
        for result in BREAKS_PLAIN
    ),
]
SCRIPT = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]


@pytest.mark.fault("A16")
@pytest.mark.parametrize(("profile", "result", "lost", "plain"), CASES)
async def test_what_a_tool_returns_or_raises_is_told_and_answered(
    profile: str, result: str, lost: bool, plain: bool
) -> None:
    """By either route; no connection ends for it."""
    returns, told = RESULTS[result]
    async with (
        GeminiLiveServer(SCRIPT, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        call.returns = returns
        await call.ask_and_hold()
        if lost:
            await server.drop(1011)
            await server.connected(2)
        call.tool_may_return.set()
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(told)
        assert not answers(server)[0].knew("a secret")
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert len(answers(server)) == 1
        assert len(server.connections) == 1 + lost
        assert call.runs == 1


@pytest.mark.fault("A16")
@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("profile", EVERY)
async def test_a_result_that_livekit_cannot_express_is_answered(profile: str, media: str) -> None:
    """With LiveKit's error, or with "still running" where it hands over nothing."""
    impatient = ResilienceOptions(tool_answer_timeout=1.0)
    async with (
        GeminiLiveServer(SCRIPT, profile=profile) as server,
        on_call(server, resilience=impatient) as call,
    ):
        call.returns = MEDIA[media]
        await server.caller_says("What is the weather in London?")
        await call.says_within(ANSWER)
        [response] = server.tool_responses
        told = str(response.response)
        assert "invalid output" in told or "still running" in told
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert len(server.connections) == 1
