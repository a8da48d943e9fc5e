"""What a new connection is told of the conversation: all that it does not know, once."""

from __future__ import annotations

import pytest
from livekit.agents import llm

from livekit_gemini_resilient.testing import Call, Connection, Gate, GeminiLiveServer, Say

from .direct import connected
from .stack import EVERY, PROFILES, WEATHER, on_call, ours_and_plain


def news(connection: Connection) -> list[tuple[str, str]]:
    """What the model came to know on a connection, besides what its handle restored."""
    return [(e.kind, e.text.strip()) for e in connection.context[connection.restored :]]


@pytest.mark.fault("F1")
@ours_and_plain(plain_survives=("1.8.3", "1.8.9"))
async def test_a_resumed_connection_is_not_told_what_its_handle_covers(
    profile: str, plain: bool
) -> None:
    """Only the difference is sent."""
    script = [Say("Hello, Ada."), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("My name is Ada.")
        await call.says_within("Hello, Ada.")
        await call.becomes_resumable()
        await call.add_tool()
        second = await server.connected(2)
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")
        assert second.resumed_from is not None
        assert second.knows("My name is Ada.")
        assert second.times_told("My name is Ada.") == 0


@pytest.mark.fault("F2")
@ours_and_plain(on=EVERY)
async def test_a_turn_is_not_repeated_where_its_handle_came_before_its_end(
    profile: str, plain: bool
) -> None:
    """All of it had been said: the handle covers it."""
    gate = Gate()
    script = [Say("Hello, Ada.", turn_gate=gate), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile, handles="never") as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("My name is Ada.")
        await gate.reached()
        await server.issue_handle()
        gate.open()
        await call.says_within("Hello, Ada.")
        await call.becomes_resumable()
        await server.drop()
        second = await server.connected(2)
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")
        assert second.resumed_from is not None
        assert news(second) == [("user", "Goodbye."), ("model", "Goodbye.")]


@pytest.mark.fault("F5")
@ours_and_plain(on=EVERY)
async def test_what_came_after_an_old_handle_is_added(profile: str, plain: bool) -> None:
    """``resumable: false`` leaves the handle usable and makes it older: the turn after it, and the
    tool exchange, are told once and in order."""
    script = [
        Say("Hello, Ada."),
        Call("get_weather", {"city": "London"}),
        Say("It is foggy."),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile, handles="never") as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("My name is Ada.")
        await call.says_within("Hello, Ada.")
        handle = await server.issue_handle()
        await call.becomes_resumable()
        await server.not_resumable()
        await server.caller_says("What is the weather in London?")
        await call.says_within("It is foggy.")
        await server.not_resumable()
        await server.drop()
        second = await server.connected(2)
        await server.until(lambda: second.knows(WEATHER), "what came after", call.patience)
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")
        assert second.resumed_from == handle
        question, exchange, answer, *rest = news(second)
        assert question == ("user", "What is the weather in London?")
        assert WEATHER in exchange[1]
        assert answer == ("model", "It is foggy.")
        assert rest == [("user", "Goodbye."), ("model", "Goodbye.")]


@pytest.mark.fault("F3")
@ours_and_plain()
async def test_a_fresh_connection_is_told_of_tool_exchanges(profile: str, plain: bool) -> None:
    """As text, once each: function parts would close the connection with 1007."""
    script = [Call("get_weather", {"city": "London"}), Say("It is foggy."), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile, handles="never") as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("What is the weather in London?")
        await call.says_within("It is foggy.")
        await call.add_tool()
        second = await server.connected(2)
        await server.until(
            lambda: second.knows(WEATHER), "the exchange in the history", call.patience
        )
        assert second.times_told(WEATHER) == 1
        assert second.times_told("What is the weather in London?") == 1
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")


@pytest.mark.fault("A19")
@pytest.mark.parametrize("profile", PROFILES)
async def test_outputs_that_are_history_are_told_as_text_and_not_answered(profile: str) -> None:
    """No ``tool_response`` and no reply for what came with the first context, or as a pair."""
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="What is the weather in London?")
    call = llm.FunctionCall(call_id="old", name="get_weather", arguments='{"city": "London"}')
    output = llm.FunctionCallOutput(
        call_id="old", name="get_weather", output=WEATHER, is_error=False
    )
    context.items.extend([call, output])
    async with (
        GeminiLiveServer([Say("It was foggy.")], profile=profile) as server,
        connected(server, chat_ctx=context) as direct,
    ):
        await server.until(lambda: server.knows(WEATHER), "the history")
        pair = call.model_copy(update={"id": "c2", "call_id": "made-up"})
        result = output.model_copy(update={"id": "o2", "call_id": "made-up", "output": "no delays"})
        await direct.hand_over(pair, result)
        await server.until(lambda: server.knows("no delays"), "the pair")
        await server.caller_says("And what was it like?")
        await server.replied()
        assert server.tool_responses == []
        assert len(server.replies) == 1
