"""Handles are snapshots of what the model knew."""

from __future__ import annotations

import dataclasses
import json
from typing import Literal

import pytest

from livekit_gemini_resilient.testing import PROFILES, Call, Gate, GeminiLiveServer, Say

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


async def test_forgotten_handles_are_refused_and_later_ones_are_good(dial: Dial) -> None:
    """1007 (observed once, on 3.8); it is not the client's fault, so it is no breach."""
    async with GeminiLiveServer([Say("Hi."), Say("Yes.")]) as server:
        client = await dial(server)
        await client.send(user("my name is Ada"))
        early = await client.handle()
        await server.forget_handles()
        await client.send(user("my name is Ada"))
        late = await client.handle()
        await server.abort()
        client = await dial(server, answered=False, sessionResumption={"handle": early})
        assert await client.closed() == (1007, "Request contains an invalid argument.")
        await dial(server, sessionResumption={"handle": late})
        assert server.knows("Ada")
    assert not server.connections[1].accepted


async def test_a_handle_runs_out(dial: Dial) -> None:
    """Its time runs from the end of the last connection (documented: two hours)."""
    profile = dataclasses.replace(PROFILES["2.5-native-audio"], handle_ttl=0)
    async with GeminiLiveServer([Say("Hi.")], profile=profile) as server:
        client = await dial(server)
        await client.send(user("hello"))
        handle = await client.handle()
        await server.abort()
        client = await dial(server, answered=False, sessionResumption={"handle": handle})
        assert (await client.closed())[0] == 1007


async def test_a_poisoned_session_hears_and_never_speaks(dial: Dial, profile: str) -> None:
    """``inputTranscription`` goes on, generation is dead (observed); a fresh session is not."""
    async with GeminiLiveServer([Say("Hi."), Say("Hello again.")], profile=profile) as server:
        client = await dial(server)
        await client.send(user("hello"))
        handle = await client.handle()
        await server.poison_handles()
        await server.abort()
        client = await dial(server, sessionResumption={"handle": handle})
        await server.caller_says("anyone?")
        while "inputTranscription" not in (await client.next()).get("serverContent", {}):
            pass
        await client.send(user("anyone at all?"))
        await server.until(lambda: server.knows("at all"), "the content")
        assert server.current
        assert server.current.poisoned
        assert server.remaining
        client = await dial(server)
        await client.send(user("hello"))
        await server.replied(2)


@pytest.mark.parametrize(("empty", "update"), [(False, {"resumable": False}), (True, {})])
async def test_the_server_can_say_that_there_is_no_usable_handle(
    dial: Dial, empty: bool, update: dict[str, bool]
) -> None:
    """At any time; the handles it issued before stay good."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        client = await dial(server)
        await client.send(user("my name is Ada"))
        handle = await client.handle()
        await server.not_resumable(empty=empty)
        assert await client.next() == {"sessionResumptionUpdate": update}
        await server.abort()
        await dial(server, sessionResumption={"handle": handle})
        assert server.knows("Ada")


ALWAYS_RESUMABLE = dataclasses.replace(PROFILES["vertex-live-2.5"], handle_mid_answer=True)


async def test_vertex_may_mark_every_update_resumable_even_in_mid_answer(dial: Dial) -> None:
    """After the call, in mid-speech, and after each turn (observed)."""
    gate = Gate()
    script = [Call("lookUp"), Say("It is 42.", gate=gate)]
    async with GeminiLiveServer(script, profile=ALWAYS_RESUMABLE) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        updates = [await client.next()]
        await client.send(response(call_id))
        await gate.reached()
        updates += [(await client.until("sessionResumptionUpdate"))[-1] for _ in range(2)]
        gate.open()
        updates += [(await client.until("sessionResumptionUpdate"))[-1]]
    assert all(update["sessionResumptionUpdate"]["resumable"] for update in updates)


@pytest.mark.parametrize("keeps", ["never", "if_handle_after_call"])
async def test_a_handle_issued_after_a_call_may_keep_it_waiting(
    dial: Dial, keeps: Literal["never", "if_handle_after_call"]
) -> None:
    """Unknown for the real service, so both can be had: the response is accepted, or foreign."""
    profile = dataclasses.replace(ALWAYS_RESUMABLE, resume_keeps_pending_call=keeps)
    script = [Call("lookUp"), Say("It is 42.")]
    async with GeminiLiveServer(script, profile=profile, strict=False) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        handle = await client.handle()
        await server.abort()
        client = await dial(server, sessionResumption={"handle": handle})
        await client.send(response(call_id))
        await server.until(lambda: server.tool_responses, "the response")
        if keeps == "if_handle_after_call":
            assert (await server.replied()).knew("forty-two")
            server.verify()
        else:
            assert server.tool_responses[0].verdict == "ignored"
            assert server.remaining


@pytest.mark.parametrize("declared", ["BLOCKING", "NON_BLOCKING"])
async def test_a_kept_call_that_was_answered_after_the_handle_is_open_again(
    dial: Dial, declared: str
) -> None:
    """A resume forgets what came after the handle, an answer too."""
    profile = dataclasses.replace(
        ALWAYS_RESUMABLE, resume_keeps_pending_call="if_handle_after_call"
    )
    tools = [{"functionDeclarations": [{"name": "lookUp", "behavior": declared}]}]
    script = [Call("lookUp"), Say("It is 42."), Say("It is 43.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client = await dial(server, tools=tools)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        handle = await client.handle()
        await client.send(response(call_id))
        await server.replied()
        await server.abort()
        client = await dial(server, tools=tools, sessionResumption={"handle": handle})
        await client.send(response(call_id, output="forty-three"))
        reply = await server.replied(2)
    assert reply.knew("forty-three")
    assert not reply.knew("forty-two")
