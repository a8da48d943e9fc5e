"""Faults happen when and how the test says; barriers hold until it lets go."""

from __future__ import annotations

import asyncio

import pytest
from websockets.exceptions import InvalidStatus

from livekit_gemini_resilient.testing import Call, Calls, Closed, Gate, GeminiLiveServer, Say

from .conftest import Dial, response, user


async def test_drop_closes_with_code_and_reason(dial: Dial) -> None:
    """The client sees what the test asked for."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        await server.drop(1008, "The operation was aborted.")
        assert await client.closed() == (1008, "The operation was aborted.")
        assert server.current is None
    assert server.connections[0].closed == Closed(1008, "The operation was aborted.", "server")


async def test_abort_ends_without_a_close_frame(dial: Dial) -> None:
    """A reset connection is 1006 to the client."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        await server.abort()
        assert (await client.closed())[0] == 1006


async def test_abort_can_leave_half_a_message(dial: Dial) -> None:
    """Half a frame is no message: the client sees 1006 and nothing else."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        await server.abort(half_of={"serverContent": {"turnComplete": True}})
        assert (await client.closed())[0] == 1006


async def test_a_speech_that_is_cut_by_a_fault_is_neither_completed_nor_interrupted(
    dial: Dial,
) -> None:
    """The reply keeps what had been said."""
    gate = Gate()
    async with GeminiLiveServer([Say("one two three four", gate=gate)]) as server:
        client = await dial(server)
        await client.send(user("count"))
        await gate.reached()
        await server.abort()
        gate.open()
    [reply] = server.replies
    assert (reply.text, reply.completed, reply.interrupted) == ("one two", False, False)


async def test_go_away_names_the_time_left_in_seconds(dial: Dial) -> None:
    """The duration is in protobuf's JSON form."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        await server.go_away(9.5)
        assert await client.next() == {"goAway": {"timeLeft": "9.5s"}}


async def test_any_bytes_and_any_message_can_be_sent(dial: Dial) -> None:
    """Binary and text messages of any content, for clients that must survive them."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        await server.send_raw(b"{nonsense")
        await server.send_raw("words")
        await server.send({"usageMetadata": {}})
        assert [await client.socket.recv() for _ in range(3)] == [
            b"{nonsense",
            "words",
            b'{"usageMetadata": {}}',
        ]


@pytest.mark.parametrize(("after", "known"), [(False, False), (True, True)])
async def test_a_trap_breaks_the_connection_before_or_after_the_frame_is_taken_in(
    dial: Dial, after: bool, known: bool
) -> None:
    """In neither case is there a reaction; the difference is what the server has learnt."""
    async with GeminiLiveServer([Call("lookUp")]) as server:
        client = await dial(server)
        trap = server.drop_on("tool_response", 1011, after=after)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id))
        await trap.sprung.wait()
        assert (await client.closed())[0] == 1011
        assert server.knows("forty-two") is known
        assert server.calls[0].answered is known
    assert server.replies == []


async def test_a_trap_can_reset_the_connection_and_springs_once(dial: Dial) -> None:
    """A code of ``None`` cuts TCP; the next connection is spared."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        server.drop_on("realtime_input.text", None)
        for code in (1006, 0):
            client = await dial(server)
            await client.send({"realtime_input": {"text": "hello"}})
            if code:
                assert (await client.closed())[0] == code
        await server.replied()


@pytest.mark.parametrize("kind", ["toolresponse", "toolResponse", "realtime_input.words", ""])
def test_a_trap_for_a_frame_that_does_not_exist_is_refused(kind: str) -> None:
    """The error lists what there is."""
    with pytest.raises(
        ValueError, match=r"setup, client_content, .* realtime_input\.text"
    ) as error:
        GeminiLiveServer().drop_on(kind)
    assert str(error.value).startswith(f"no frame is a {kind!r}; there are ")


async def test_a_trap_that_never_sprang_fails() -> None:
    """The fault did not happen, so the test has shown nothing."""
    with pytest.raises(AssertionError, match=r"never sprung: drop_on\('tool_response'\)"):
        async with GeminiLiveServer() as server:
            server.drop_on("tool_response")


async def test_a_trap_that_was_taken_back_spares_the_connection(dial: Dial) -> None:
    """Nothing is broken, and nothing is held against the test."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        server.drop_on("client_content").take_back()
        client = await dial(server)
        await client.send(user("hello"))
        await server.replied()


async def test_the_traps_for_a_kind_spring_one_after_the_other(dial: Dial) -> None:
    """A trap for ``realtime_input`` fits all of its fields."""
    async with GeminiLiveServer() as server:
        traps = [server.drop_on("realtime_input", code) for code in (1008, 1011)]
        for code in (1008, 1011):
            client = await dial(server)
            await client.send({"realtime_input": {"audioStreamEnd": True}})
            assert (await client.closed())[0] == code
    assert not any(trap.armed for trap in traps)


async def test_a_close_that_is_held_keeps_the_conversation_open(dial: Dial) -> None:
    """A resume during the close handshake is refused; after it, accepted (observed: 1.4-3 s)."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        client = await dial(server)
        await client.send(user("hello"))
        handle = await client.handle()
        async with server.holding_closes() as held:
            closing = asyncio.create_task(client.socket.close())
            await held.reached()
            assert server.current is None
            early = await dial(server, answered=False, sessionResumption={"handle": handle})
            assert (await early.closed())[0] == 1011
            held.release()
            await closing
        server.forgive("is open")
        await dial(server, sessionResumption={"handle": handle})
    assert server.connections[0].closed == Closed(1000, "", "client")


