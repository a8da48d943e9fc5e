"""What the simulator holds against the client, and how it says so."""

from __future__ import annotations

import re
from typing import Any

import pytest

from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say, Silence

from .conftest import Dial, user


async def test_a_step_that_is_not_played_fails_and_is_named() -> None:
    """Leaving a strict server verifies that the script was played."""
    with pytest.raises(AssertionError, match=r"not played: Say\(text='Never\.'\)"):
        async with GeminiLiveServer([Say("Never.")]):
            pass


async def test_an_unexpected_frame_fails_and_is_shown_on_the_timeline(dial: Dial) -> None:
    """The message names the connection, the fault and the close code."""
    async with GeminiLiveServer(strict=False) as server:
        client = await dial(server)
        await client.send({"surprise": {}})
        await client.closed()
    with pytest.raises(AssertionError) as failed:
        server.verify()
    assert "connection 1: unknown frame 'surprise' (refused with 1007)" in str(failed.value)
    assert "received surprise" in str(failed.value)


async def test_input_with_nothing_left_in_the_script_is_a_breach(dial: Dial) -> None:
    """The model stays silent and the test fails."""
    server = GeminiLiveServer(strict=False)
    async with server:
        client = await dial(server)
        await client.send(user("anyone?"))
        await server.until(lambda: server.breaches, "the breach")
    with pytest.raises(AssertionError, match="nothing left in the script: got client_content"):
        server.verify()


async def test_an_error_in_the_block_is_not_hidden_by_the_verification() -> None:
    """What went wrong first is what is reported."""
    with pytest.raises(ZeroDivisionError):
        async with GeminiLiveServer([Say("Never.")]):
            raise ZeroDivisionError


async def test_forgiving_what_did_not_happen_fails() -> None:
    """``forgive`` is an assertion as well."""
    async with GeminiLiveServer() as server:
        with pytest.raises(AssertionError, match="no breach contains 'role'"):
            server.forgive("role")


async def test_waiting_in_vain_says_for_what_and_shows_the_timeline(dial: Dial) -> None:
    """A timeout is an AssertionError that can be read."""
    async with GeminiLiveServer() as server:
        await dial(server)
        with pytest.raises(AssertionError, match=r"for completed reply 1") as failed:
            await server.replied(timeout=0.01)
    assert "sent setupComplete" in str(failed.value)


async def test_a_state_that_lasts_for_one_event_is_seen(dial: Dial) -> None:
    """Predicates are looked at on every event, not when the waiter gets round to it."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        client = await dial(server)
        await client.send(user("hello"))
        await server.until(
            lambda: any(r.text and not r.completed for r in server.replies), "half a reply"
        )
        assert server.replies[0].completed


async def test_what_a_predicate_raises_reaches_the_waiter() -> None:
    """A broken predicate fails at once instead of timing out."""
    async with GeminiLiveServer() as server:
        with pytest.raises(ZeroDivisionError):
            await server.until(lambda: 1 / 0, "nonsense")


async def test_the_timeline_is_in_order_and_folds_audio(dial: Dial) -> None:
    """Every event has its time and connection; a run of audio is one event with a count."""
    async with GeminiLiveServer([Say("", audio_seconds=0.4)]) as server:
        client = await dial(server)
        for _ in range(3):
            await client.send({"realtime_input": {"audio": {"data": "AAAA"}}})
        await client.send(user("hello"))
        await server.replied()
    events = [(event.what, event.detail) for event in server.timeline]
    assert ("received realtime_input.audio", "x3") in events
    assert ("sent serverContent.audio", "x10") in events
    assert [event.at for event in server.timeline] == sorted(e.at for e in server.timeline)


async def test_the_records_stay_readable_after_the_server_has_closed(dial: Dial) -> None:
    """A connection that the client left open is closed by the server."""
    async with GeminiLiveServer() as server:
        await dial(server)
    assert server.connections[0].closed == (1006, "", "server")
    assert server.connections[0].declared_tools == {"lookUp", "book"}


async def test_a_context_update_changes_the_declared_tools(dial: Dial) -> None:
    """The SDK sends tools as a list within a list."""
    async with GeminiLiveServer() as server:
        client = await dial(server)
        await client.send({"contextUpdate": {"tools": {"tools": []}}})
        await server.until(
            lambda: not server.connections[0].declared_tools, "the tools to be cleared"
        )


async def test_a_call_waits_to_be_asked_for_by_name_and_number(dial: Dial) -> None:
    """``called`` returns the n-th call of a function."""
    script = [Call("lookUp", {"n": 1}, then_next=True), Call("lookUp", {"n": 2})]
    async with GeminiLiveServer(script) as server:
        client = await dial(server)
        await client.send(user("go"))
        assert (await server.called("lookUp", 2)).args == {"n": 2}


async def test_a_repeating_script_never_ends(dial: Dial) -> None:
    """It starts over, and leaves nothing to be played."""
    async with GeminiLiveServer([Say("Hi.")], repeat=True) as server:
        client = await dial(server)
        for _ in range(3):
            await client.send(user("hello"))
            await client.turn()


async def test_a_paced_speech_is_whole(dial: Dial) -> None:
    """Pace spreads the chunks and changes nothing else."""
    async with GeminiLiveServer([Say("Hi there.")], pace=0.001) as server:
        client = await dial(server)
        await client.send(user("hello"))
        await client.turn()
    assert server.replies[0].completed


def test_a_script_that_cannot_be_played_is_refused() -> None:
    """Mistakes in a script show where it is written."""
    with pytest.raises(ValueError, match="then_next needs another call"):
        GeminiLiveServer([Call("lookUp", then_next=True), Say("Hi.")])
    with pytest.raises(ValueError, match="the gate is after chunk 9"):
        Say("Hi.", gate=Gate(), gate_after=9)
    with pytest.raises(ValueError, match="no profile 'x'"):
        GeminiLiveServer(profile="x")


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        (["x"], "script[0]='x': expected a step such as Say('Hello.')"),
        ([Say("Hi."), {"say": "x"}], "script[1]={'say': 'x'}: expected a step"),
        ("Hello.", "script='Hello.': expected a list of steps such as [Say('Hello.')]"),
        (Silence(), "script=Silence(usage=True): expected a list of steps"),
    ],
)
def test_a_script_of_anything_but_steps_is_refused_where_it_is_written(
    script: Any, complaint: str
) -> None:
    """The first thing that is no step is shown with its place."""
    with pytest.raises(TypeError, match=re.escape(complaint)):
        GeminiLiveServer(script)


async def test_a_gate_that_nobody_reaches_says_so() -> None:
    """A gate has a deadline of its own."""
    with pytest.raises(AssertionError, match="did not reach the gate"):
        await Gate().reached(timeout=0.01)


async def test_a_script_can_be_replaced_while_it_is_played() -> None:
    """What was left of it is not played any more, and need not be."""
    async with GeminiLiveServer([Say("Never said.")]) as server:
        server.go_on_with([])
        assert server.remaining == []
        with pytest.raises(TypeError, match="expected a step"):
            server.go_on_with(["Hello."])  # type: ignore[list-item]
