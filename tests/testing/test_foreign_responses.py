"""Responses to calls of other connections, and calls without ids."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import pytest

from livekit_gemini_resilient.testing import PROFILES, Call, Calls, Gate, GeminiLiveServer, Say

from .conftest import Dial, RawClient, response, user

NO_IDS = "vertex-live-2.5-no-ids"


def treating(how: Any, profile: str = "2.5-native-audio") -> Any:
    """Return the profile with another treatment of foreign responses."""
    return dataclasses.replace(PROFILES[profile], foreign_response=how)


def named(name: str = "lookUp", output: str = "forty-two") -> dict[str, Any]:
    """Return a tool response without an id."""
    body = {"name": name, "response": {"output": output}}
    return {"tool_response": {"functionResponses": [body]}}


async def resumed(dial: Dial, server: GeminiLiveServer) -> tuple[RawClient, list[str]]:
    """Lose a connection with open calls; return one resumed from before them, and their ids.

    The script greets first, and then calls.
    """
    client = await dial(server)
    await client.send(user("hello"))
    handle = await client.handle()
    await client.send(user("what is it?"))
    ids = await client.call_ids()
    await server.abort()
    return await dial(server, sessionResumption={"handle": handle}), ids


async def test_an_answering_server_takes_the_result_and_speaks(dial: Dial) -> None:
    """``"answer"`` is what clients hope for."""
    script = [Say("Hi."), Call("lookUp"), Say("It is 42.")]
    async with GeminiLiveServer(script, profile=treating("answer")) as server:
        client, [call_id] = await resumed(dial, server)
        await client.send(response(call_id))
        reply = await server.replied(2)
    assert (reply.trigger, reply.knew("forty-two")) == ("tool_response", True)
    assert server.tool_responses[0].verdict == "adopted"


async def test_an_answer_waits_until_the_model_is_idle(dial: Dial) -> None:
    """What is being said is not cut."""
    gate = Gate()
    script = [Say("A story.", gate=gate), Say("It is 42.")]
    async with GeminiLiveServer(script, profile=treating("answer")) as server:
        client = await dial(server)
        await client.send(user("tell me a story"))
        await gate.reached()
        await client.send(response("elsewhere"))
        await server.until(lambda: server.tool_responses, "the response")
        gate.open()
        await server.replied(2)
    assert not server.replies[0].interrupted


async def test_a_server_may_answer_with_an_empty_turn(dial: Dial) -> None:
    """``"empty_turn"``: the turn has no content, and nothing is learnt."""
    async with GeminiLiveServer(profile=treating("empty_turn")) as server:
        client = await dial(server)
        await client.send(response("elsewhere"))
        assert len(await client.turn()) == 1
        assert not server.knows("forty-two")
    assert server.tool_responses[0].verdict == "settled"


@pytest.mark.parametrize("how", ["ignore", "answer", "empty_turn"])
async def test_a_second_foreign_response_is_a_breach(dial: Dial, how: str) -> None:
    """One response per id and connection, whatever it meets."""
    script = [Say("It is 42.")] * 2 if how == "answer" else []
    async with GeminiLiveServer(script, profile=treating(how)) as server:
        client = await dial(server)
        for _ in range(2):
            await client.send(response("elsewhere"))
        await server.until(lambda: len(server.tool_responses) == 2, "both responses")
        assert len(server.forgive("a second response to lookUp (elsewhere)")) == 1
        if how == "answer":
            await server.replied(2)


@pytest.mark.parametrize("code", [1007, 1008])
async def test_a_server_may_refuse_on_a_resumed_connection(
    dial: Dial, code: Literal[1007, 1008]
) -> None:
    """The code is the profile's."""
    script = [Say("Hi."), Call("lookUp")]
    async with GeminiLiveServer(script, profile=treating(code)) as server:
        client, [call_id] = await resumed(dial, server)
        await client.send(response(call_id))
        assert (await client.closed())[0] == code
        server.forgive("no call of this connection")


