"""Functions that run while the model goes on, and families that speak several times a request."""

from __future__ import annotations

from typing import Any

import pytest

from livekit_gemini_resilient.testing import Call, Calls, Gate, GeminiLiveServer, Say

from .conftest import Dial, RawClient, response, user

MANUAL = {"automaticActivityDetection": {"disabled": True}}
EVERY_OF_3_8 = ["3.8-live", "3.8-extended-thinking"]


def tools(behavior: str | None = None) -> list[dict[str, Any]]:
    """Return both functions, declared to behave so."""
    extra = {"behavior": behavior} if behavior else {}
    return [{"functionDeclarations": [{"name": name, **extra} for name in ("lookUp", "book")]}]


def scheduled(call_id: str, output: str = "forty-two", **fields: Any) -> dict[str, Any]:
    """Return a tool response with more fields."""
    frame = response(call_id, output=output)
    frame["tool_response"]["functionResponses"][0].update(fields)
    return frame


def status(messages: list[dict[str, Any]]) -> str | None:
    """Return the interaction status at the end of a turn."""
    value: str | None = messages[-1]["serverContent"].get("interactionStatus")
    return value


async def ask(client: RawClient) -> str:
    """Ask, and return the id of the one call that comes."""
    await client.send(user("what is it?"))
    [call_id] = await client.call_ids()
    return call_id


@pytest.mark.parametrize("profile", EVERY_OF_3_8)
async def test_a_non_blocking_call_ends_its_turn_and_the_answer_starts_another(
    dial: Dial, profile: str
) -> None:
    """On 3.8 functions do not block unless they are declared so (documented)."""
    async with GeminiLiveServer([Call("lookUp"), Say("It is 42.")], profile=profile) as server:
        client = await dial(server)
        call_id = await ask(client)
        await client.turn()
        assert server.calls[0].open
        assert not server.calls[0].blocking
        await client.send(response(call_id))
        reply = await server.replied()
    assert (reply.trigger, reply.knew("forty-two")) == ("tool_response", True)


