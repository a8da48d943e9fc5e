"""A conversation with the scripted model: what it says when, and what it remembers."""

from __future__ import annotations

import dataclasses

from livekit_gemini_resilient.testing import (
    PROFILES,
    Call,
    Calls,
    Entry,
    Gate,
    GeminiLiveServer,
    Say,
    Silence,
)

from .conftest import Dial, response, user


async def test_every_profile_speaks_the_script_in_whole_samples(dial: Dial, profile: str) -> None:
    """A `Say` sends its words and its audio, completes the generation, then the turn with usage."""
    async with GeminiLiveServer([Say("Good day to you.")], profile=profile) as server:
        client = await dial(server)
        await client.send(user("hello"))
        contents = [message["serverContent"] for message in await client.turn()]
    words = [content.get("outputTranscription", {}).get("text", "") for content in contents]
    assert "".join(words) == "Good day to you."
    assert sum("modelTurn" in content for content in contents) == 5
    assert [c for c in contents if "generationComplete" in c] == [contents[-2]]


async def test_a_blocking_call_is_followed_by_the_reply_that_its_answer_completes(
    dial: Dial, profile: str
) -> None:
    """Nothing is said between a call and its answer; the reply knows the result."""
    async with GeminiLiveServer([Call("lookUp"), Say("It is 42.")], profile=profile) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        assert server.calls[0].open
        assert server.replies == []
        await client.send(response(call_id))
        reply = await server.replied()
    assert reply.trigger == "tool_response"
    assert reply.knew("forty-two")
    assert reply.knew("what is it?")
    assert [told.verdict for told in server.tool_responses] == ["accepted"]


async def test_vertex_answers_a_response_with_an_empty_turn_and_then_speaks(dial: Dial) -> None:
    """A Vertex tool round has two turns, the first without content (recorded)."""
    script = [Call("lookUp"), Say("It is 42.")]
    async with GeminiLiveServer(script, profile="vertex-live-2.5") as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id))
        first, second = await client.turn(), await client.turn()
    assert not any("modelTurn" in str(message) for message in first)
    assert any("modelTurn" in str(message) for message in second)


async def test_the_turn_goes_on_only_when_every_call_of_a_batch_is_answered(dial: Dial) -> None:
    """Several calls in one message wait for all their answers."""
    script = [Calls([Call("lookUp"), Call("book", {"seat": 4})]), Say("Both done.")]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("do both"))
        first, second = await client.call_ids()
        await client.send(response(first))
        await server.until(lambda: server.calls[0].answered, "the first answer")
        assert server.replies == []
        await client.send(response(second, "book"))
        await server.replied()


async def test_a_second_tool_call_message_may_follow_without_an_answer(dial: Dial) -> None:
    """``then_next`` issues the next call in the same turn."""
    script = [Call("lookUp", then_next=True), Call("book"), Say("Done.")]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("do both"))
        ids = await client.call_ids() + await client.call_ids()
        await client.send(response(ids[1], "book"))
        await client.send(response(ids[0]))
        await server.replied()


async def test_words_can_precede_and_trail_a_call(dial: Dial) -> None:
    """Content around a call is neither a reply nor the end of the turn."""
    script = [
        Call("lookUp", say_first="One moment.", trailing="Looking", trailing_complete=True),
        Say("Found it."),
    ]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("find it"))
        assert any("modelTurn" in str(message) for message in await client.until("toolCall"))
        trailing = await client.until("generationComplete")
        assert any("modelTurn" in str(message) for message in trailing)
        await client.send(response(server.calls[0].id))
        await server.replied()
    assert [reply.text for reply in server.replies] == ["Found it."]


async def test_what_the_caller_says_while_a_call_is_open_is_answered_after_the_turn(
    dial: Dial,
) -> None:
    """The words are transcribed at once, and known to the model when their turn comes."""
    async with GeminiLiveServer([Call("lookUp"), Say("42."), Say("Bye.")]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await server.caller_says("and then goodbye")
        heard = (await client.next())["serverContent"]["inputTranscription"]
        assert heard == {"text": " and then goodbye"}
        await client.send(response(call_id))
        await server.replied(2)
    assert [reply.knew("goodbye") for reply in server.replies] == [False, True]


async def test_a_caller_interrupts_what_is_said_and_not_yet_heard(dial: Dial) -> None:
    """Recorded on 2.5: after ``generationComplete`` come ``interrupted``, ``turnComplete`` and the
    caller's words."""
    gate = Gate()
    script = [Say("A very long story.", turn_gate=gate), Say("As you wish.")]
    async with GeminiLiveServer(script) as server:
        client = await dial(server, inputAudioTranscription={})
        await client.send(user("tell me a story"))
        await gate.reached()
        await server.caller_says("stop")
        cut, answer = await client.turn(), await client.turn()
    ends = [set(message["serverContent"]) for message in cut[-3:]]
    assert ends == [{"generationComplete"}, {"interrupted"}, {"turnComplete"}]
    said = next(message["serverContent"] for message in answer if "serverContent" in message)
    assert said == {"inputTranscription": {"text": " stop"}}


async def test_client_content_interrupts_what_is_being_said(dial: Dial) -> None:
    """``interrupted``, ``turnComplete``, and no ``generationComplete``; then the new answer."""
    gate = Gate()
    script = [Say("A very long story.", gate=gate), Say("As you wish.")]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("tell me a story"))
        await gate.reached()
        await client.send(user("stop"))
        cut = await client.turn()
        await server.replied()
    assert "interrupted" in cut[-2]["serverContent"]
    assert "generationComplete" not in str(cut)
    assert server.replies[0].interrupted
    assert not server.replies[0].completed
    kinds = [entry.kind for entry in server.connections[0].context]
    assert kinds == ["user", "model", "user", "model"]


