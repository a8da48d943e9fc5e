"""An ``AgentTask`` inside a tool: LiveKit gives the outer activity a new realtime session."""

from __future__ import annotations

import pytest
from livekit.agents import AgentTask, function_tool

from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .stack import ANSWER, WEATHER, answers, on_call, ours_and_plain

ENDS_WITH_IT = {"agree": "it completes the task, whose session closes before it is answered"}


class Consent(AgentTask[bool]):
    """Asks the caller for consent."""

    def __init__(self) -> None:
        super().__init__(instructions="Ask for consent.")

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Ask for consent.")

    @function_tool
    async def agree(self) -> None:
        """The caller agrees."""
        self.complete(True)


@pytest.mark.fault("A8")
@ours_and_plain()
async def test_the_result_of_a_tool_that_awaited_a_task_reaches_the_session_that_follows(
    profile: str, plain: bool
) -> None:
    """It arrives alone, at a session that never issued the call: told once, answered once."""

    @function_tool
    async def get_weather(city: str) -> str:
        """Look up the weather.

        Args:
            city: The city.
        """
        return f"{WEATHER}; consent {await Consent()}"

    script = [
        Call("get_weather", {"city": "London"}),
        Say("Do you agree?"),
        Call("agree"),
        Say("Thank you."),
        Say(ANSWER),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, tools=[get_weather], excused=ENDS_WITH_IT) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await call.says_within("Do you agree?")
        await server.caller_says("Yes, I do.")
        await call.says_within(ANSWER)
        assert len(answers(server)) == 1
        assert answers(server)[0].knew(f"{WEATHER}; consent True")
        assert "get_weather" not in [
            r.name for r in server.tool_responses if r.verdict != "ignored"
        ]
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