@pytest.mark.parametrize(
    ("profile", "declared"), [("2.5-native-audio", "NON_BLOCKING"), ("3.8-live", None)]
)
async def test_the_model_may_speak_on_in_the_turn_of_a_non_blocking_call(
    dial: Dial, profile: str, declared: str | None
) -> None:
    """``goes_on`` plays the next step in the same turn (observed on 2.5)."""
    script = [Call("lookUp", goes_on=True), Say("One moment."), Say("It is 42.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client = await dial(server, tools=tools(declared))
        call_id = await ask(client)
        assert any("modelTurn" in str(message) for message in await client.turn())
        await client.send(response(call_id))
        await server.replied(2)
    assert [reply.knew("forty-two") for reply in server.replies] == [False, True]
    assert [reply.trigger for reply in server.replies] == ["client_content", "tool_response"]


@pytest.mark.parametrize(
    ("profile", "declared"), [("3.1-flash-live", "NON_BLOCKING"), ("3.8-live", "BLOCKING")]
)
async def test_a_blocking_call_keeps_the_model_silent_whatever_the_step_says(
    dial: Dial, profile: str, declared: str
) -> None:
    """3.1 accepts NON_BLOCKING and blocks all the same (observed); 3.8 blocks when asked to."""
    script = [Call("lookUp", goes_on=True), Say("It is 42.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client = await dial(server, tools=tools(declared))
        call_id = await ask(client)
        assert server.calls[0].blocking
        assert server.replies == []
        await client.send(scheduled(call_id, scheduling="SILENT"))
        assert (await server.replied()).knew("forty-two")


async def test_a_declaration_in_a_context_update_counts(dial: Dial) -> None:
    """Behaviour belongs to the declaration that is in force."""
    async with GeminiLiveServer([Call("lookUp"), Say("42.")], profile="3.8-live") as server:
        client = await dial(server)
        await client.send({"contextUpdate": {"tools": {"tools": tools("BLOCKING")}}})
        call_id = await ask(client)
        assert server.calls[0].blocking
        await client.send(response(call_id))
        await server.replied()


async def test_extended_thinking_refuses_blocking_functions(dial: Dial) -> None:
    """A hard error at the setup, and in a context update (documented; 1007 is inferred)."""
    async with GeminiLiveServer(profile="3.8-extended-thinking") as server:
        client = await dial(server, answered=False, tools=tools("BLOCKING"))
        assert (await client.closed())[0] == 1007
        client = await dial(server, tools=tools("NON_BLOCKING"))
        await client.send({"contextUpdate": {"tools": {"tools": tools("BLOCKING")}}})
        assert (await client.closed())[0] == 1007
        assert len(server.forgive("declared BLOCKING")) == 2


async def test_the_conversation_goes_on_while_a_non_blocking_call_is_open(dial: Dial) -> None:
    """Content is taken and answered; no handle is issued until the call has been answered."""
    script = [Call("lookUp"), Say("Hello."), Say("It is 42.")]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client = await dial(server)
        call_id = await ask(client)
        await client.turn()
        await client.send(user("hello"))
        assert "newHandle" not in str(await client.turn())
        await client.send(response(call_id))
        assert await client.handle()
    assert [reply.text for reply in server.replies] == ["Hello.", "It is 42."]


async def test_a_silent_response_is_learnt_and_not_spoken_about(dial: Dial) -> None:
    """SILENT adds to the context only (documented)."""
    script = [Call("lookUp"), Say("You asked for 42.")]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client = await dial(server)
        call_id = await ask(client)
        await client.send(scheduled(call_id, scheduling="SILENT"))
        await server.until(lambda: server.knows("forty-two"), "the result")
        assert server.remaining
        await client.send(user("what did I ask for?"))
        assert (await server.replied()).trigger == "client_content"
    assert server.tool_responses[0].scheduling == "SILENT"


@pytest.mark.parametrize("fields", [{}, {"scheduling": "WHEN_IDLE"}])
async def test_a_response_waits_until_the_model_has_spoken(
    dial: Dial, fields: dict[str, str]
) -> None:
    """WHEN_IDLE is the default (documented); each frame is answered by itself."""
    gate = Gate()
    script = [
        Calls([Call("lookUp"), Call("book")]),
        Say("A story.", gate=gate),
        Say("A."),
        Say("B."),
    ]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client = await dial(server)
        await client.send(user("do both, and tell a story"))
        first, second = await client.call_ids()
        await client.send(user("now the story"))
        await gate.reached()
        await client.send(scheduled(first, **fields))
        await client.send(scheduled(second, name="book", **fields))
        await server.until(lambda: len(server.tool_responses) == 2, "the responses")
        assert len(server.replies) == 1
        gate.open()
        await server.replied(3)
    assert not server.replies[0].interrupted


async def test_an_interrupting_response_cuts_what_is_being_said(dial: Dial) -> None:
    """INTERRUPT while the model speaks stops it at once (documented)."""
    gate = Gate()
    script = [Call("lookUp", goes_on=True), Say("A story.", gate=gate), Say("It is 42!")]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client = await dial(server)
        call_id = await ask(client)
        await gate.reached()
        await client.send(scheduled(call_id, scheduling="INTERRUPT"))
        await server.replied()
    assert [reply.interrupted for reply in server.replies] == [True, False]
    assert server.replies[1].knew("forty-two")


async def test_an_interrupting_response_cuts_what_is_said_and_not_yet_heard(dial: Dial) -> None:
    """Recorded on 2.5: after ``generationComplete`` come ``interrupted`` and ``turnComplete``."""
    gate = Gate()
    script = [Call("lookUp", goes_on=True), Say("A story.", turn_gate=gate), Say("It is 42!")]
    async with GeminiLiveServer(script, profile="2.5-native-audio") as server:
        client = await dial(server, tools=tools("NON_BLOCKING"))
        call_id = await ask(client)
        await gate.reached()
        await client.send(scheduled(call_id, scheduling="INTERRUPT"))
        cut, answer = await client.turn(), await client.turn()
    ends = [set(message["serverContent"]) for message in cut[-3:]]
    assert ends == [{"generationComplete"}, {"interrupted"}, {"turnComplete"}]
    assert "usageMetadata" in cut[-1]
    assert "42" in str(answer)


@pytest.mark.parametrize(
    ("profile", "declared", "waits"),
    [("2.5-native-audio", "NON_BLOCKING", False), ("3.8-live", None, True)],
)
async def test_an_interrupting_response_waits_on_3_8_for_a_caller_who_speaks(
    dial: Dial, profile: str, declared: str | None, waits: bool
) -> None:
    """2.5 cuts in at once (documented)."""
    script = [Call("lookUp"), Say("It is 42!"), Say("You were saying?")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client = await dial(server, tools=tools(declared), realtimeInputConfig=MANUAL)
        call_id = await ask(client)
        await client.send({"realtime_input": {"activityStart": {}}})
        await client.send(scheduled(call_id, scheduling="INTERRUPT"))
        await server.until(lambda: server.tool_responses, "the response")
        assert len(server.replies) == (0 if waits else 1)
        await client.send({"realtime_input": {"activityEnd": {}}})
        await server.replied(2)
    assert [reply.trigger for reply in server.replies] == ["tool_response", "activity_end"]


async def test_scheduling_is_also_read_inside_the_result(dial: Dial) -> None:
    """Older documentation puts it there."""
    async with GeminiLiveServer([Call("lookUp")], profile="3.8-live") as server:
        client = await dial(server)
        call_id = await ask(client)
        result = {"output": "forty-two", "scheduling": "SILENT"}
        await client.send(scheduled(call_id, response=result))
        await server.until(lambda: server.knows("forty-two"), "the result")
    assert server.replies == []


async def test_an_unknown_scheduling_is_refused(dial: Dial) -> None:
    """An enumeration has the values it has (inferred)."""
    async with GeminiLiveServer([Call("lookUp")], profile="3.8-live") as server:
        client = await dial(server)
        await client.send(scheduled(await ask(client), scheduling="SOON"))
        assert (await client.closed())[0] == 1007
        server.forgive("'SOON'")


async def test_a_call_that_continues_takes_further_responses(dial: Dial) -> None:
    """``will_continue`` leaves the call open; the last response may be empty (documented)."""
    script = [Call("lookUp"), Say("Half way."), Say("Done.")]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client = await dial(server)
        call_id = await ask(client)
        await client.send(scheduled(call_id, "half", will_continue=True))
        await server.replied()
        assert server.calls[0].open
        await client.send(scheduled(call_id, response={}, will_continue=False))
        await server.replied(2)
        assert not server.calls[0].open
    assert [told.verdict for told in server.tool_responses] == ["accepted", "accepted"]
    assert [told.will_continue for told in server.tool_responses] == [True, False]


@pytest.mark.parametrize("how", ["voice", "text", "activity"])
async def test_new_input_of_the_caller_cancels_a_blocking_call_on_3_8(dial: Dial, how: str) -> None:
    """The call is taken back, its turn ends, the input is answered (documented)."""
    script = [Call("lookUp"), Say("As you wish.")]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        config = MANUAL if how == "activity" else {}
        client = await dial(server, tools=tools("BLOCKING"), realtimeInputConfig=config)
        call_id = await ask(client)
        if how == "voice":
            await server.caller_says("never mind")
        elif how == "text":
            await client.send({"realtime_input": {"text": "never mind"}})
        else:
            await client.send({"realtime_input": {"activityStart": {}}})
            await client.send({"realtime_input": {"activityEnd": {}}})
        *_, cancelled = await client.until("toolCallCancellation")
        assert cancelled == {"toolCallCancellation": {"ids": [call_id]}}
        await server.replied()
    assert server.calls[0].cancelled


async def test_new_input_leaves_a_non_blocking_call_alone(dial: Dial) -> None:
    """It runs on, and its response is spoken about."""
    script = [Call("lookUp"), Say("Hello."), Say("It is 42.")]
    async with GeminiLiveServer(script, profile="3.8-live") as server:
        client = await dial(server)
        call_id = await ask(client)
        await server.caller_says("are you there")
        await client.send(response(call_id))
        await server.replied(2)
    assert not server.calls[0].cancelled


async def test_several_utterances_answer_one_request_and_the_last_says_idle(dial: Dial) -> None:
    """Extended thinking: each ends a turn, only IDLE ends the interaction (documented)."""
    script = [Say("Let me think.", in_progress=True), Say("Nearly.", in_progress=True), Say("So.")]
    async with GeminiLiveServer(script, profile="3.8-extended-thinking") as server:
        client = await dial(server)
        await client.send(user("think"))
        turns = [await client.turn() for _ in range(3)]
    assert [status(turn) for turn in turns] == ["IN_PROGRESS", "IN_PROGRESS", "IDLE"]
    assert str(turns).count("newHandle") == 1, "the one that follows the setup"


async def test_utterances_follow_each_other_without_a_status_on_other_families(
    dial: Dial, profile: str
) -> None:
    """The turns are there, and nothing says that more will come."""
    script = [Say("Let me think.", in_progress=True), Say("So.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client = await dial(server)
        await client.send(user("think"))
        assert [status(await client.turn()) for _ in range(2)] == [None, None]


async def test_a_turn_that_leaves_a_call_open_is_in_progress(dial: Dial) -> None:
    """The request is not done before its function has been answered (documented)."""
    script = [Call("lookUp", goes_on=True), Say("One moment."), Say("It is 42.")]
    async with GeminiLiveServer(script, profile="3.8-extended-thinking") as server:
        client = await dial(server)
        call_id = await ask(client)
        assert status(await client.turn()) == "IN_PROGRESS"
        await client.send(scheduled(call_id, scheduling="SILENT"))
        assert status(await client.turn()) == "IDLE"


async def test_extended_thinking_reads_a_response_without_a_name_as_a_failure(dial: Dial) -> None:
    """The model learns that the call failed, not its result (observed)."""
    script = [Call("lookUp"), Say("Something went wrong.")]
    async with GeminiLiveServer(script, profile="3.8-extended-thinking") as server:
        client = await dial(server)
        call_id = await ask(client)
        await client.send(response(call_id, ""))
        reply = await server.replied()
        server.forgive("names ''")
    assert reply.knew("failed")
    assert not reply.knew("forty-two")


@pytest.mark.parametrize("family", EVERY_OF_3_8)
async def test_3_8_refuses_content_without_a_role(dial: Dial, family: str) -> None:
    """Roles are explicit (observed)."""
    async with GeminiLiveServer(profile=family) as server:
        client = await dial(server)
        turns = [{"parts": [{"text": "x"}]}]
        await client.send({"client_content": {"turns": turns, "turnComplete": True}})
        assert (await client.closed())[0] == 1007
        server.forgive("without a role")


async def test_a_batch_may_hold_calls_of_both_kinds(dial: Dial) -> None:
    """The turn waits for the blocking one only."""
    declarations = [{"name": "lookUp"}, {"name": "book", "behavior": "NON_BLOCKING"}]
    script = [Calls([Call("lookUp"), Call("book")]), Say("Found."), Say("Booked.")]
    async with GeminiLiveServer(script) as server:
        client = await dial(server, tools=[{"functionDeclarations": declarations}])
        await client.send(user("do both"))
        first, second = await client.call_ids()
        await client.send(response(first))
        await server.replied()
        assert server.calls[1].open
        await client.send(response(second, "book"))
        await server.replied(2)