@pytest.mark.parametrize("profile", ["3.8-live", "3.8-extended-thinking"])
async def test_3_8_swallows_what_it_hears_until_the_lost_call_has_got_a_response(
    dial: Dial, profile: str
) -> None:
    """A resumed connection waits on the dead exchange; its response ends a turn silently."""
    script = [Say("Hi."), Call("lookUp"), Say("Go on.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client, [call_id] = await resumed(dial, server)
        await client.send(user("anyone?"))
        await client.send({"realtime_input": {"text": "hello?"}})
        await server.caller_says("say something")
        await client.send(response(call_id))
        messages = await client.turn()
        assert "modelTurn" not in str(messages)
        assert [server.knows(text) for text in ("anyone", "hello?", "something", "forty-two")] == [
            False
        ] * 4
        await client.send(user("it is forty-two"))
        assert (await server.replied(2)).knew("forty-two")
    assert server.tool_responses[0].verdict == "settled"


async def test_what_a_manual_activity_said_is_swallowed_too(dial: Dial) -> None:
    """The end of the activity brings no answer."""
    script = [Say("Hi."), Call("lookUp")]
    manual = {"automaticActivityDetection": {"disabled": True}}
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client = await dial(server)
        await client.send(user("hello"))
        handle = await client.handle()
        await client.send(user("what is it?"))
        await client.call_ids()
        await server.abort()
        client = await dial(
            server, sessionResumption={"handle": handle}, realtimeInputConfig=manual
        )
        await client.send({"realtime_input": {"activityStart": {}}})
        await server.caller_says("anyone there")
        await client.send({"realtime_input": {"activityEnd": {}}})
        await server.until(lambda: "swallowed" in str(server.timeline[-1]), "the loss")
        assert not server.knows("anyone")


async def test_every_lost_call_needs_its_response(dial: Dial) -> None:
    """The last of them ends the turn (inferred)."""
    script = [Say("Hi."), Calls([Call("lookUp"), Call("book")])]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client, [first, second] = await resumed(dial, server)
        await client.send(response(first))
        await client.send(user("anyone?"))
        await client.send(response(second, "book"))
        assert len([m for m in await client.turn() if "serverContent" in m]) == 1
        assert not server.knows("anyone")


async def test_a_dead_exchange_stays_dead_over_another_resume_and_closed_when_closed(
    dial: Dial,
) -> None:
    """It belongs to the conversation, not to the connection (inferred)."""
    script = [Say("Hi."), Call("lookUp"), Say("Here I am.")]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client, [call_id] = await resumed(dial, server)
        handle = server.connections[1].resumed_from
        await server.abort()
        client = await dial(server, sessionResumption={"handle": handle})
        await client.send(user("anyone?"))
        await client.send(response(call_id))
        await client.turn()
        await server.abort()
        client = await dial(server, sessionResumption={"handle": handle})
        await client.send(user("are you there?"))
        await server.replied(2)
    assert not server.connections[2].knows("anyone")


async def test_a_fresh_connection_swallows_nothing_and_ignores_the_response(dial: Dial) -> None:
    """Only what was resumed waits on the dead exchange."""
    async with GeminiLiveServer([Call("lookUp"), Say("Hello.")], profile="3.8-live") as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await server.abort()
        client = await dial(server)
        await client.send(response(call_id))
        await client.send(user("hello"))
        await server.replied()
    assert server.tool_responses[0].verdict == "ignored"


async def test_calls_without_ids_are_answered_by_name(dial: Dial) -> None:
    """Neither call nor response carries an id; the first open call of that name is answered."""
    script = [Calls([Call("lookUp", {"n": 1}), Call("lookUp", {"n": 2})]), Say("Both.")]
    async with GeminiLiveServer(script, profile=NO_IDS) as server:
        client = await dial(server)
        await client.send(user("both, please"))
        *_, message = await client.until("toolCall")
        assert ["id" in call for call in message["toolCall"]["functionCalls"]] == [False, False]
        await client.send(named(output="one"))
        await server.until(lambda: server.calls[0].answered, "the first answer")
        await client.send(named(output="two"))
        reply = await server.replied()
    results = [(e.text, e.call_id) for e in reply.context if e.kind == "result"]
    assert results == [("one", server.calls[0].key), ("two", server.calls[1].key)]


async def test_an_id_that_was_never_issued_is_refused(dial: Dial) -> None:
    """A client that makes up an id for itself must not send it (observed in 2025)."""
    async with GeminiLiveServer([Call("lookUp")], profile=NO_IDS) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        await client.until("toolCall")
        await client.send(response("made-up"))
        assert (await client.closed())[0] == 1007
        server.forgive("with an id")


async def test_a_second_response_by_name_is_a_duplicate_and_a_strange_one_is_foreign(
    dial: Dial,
) -> None:
    """A name stands for its open call, then for its latest one."""
    async with GeminiLiveServer([Call("lookUp"), Say("42.")], profile=NO_IDS) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        await client.until("toolCall")
        for name in ("lookUp", "lookUp", "book"):
            await client.send(named(name))
        await server.until(lambda: len(server.tool_responses) == 3, "the responses")
        server.forgive("a second response")
    assert [told.verdict for told in server.tool_responses] == ["accepted", "duplicate", "ignored"]


async def test_calls_without_ids_are_cancelled_and_left_out_of_handles(dial: Dial) -> None:
    """A cancellation names nothing; a handle still tells open calls from answered ones."""
    script = [Calls([Call("lookUp"), Call("book")]), Say("Booked.")]
    async with GeminiLiveServer(script, profile=NO_IDS) as server:
        client = await dial(server)
        await client.send(user("both"))
        await client.until("toolCall")
        await client.send(named("book"))
        await server.until(lambda: server.calls[1].answered, "the answer")
        handle = await server.issue_handle()
        await server.cancel_calls("lookUp")
        *_, cancelled = await client.until("toolCallCancellation")
        assert cancelled == {"toolCallCancellation": {"ids": []}}
        await server.replied()
        await server.abort()
        await dial(server, sessionResumption={"handle": handle})
    kinds = [entry.kind for entry in server.connections[1].context]
    assert kinds == ["user", "call", "result"]
