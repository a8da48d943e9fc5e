"""Calls that come again, or more than once."""

from __future__ import annotations

from typing import Literal

import pytest

from livekit_gemini_resilient.testing import Call, Calls, GeminiLiveServer, Say

from .conftest import Dial, response, user


async def test_a_call_is_issued_again_after_a_resume_that_forgot_it(dial: Dial) -> None:
    """The same function and arguments, under another id."""
    script = [
        Say("Hi."),
        Call("lookUp", {"city": "Oslo"}),
        Say("Rain."),
        Call("lookUp", again=True),
        Say("Rain, again."),
    ]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("hello"))
        handle = await client.handle()
        await client.send(user("the weather?"))
        [first] = await client.call_ids()
        await client.send(response(first, output="rain"))
        await server.replied(2)
        await server.abort()
        client = await dial(server, sessionResumption={"handle": handle})
        assert not server.knows("rain")
        await client.send(user("the weather?"))
        [second] = await client.call_ids()
        await client.send(response(second, output="rain"))
        await server.replied(3)
    assert first != second
    assert server.calls[0].args == server.calls[1].args == {"city": "Oslo"}


async def test_a_call_is_issued_again_before_its_answer(dial: Dial) -> None:
    """Both are open, and both are waited for (observed: models do so)."""
    script = [Call("lookUp", {"n": 1}, then_next=True), Call("lookUp", again=True), Say("42.")]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        ids = await client.call_ids() + await client.call_ids()
        for call_id in ids:
            await client.send(response(call_id))
        await server.replied()
    assert [call.args for call in server.calls] == [{"n": 1}, {"n": 1}]


async def test_a_call_can_come_again_within_a_batch(dial: Dial) -> None:
    """Each call of a batch has options of its own in this."""
    script = [
        Call("lookUp", {"n": 1}),
        Calls([Call("book"), Call("lookUp", again=True)]),
        Say("Ok."),
    ]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("go"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id))
        first, second = await client.call_ids()
        await client.send(response(first, "book"))
        await client.send(response(second))
        await server.replied()
    assert server.calls[2].args == {"n": 1}


async def test_what_was_never_called_cannot_be_called_again(dial: Dial) -> None:
    """The script is at fault."""
    async with GeminiLiveServer([Call("lookUp", again=True)]) as server:
        client = await dial(server)
        await client.send(user("go"))
        await client.call_ids()
        server.forgive("never called")


@pytest.mark.parametrize("delivery", ["twice", "two_shapes"])
async def test_one_call_can_be_delivered_by_two_messages(
    dial: Dial, profile: str, delivery: Literal["twice", "two_shapes"]
) -> None:
    """One id, one call, one answer; the second shape is a part of a ``modelTurn`` (observed)."""
    script = [Call("lookUp", {"n": 1}, delivery=delivery), Say("42.")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        messages = await client.until("toolCall")
        if delivery == "twice":
            messages += await client.until("toolCall")
            call = messages[-2]["toolCall"]["functionCalls"]
        else:
            call = [
                part["functionCall"] for part in messages[-2]["serverContent"]["modelTurn"]["parts"]
            ]
        assert call == messages[-1]["toolCall"]["functionCalls"]
        await client.send(response(call[0]["id"]))
        await server.replied()
    assert len(server.calls) == 1


async def test_answering_a_call_for_each_delivery_is_a_breach(dial: Dial) -> None:
    """The second response is a duplicate."""
    async with GeminiLiveServer([Call("lookUp", delivery="twice"), Say("42.")]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        for call_id in await client.call_ids() + await client.call_ids():
            await client.send(response(call_id))
        await server.until(lambda: server.breaches, "the breach")
        server.forgive("a second response")


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (Call("lookUp", then_next=True), "then_next needs another call"),
        (Say("So.", in_progress=True), "in_progress needs another step"),
    ],
)
def test_a_step_that_needs_another_one_is_refused_at_the_end_of_a_script(
    step: Call | Say, why: str
) -> None:
    """The error shows the step."""
    with pytest.raises(ValueError, match=why):
        GeminiLiveServer([step])