async def test_content_without_turn_complete_is_learnt_and_answers_nothing(dial: Dial) -> None:
    """The model waits for more (documented)."""
    async with GeminiLiveServer([Say("Yes.")]) as server:
        client = await dial(server)
        await client.send(user("my name is Ada", complete=False))
        await client.send(user("do you know my name?"))
        assert (await server.replied()).knew("Ada")


async def test_the_initial_history_starts_no_inference(dial: Dial, profile: str) -> None:
    """With ``initialHistoryInClientContent`` content is history up to ``turnComplete``."""
    async with GeminiLiveServer([Say("Ada.")], profile=profile) as server:
        client = await dial(server, historyConfig={"initialHistoryInClientContent": True})
        await client.send(user("my name is Ada"))
        await server.until(lambda: server.knows("Ada"), "the history")
        assert server.remaining
        await client.send(user("what is my name?"))
        assert (await server.replied()).knew("Ada")


async def test_realtime_text_is_answered_and_echoed_where_the_family_does(dial: Dial) -> None:
    """3.1 treats realtime text as typed speech (observed)."""
    async with GeminiLiveServer([Say("Hi.")], profile="3.1-flash-live") as server:
        client = await dial(server)
        await client.send({"realtime_input": {"text": "hello there"}})
        messages = await client.turn()
    assert messages[0]["serverContent"] == {"inputTranscription": {"text": "hello there"}}
    assert server.replies[0].trigger == "realtime_text"


async def test_manual_activity_is_answered_at_its_end(dial: Dial) -> None:
    """What was said between ``activityStart`` and ``activityEnd`` is one user turn."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        config = {"automaticActivityDetection": {"disabled": True}}
        client = await dial(server, realtimeInputConfig=config)
        await client.send({"realtime_input": {"activityStart": {}}})
        await server.caller_says("good")
        await server.caller_says("evening")
        await client.send({"realtime_input": {"activityEnd": {}}})
        assert (await server.replied()).knew("good evening")


async def test_silence_is_a_turn_without_content(dial: Dial, profile: str) -> None:
    """An empty turn has ``turnComplete`` and nothing before it."""
    async with GeminiLiveServer([Silence(usage=False)], profile=profile) as server:
        client = await dial(server)
        await client.send(user("hm"))
        [message] = await client.turn()
    assert "usageMetadata" not in message


async def test_the_turn_can_end_later_than_the_generation(dial: Dial) -> None:
    """``turn_gate`` stands for the playback that the service waits for (documented)."""
    gate = Gate()
    async with GeminiLiveServer([Say("Hi.", turn_gate=gate)]) as server:
        client = await dial(server)
        await client.send(user("hello"))
        assert (
            "generationComplete" in (await client.until("generationComplete"))[-1]["serverContent"]
        )
        await gate.reached()
        gate.open()
        assert "turnComplete" in (await client.next())["serverContent"]


async def test_a_response_to_a_call_of_another_connection_is_taken_no_notice_of(
    dial: Dial, profile: str
) -> None:
    """The model does not know the result, and says nothing (observed on 2.5 and 3.1)."""
    async with GeminiLiveServer([Call("lookUp")], profile=profile) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await server.abort()
        later = await dial(server)
        await later.send(response(call_id))
        await server.until(lambda: server.tool_responses, "the response")
        assert not server.knows("forty-two")
    assert [told.verdict for told in server.tool_responses] == ["ignored"]


async def test_the_same_step_is_told_apart_by_connection(dial: Dial) -> None:
    """``times_told`` counts on one connection what results and users said there."""
    async with GeminiLiveServer([Say("Yes."), Say("Yes.")]) as server:
        for _ in range(2):
            client = await dial(server)
            await client.send(user("remember the milk"))
            await client.turn()
        await server.replied(2)
    assert [connection.times_told("milk") for connection in server.connections] == [1, 1]


async def test_a_vertex_system_turn_is_a_system_entry(dial: Dial) -> None:
    """Role ``system`` is accepted on Vertex (documented) and is nobody's words."""
    async with GeminiLiveServer(profile="vertex-live-2.5") as server:
        client = await dial(server)
        turn = {"role": "system", "parts": [{"text": "be brief"}]}
        await client.send({"client_content": {"turns": [turn], "turnComplete": False}})
        await server.until(lambda: server.connections[0].context, "the turn")
    assert server.connections[0].context == [Entry("system", "be brief")]


async def test_a_profile_can_be_varied(dial: Dial) -> None:
    """A profile is a value; a server takes any."""
    varied = dataclasses.replace(PROFILES["2.5-native-audio"], call_ids="fc_N")
    async with GeminiLiveServer([Call("lookUp")], profile=varied) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
    assert call_id.startswith("fc_")
