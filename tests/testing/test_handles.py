"""Handles are snapshots of what the model knew."""

from __future__ import annotations

import dataclasses
import json
from typing import Literal

import pytest

from livekit_gemini_resilient.testing import PROFILES, Call, GeminiLiveServer, Say

from .conftest import Dial, response, user


async def test_a_resumed_connection_knows_what_the_handle_covers_and_forgets_the_rest(
    dial: Dial, profile: str
) -> None:
    """Resuming from an older handle loses what came after it (observed on 2.5 and 3.1)."""
    async with GeminiLiveServer([Say("Hi."), Say("Yes.")], profile=profile) as server:
        client = await dial(server)
        await client.send(user("my name is Ada"))
        handle = await client.handle()
        await client.send(user("I live in Oslo"))
        await server.replied(2)
        await client.socket.close()
        await dial(server, sessionResumption={"handle": handle})
        assert server.knows("Ada")
        assert not server.knows("Oslo")
    assert server.connections[1].conversation == server.connections[0].conversation
    assert server.connections[1].times_told("Ada") == 0


async def test_a_fresh_connection_knows_nothing(dial: Dial) -> None:
    """Without a handle a conversation starts empty."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        client = await dial(server)
        await client.send(user("my name is Ada"))
        await client.turn()
        await client.socket.close()
        await dial(server)
        assert not server.knows("Ada")


async def test_a_handle_may_be_used_again(dial: Dial) -> None:
    """Clients retry with the last handle they have (inferred)."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        client = await dial(server)
        await client.send(user("my name is Ada"))
        handle = await client.handle()
        for _ in range(2):
            await server.drop()
            client = await dial(server, sessionResumption={"handle": handle})
        assert server.knows("Ada")


async def test_a_handle_after_each_turn_only_if_the_setup_asked(dial: Dial, profile: str) -> None:
    """A setup without ``sessionResumption`` gets no handle after a turn."""
    async with GeminiLiveServer([Say("Hi."), Say("Hi.")], profile=profile) as server:
        client = await dial(server, sessionResumption=None)
        for _ in range(2):
            await client.send(user("hello"))
        messages = await client.turn() + await client.turn()
    assert "sessionResumptionUpdate" not in str(messages)


async def test_a_server_can_issue_no_handles(dial: Dial) -> None:
    """``handles="never"`` turns every cadence off."""
    script = [Call("lookUp", handle_first=True), Say("42."), Say("Bye.")]
    async with GeminiLiveServer(script, profile="3.1-flash-live", handles="never") as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id))
        await server.replied()
        await client.send(user("bye"))
        messages = await client.turn() + await client.turn()
    assert "newHandle" not in str(messages)


async def test_3_1_issues_a_handle_when_it_has_consumed_a_response_even_unasked(
    dial: Dial,
) -> None:
    """Recorded: it comes before the reply, and the setup had no ``sessionResumption``."""
    async with GeminiLiveServer([Call("lookUp"), Say("42.")], profile="3.1-flash-live") as server:
        client = await dial(server, sessionResumption=None)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id))
        update = (await client.next())["sessionResumptionUpdate"]
        await server.replied()
        await client.socket.close()
        await dial(server, sessionResumption={"handle": update["newHandle"]})
        assert server.knows("forty-two")
    assert [e.kind for e in server.connections[1].context] == ["user", "call", "result"]


@pytest.mark.parametrize(("form", "update"), [("flag", {"resumable": False}), ("empty", {})])
async def test_a_family_may_say_that_an_open_call_is_not_resumable(
    dial: Dial, form: Literal["flag", "empty"], update: dict[str, bool]
) -> None:
    """No usable handle is issued while a call is open (documented, observed on 3.1)."""
    profile = dataclasses.replace(PROFILES["3.1-flash-live"], not_resumable=form)
    async with GeminiLiveServer([Call("lookUp")], profile=profile) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        await client.call_ids()
        assert await client.next() == {"sessionResumptionUpdate": update}


async def test_a_handle_issued_before_a_call_covers_the_question_and_not_the_call(
    dial: Dial,
) -> None:
    """``handle_first`` puts the snapshot between the caller's words and the call."""
    async with GeminiLiveServer([Call("lookUp", handle_first=True)]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        messages = await client.until("toolCall")
        handle = messages[-2]["sessionResumptionUpdate"]["newHandle"]
        await server.abort()
        await dial(server, sessionResumption={"handle": handle})
    assert [entry.kind for entry in server.connections[1].context] == ["user"]


async def test_a_handle_never_holds_an_open_call(dial: Dial) -> None:
    """A handle issued on demand leaves the open call out, and a response to it is foreign."""
    async with GeminiLiveServer([Call("lookUp")]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        handle = await server.issue_handle()
        assert json.dumps(handle) in json.dumps(await client.next())
        await server.abort()
        later = await dial(server, sessionResumption={"handle": handle})
        await later.send(response(call_id))
        await server.until(lambda: server.tool_responses, "the response")
    assert server.tool_responses[0].verdict == "ignored"
    assert [entry.kind for entry in server.connections[1].context] == ["user"]


async def test_an_interruption_brings_no_handle_while_a_call_is_open(dial: Dial) -> None:
    """``turnComplete`` is followed by a handle only if nothing is open."""
    async with GeminiLiveServer([Call("lookUp")]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        await client.call_ids()
        await server.interrupt()
        await server.go_away(1)
        messages = await client.until("goAway")
    assert "sessionResumptionUpdate" not in str(messages)
