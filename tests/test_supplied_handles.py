"""A session that resumes from a handle which the caller's code kept from an earlier one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from google.genai import types
from livekit.agents import llm

from livekit_gemini_resilient.testing import GeminiLiveServer, Say

from .stack import ANSWER, EVERY, WEATHER, OnCall, answers, on_call, ours_and_plain

QUESTION = "What is the weather in London?"


@contextlib.asynccontextmanager
async def resumed(
    server: GeminiLiveServer, handle: str, context: llm.ChatContext, *, plain: bool
) -> AsyncIterator[OnCall]:
    """A later process, or a later session of this one."""
    resumption = types.SessionResumptionConfig(handle=handle)
    async with on_call(
        server, plain=plain, chat_ctx=context, session_resumption=resumption
    ) as call:
        assert server.connections[-1].resumed_from == handle
        yield call


async def earlier(server: GeminiLiveServer, *, plain: bool) -> str:
    """A session that greets and ends; returns its handle."""
    async with on_call(server, plain=plain) as call:
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        await call.becomes_resumable()
        return str(call.realtime.session_resumption_handle)


def exchange(*, answered: bool = True) -> llm.ChatContext:
    """A context in which the weather was asked for, after the handle was issued."""
    context = llm.ChatContext.empty()
    context.add_message(role="user", content=QUESTION)
    context.items.append(
        llm.FunctionCall(call_id="earlier", name="get_weather", arguments='{"city": "London"}')
    )
    if answered:
        context.items.append(output())
    return context


def output() -> llm.FunctionCallOutput:
    """The result of that call."""
    return llm.FunctionCallOutput(
        call_id="earlier", name="get_weather", output=WEATHER, is_error=False
    )


@pytest.mark.fault("A7")
@ours_and_plain(on=EVERY)
async def test_a_result_that_a_supplied_handle_cannot_cover_is_told_as_history(
    profile: str, plain: bool
) -> None:
    """It follows the model's last words: told once as text, and not answered by itself."""
    script = [Say("Hello."), Say(ANSWER)]
    async with GeminiLiveServer(script, profile=profile) as server:
        handle = await earlier(server, plain=plain)
        async with resumed(server, handle, exchange(), plain=plain) as call:
            await server.until(lambda: server.knows(WEATHER), "the result", call.patience)
            await server.caller_says("And?")
            await call.says_within(ANSWER)
            assert len(server.replies) == 2
            assert server.times_told(WEATHER) == 1
            assert not [r for r in server.tool_responses if r.verdict == "accepted"]


@pytest.mark.fault("F4")
@ours_and_plain(on=EVERY)
async def test_what_follows_the_last_words_of_the_model_is_told_to_a_supplied_handle(
    profile: str, plain: bool
) -> None:
    """A handle is issued at the end of a turn; what is newer than that is the difference."""
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="Hello?")
    context.add_message(role="assistant", content="Hello.")
    context.add_message(role="user", content="My name is Ada.")
    async with GeminiLiveServer([Say("Hello."), Say("Goodbye.")], profile=profile) as server:
        handle = await earlier(server, plain=plain)
        async with resumed(server, handle, context, plain=plain) as call:
            second = server.connections[-1]
            await server.until(lambda: second.knows("Ada"), "the difference", call.patience)
            await server.caller_says("Goodbye.")
            await call.says_within("Goodbye.")
            told = [entry.text.strip() for entry in second.context[second.restored :]]
            assert told == ["My name is Ada.", "Goodbye.", "Goodbye."]


@pytest.mark.fault("A7")
@pytest.mark.parametrize("profile", EVERY)
async def test_a_context_that_ends_with_words_of_the_model_is_taken_to_be_covered(
    profile: str,
) -> None:
    """Nothing is told twice that the handle can hold."""
    context = exchange()
    context.add_message(role="assistant", content=ANSWER)
    async with GeminiLiveServer([Say("Hello."), Say("Goodbye.")], profile=profile) as server:
        handle = await earlier(server, plain=False)
        async with resumed(server, handle, context, plain=False) as call:
            await server.caller_says("Goodbye.")
            await call.says_within("Goodbye.")
            assert server.connections[-1].times_told(WEATHER) == 0
            assert server.connections[-1].times_told(QUESTION) == 0


@pytest.mark.fault("A7")
@ours_and_plain(on=EVERY)
async def test_a_result_that_arrives_right_after_a_supplied_handle_is_told_once(
    profile: str, plain: bool
) -> None:
    """It comes alone, to a session that never issued the call: said and answered."""
    script = [Say("Hello."), Say(ANSWER), Say("Goodbye.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        handle = await earlier(server, plain=plain)
        async with resumed(server, handle, exchange(answered=False), plain=plain) as call:
            context = call.realtime.chat_ctx
            context.items.append(output())
            await call.realtime.update_chat_ctx(context)
            await call.says_within(ANSWER)
            assert answers(server)[0].knew(WEATHER)
            await server.caller_says("Thank you, goodbye.")
            await call.says_within("Goodbye.")
            assert len(answers(server)) == 1
            assert server.times_told(WEATHER) == 1