async def test_leaving_the_block_answers_the_close_that_was_held(dial: Dial) -> None:
    """A barrier lets go of itself."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        async with server.holding_closes() as held:
            closing = asyncio.create_task(client.socket.close())
            await held.reached()
            assert server.connections[0].closed is None
        await closing
    assert server.connections[0].closed == Closed(1000, "", "client")


async def test_a_dial_can_be_held_between_setup_and_answer(dial: Dial) -> None:
    """The setup has arrived, the connection is not accepted, and then it is."""
    async with GeminiLiveServer() as server:
        async with server.holding_dials() as held:
            client = await dial(server, answered=False)
            await held.reached()
            assert server.connections[0].setup
            assert server.current is None
        assert "setupComplete" in await client.next()
        assert await server.connected() is server.current


@pytest.mark.parametrize("code", [1011, 1008])
async def test_dials_are_refused_as_often_as_told(dial: Dial, code: int) -> None:
    """A refused dial is closed in answer to its setup; the next one succeeds."""
    async with GeminiLiveServer() as server, server.refusing_dials(2, code) as refused:
        for _ in range(2):
            client = await dial(server, answered=False)
            assert (await client.closed())[0] == code
        await refused.reached(2)
        await dial(server)
        assert server.current is server.connections[2]


async def test_dials_are_refused_by_http_status_for_as_long_as_the_block_runs(dial: Dial) -> None:
    """A status below 1000 refuses the upgrade; there is no connection then."""
    async with GeminiLiveServer() as server:
        async with server.refusing_dials(code=429) as refused:
            for _ in range(2):
                with pytest.raises(InvalidStatus):
                    await dial(server)
            await refused.reached(2)
        await dial(server)
    assert len(server.connections) == 1


async def test_cancelled_calls_are_not_open_and_their_turn_ends(dial: Dial) -> None:
    """``toolCallCancellation`` names the ids; a late response is taken no notice of."""
    async with GeminiLiveServer([Call("lookUp"), Say("Bye.")]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await server.cancel_calls(interrupted=True)
        messages = await client.turn()
        assert "interrupted" in messages[0]["serverContent"]
        assert messages[1] == {"toolCallCancellation": {"ids": [call_id]}}
        await client.send(response(call_id))
        await client.send(user("bye then"))
        await server.replied()
    assert server.calls[0].cancelled
    assert server.tool_responses[0].verdict == "ignored"


async def test_a_batch_of_which_one_call_is_cancelled_goes_on_with_the_others(dial: Dial) -> None:
    """The other ids of a batch are not affected."""
    script = [Calls([Call("lookUp"), Call("book")]), Say("Done.")]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("do both"))
        first, _ = await client.call_ids()
        await server.cancel_calls("book")
        assert server.calls[0].open
        await client.send(response(first))
        await server.replied()


async def test_a_turn_goes_on_when_the_last_open_call_is_cancelled_and_another_was_answered(
    dial: Dial,
) -> None:
    """What was answered is spoken about (inferred)."""
    script = [Calls([Call("lookUp"), Call("book")]), Say("Booked.")]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("do both"))
        _, second = await client.call_ids()
        await client.send(response(second, "book"))
        await server.until(lambda: server.calls[1].answered, "the answer")
        await server.cancel_calls()
        await server.replied()


async def test_a_barge_in_interrupts_the_reply_without_completing_it(
    dial: Dial, profile: str
) -> None:
    """``interrupted`` is followed by ``turnComplete``, unless told otherwise."""
    gate = Gate()
    async with GeminiLiveServer([Say("A long story.", gate=gate)], profile=profile) as server:
        client = await dial(server)
        await client.send(user("tell me"))
        await gate.reached()
        await server.interrupt(turn_complete=False)
        await server.send({"usageMetadata": {}})
        messages = await client.until("usageMetadata")
    assert "interrupted" in messages[-2]["serverContent"]
    assert server.replies[0].interrupted


async def test_the_caller_who_speaks_interrupts_and_is_answered(dial: Dial) -> None:
    """Server-side activity detection interrupts by default (documented)."""
    gate = Gate()
    async with GeminiLiveServer([Say("A long story.", gate=gate), Say("Yes?")]) as server:
        client = await dial(server)
        await client.send(user("tell me"))
        await gate.reached()
        await server.caller_says("wait a moment please")
        reply = await server.replied()
    assert server.replies[0].interrupted
    assert (reply.trigger, reply.text) == ("caller", "Yes?")


async def test_the_caller_can_be_heard_and_not_answered(dial: Dial) -> None:
    """``infer=False`` is a question whose answer never began."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        await server.caller_says("are you there", infer=False)
        assert "inputTranscription" in (await client.next())["serverContent"]
        assert server.knows("are you there")


async def test_a_verb_without_a_connection_says_so(dial: Dial) -> None:
    """The error shows the timeline."""
    async with GeminiLiveServer() as server:
        with pytest.raises(RuntimeError, match="no connection is open"):
            await server.drop()
        await dial(server)
        await server.abort()
        with pytest.raises(RuntimeError, match="no connection is open"):
            await server.interrupt(connection=server.connections[0])
