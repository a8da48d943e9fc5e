"""``generate_reply`` works with every server, whatever its model is called."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents import llm

from livekit_gemini_resilient import ResilienceOptions
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Say, Silence

from .stack import (
    EVERY,
    PROFILES,
    WEATHER,
    OnCall,
    connected_client,
    eventually,
    on_call,
    ours_and_plain,
)

NAMES = ["gemini-3.1-flash-live-preview", "gemini-3.8-live", "gemini-live-2.5-flash-native-audio"]


@pytest.mark.fault("C1")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("instructions", [None, "Greet the caller."])
async def test_generate_reply_works_under_any_model_name(
    profile: str, name: str, instructions: str | None
) -> None:
    """A reply is asked for in a way that no recorded family refuses, by no model's name."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server, model=name) as call,
    ):
        options = {} if instructions is None else {"instructions": instructions}
        call.session.generate_reply(**options)
        await call.says("Hello.")


@pytest.mark.fault("C1")
@ours_and_plain(plain_survives=("1.8.3", "1.8.9"))
async def test_generate_reply_is_not_refused_for_newer_models(profile: str, plain: bool) -> None:
    """1.6.5 refuses by the model's name; we do not."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server, plain=plain, model="gemini-3.1-flash-live-preview") as call,
    ):
        call.session.generate_reply(instructions="Greet the caller.")
        await call.says_within("Hello.")


@pytest.mark.parametrize("profile", EVERY)
async def test_typed_input_is_answered_once(profile: str) -> None:
    """Text input goes out with its request, as one turn of the caller."""
    async with (
        GeminiLiveServer([Say("Hello, Ada.")], profile=profile) as server,
        on_call(server) as call,
    ):
        call.session.generate_reply(user_input="My name is Ada.")
        await call.says("Hello, Ada.")
        assert server.replies[0].knew("My name is Ada.")
        assert server.times_told("My name is Ada.") == 1


async def given(reply: asyncio.Future[llm.GenerationCreatedEvent], call: OnCall) -> None:
    """Wait until a request was answered by a generation.

    Raises:
        AssertionError: It was not, within ``patience``.
    """
    done, _ = await asyncio.wait([reply], timeout=call.patience)
    assert done, "the request is still pending"
    assert not reply.cancelled(), "the request was cancelled"
    assert reply.exception() is None
    assert reply.result().user_initiated


@pytest.mark.fault("C2")
@ours_and_plain(on=EVERY)
async def test_reply_that_is_asked_for_in_the_tick_of_a_restart_is_given_once(
    profile: str, plain: bool
) -> None:
    """It is neither drained with the queue nor asked for twice."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        reply = call.realtime.generate_reply(instructions="Greet the caller.")
        await call.add_tool_at_once()
        await given(reply, call)
        await server.connected(2)
        assert len(server.replies) == 1


@pytest.mark.fault("C2")
@pytest.mark.parametrize("profile", EVERY)
async def test_reply_that_is_asked_for_during_a_reconnect_comes_on_the_new_connection(
    profile: str,
) -> None:
    """A request that could not be written waits, with what was typed, for the next connection."""
    async with (
        GeminiLiveServer([Say("Hello, Ada.")], profile=profile) as server,
        on_call(server) as call,
    ):
        async with server.holding_dials() as held:
            await call.add_tool()
            await held.reached()
            call.session.generate_reply(user_input="My name is Ada.")
            await asyncio.sleep(0)
        await call.says("Hello, Ada.")
        assert server.replies[0].connection == 2
        assert server.times_told("My name is Ada.") == 1


@pytest.mark.fault("C2")
@pytest.mark.parametrize("profile", EVERY)
async def test_restart_waits_for_a_reply_that_was_asked_for(profile: str) -> None:
    """It is not asked for twice, and not cut."""
    gate = Gate()
    async with (
        GeminiLiveServer([Say("Hello.", gate=gate, gate_after=0)], profile=profile) as server,
        on_call(server) as call,
    ):
        call.session.generate_reply(user_input="My name is Ada.")
        await gate.reached()
        call.realtime.update_options(voice="Kore")
        gate.open()
        await call.says("Hello.")
        await server.connected(2)
        assert [reply.connection for reply in server.replies] == [1]
        assert server.times_told("My name is Ada.") <= 1


@pytest.mark.fault("C3")
@ours_and_plain(on=EVERY)
async def test_reply_that_was_asked_for_before_a_drop_is_asked_for_again(
    profile: str, plain: bool
) -> None:
    """A request that was written and not begun is asked once more on the next connection."""
    gate = Gate()
    script = [Say("Never heard.", gate=gate, gate_after=0), Say("Hello.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        call.session.generate_reply(instructions="Greet the caller.")
        await gate.reached()
        await server.drop(1011)
        await call.says_within("Hello.")
        gate.open()


@pytest.mark.fault("C3")
@pytest.mark.parametrize("what", ["drop", "abort", "goAway"])
@ours_and_plain(on=EVERY)
async def test_typed_input_is_answered_once_although_the_link_was_lost(
    profile: str, what: str, plain: bool
) -> None:
    """It was written, and nothing of the reply had come."""
    gate = Gate()
    script = [Say("Never heard.", gate=gate, gate_after=0), Say("Hello, Ada.")]
    async with (
        GeminiLiveServer(script, profile=profile, strict=False) as server,
        on_call(server, plain=plain) as call,
    ):
        call.session.generate_reply(user_input="My name is Ada.")
        await gate.reached()
        if what == "goAway":
            await server.go_away(0.0)
        else:
            await (server.drop(1011) if what == "drop" else server.abort())
        await call.says_within("Hello, Ada.")
        assert server.replies[-1].knew("My name is Ada.")
        assert server.times_told("My name is Ada.") == 1
        gate.open()


@pytest.mark.fault("C4")
@ours_and_plain(on=EVERY)
async def test_reply_that_is_cancelled_in_the_tick_of_its_request_is_not_asked_for(
    profile: str, plain: bool
) -> None:
    """The writer had not written it yet."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        call.realtime.generate_reply(instructions="Greet the caller.").cancel()
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        await server.issue_handle()
        assert [reply.trigger for reply in server.replies] == ["caller"]
        assert not server.knows("Greet the caller.")
        assert "client_content" not in str(server.connections[0].frames)


@pytest.mark.fault("C4")
@ours_and_plain(on=EVERY)
async def test_reply_that_is_cancelled_before_there_is_a_connection_is_not_asked_for(
    profile: str, plain: bool
) -> None:
    """No ghost on the next connection."""
    async with (
        GeminiLiveServer([Say("Hello.")], profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        async with server.holding_dials() as held:
            await call.add_tool()
            await held.reached()
            reply = call.realtime.generate_reply(instructions="Greet the caller.")
            await asyncio.sleep(0)
            reply.cancel()
        await server.connected(2)
        await connected_client(call.realtime)
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        assert [reply.trigger for reply in server.replies] == ["caller"]
        assert not server.knows("Greet the caller.")


@pytest.mark.fault("C4")
@pytest.mark.parametrize("profile", EVERY)
async def test_reply_that_is_cancelled_on_the_wire_is_nobodys(profile: str) -> None:
    """It is heard, and not taken for what another request asked for."""
    gate = Gate()
    script = [Say("Hello.", gate=gate, gate_after=0)]
    async with GeminiLiveServer(script, profile=profile) as server, on_call(server) as call:
        created: list[llm.GenerationCreatedEvent] = []
        call.realtime.on("generation_created", created.append)
        reply = call.realtime.generate_reply(instructions="Greet the caller.")
        await gate.reached()
        reply.cancel()
        await asyncio.sleep(0)
        gate.open()
        await call.says("Hello.")
        assert [event.user_initiated for event in created] == [False]


@pytest.mark.fault("C5")
@ours_and_plain(on=EVERY)
async def test_reply_that_is_answered_by_an_empty_turn_is_asked_for_in_another_way(
    profile: str, plain: bool
) -> None:
    """Once; and the way that worked is used from then on."""
    script = [Silence(), Say("Hello."), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile, strict=False) as server,
        on_call(server, plain=plain) as call,
    ):
        call.session.generate_reply(instructions="Greet the caller.")
        await call.says_within("Hello.")
        call.session.generate_reply(instructions="Say goodbye.")
        await call.says_within("Goodbye.")
        triggers = [reply.trigger for reply in server.replies if reply.text]
        assert triggers == ["realtime_text", "realtime_text"]
        assert call.said("user") == []


@pytest.mark.fault("C5")
@ours_and_plain(on=EVERY)
async def test_reply_that_is_answered_by_two_empty_turns_fails_at_once(
    profile: str, plain: bool
) -> None:
    """Nobody waits for the time-out."""
    script = [Silence(), Silence()]
    async with (
        GeminiLiveServer(script, profile=profile, strict=False) as server,
        on_call(server, plain=plain) as call,
    ):
        reply = call.realtime.generate_reply(instructions="Greet the caller.")
        done, _ = await asyncio.wait([reply], timeout=call.patience)
        assert done, "the request is still pending"
        assert "empty turn" in str(reply.exception())


@pytest.mark.fault("C6")
@pytest.mark.parametrize("profile", EVERY)
async def test_reply_inside_a_tool_fails_at_once_and_says_what_to_do(profile: str) -> None:
    """LiveKit withholds the result while a reply is pending; a blocking model waits for it."""
    failures: list[llm.RealtimeError] = []
    script = [Call("get_weather", {"city": "London"}), Say("It is foggy.")]
    async with GeminiLiveServer(script, profile=profile) as server, on_call(server) as call:

        async def in_tool() -> None:
            with pytest.raises(llm.RealtimeError, match="return from the tool first") as caught:
                await call.realtime.generate_reply(instructions="Say that you are looking.")
            failures.append(caught.value)

        call.in_tool = in_tool
        await server.caller_says("What is the weather in London?")
        await call.says("It is foggy.")
        assert len(failures) == 1
        assert server.replies[0].knew(WEATHER)


@pytest.mark.fault("C6")
@ours_and_plain(on=EVERY)
async def test_reply_inside_a_tool_can_be_spoken_before_the_result(
    profile: str, plain: bool
) -> None:
    """Opt-in: the call is answered "still running" first, the result is said later."""
    options = {} if plain else {"resilience": ResilienceOptions(reply_during_call="interim")}
    script = [
        Call("get_weather", {"city": "London"}),
        Say("One moment, please."),
        Say("It is foggy."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, **options) as call,
    ):

        async def in_tool() -> None:
            call.session.generate_reply(instructions="Ask for patience.")
            await call.says_within("One moment, please.")

        call.in_tool = in_tool
        await server.caller_says("What is the weather in London?")
        await call.says_within("It is foggy.")
        first, second = server.replies
        assert not first.knew(WEATHER)
        assert second.knew(WEATHER)
        (response,) = server.tool_responses
        assert "still running" in str(response.response)
        assert "Ask for patience." in str(response.response)


@pytest.mark.fault("C8")
@ours_and_plain(on=EVERY)
async def test_reply_with_fewer_tools_costs_no_reconnect(profile: str, plain: bool) -> None:
    """What is taken away for one reply is refused there, and usable again after it.

    LiveKit lets a reply have some of the agent's tools, and no others.
    """
    script = [
        Call("get_weather", {"city": "London"}),
        Say("Hello."),
        Call("get_weather", {"city": "Paris"}),
        Say("It is foggy."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile, strict=not plain) as server,
        on_call(server, plain=plain) as call,
    ):
        call.session.generate_reply(instructions="Greet the caller.", tools=[])
        if plain:
            await server.connected(2)
        assert len(server.connections) == 1
        await call.says("Hello.")
        assert call.runs == 0
        assert "not available any more" in str(server.tool_responses[0].response)
        await eventually(
            lambda: "get_weather" in call.realtime.tools.function_tools, "the tools as before"
        )
        await server.caller_says("What is the weather?")
        await call.says("It is foggy.")
        assert call.runs == 1
        assert len(server.connections) == 1


@pytest.mark.fault("C8")
@ours_and_plain(on=EVERY)
async def test_reply_with_more_tools_costs_one_reconnect(profile: str, plain: bool) -> None:
    """It comes before the reply; what is taken back after it goes with the next rotation."""
    script = [
        Say("How can I help?"),
        Call("book_table", {"day": "Monday"}),
        Say("I cannot do that."),
        Say("Goodbye."),
    ]
    async with (
        GeminiLiveServer(script, profile=profile, strict=not plain) as server,
        on_call(server, plain=plain) as call,
    ):
        before = call.realtime.tools.flatten()
        await call.add_tool_at_once()
        if plain:
            await server.connected(2)
        await given(call.realtime.generate_reply(instructions="Offer a table."), call)
        reply = await server.replied()
        assert reply.connection == 2
        await call.realtime.update_tools(before)
        if plain:
            await server.connected(3)
        assert len(server.connections) == 2
        await server.caller_says("Book a table for Monday.")
        await call.says("I cannot do that.")
        assert "not available any more" in str(server.tool_responses[0].response)
        call.realtime.update_options(voice="Kore")
        third = await server.connected(3)
        assert third.declared_tools == {"get_weather"}
        await server.caller_says("Goodbye.")
        await call.says("Goodbye.")


@pytest.mark.fault("C7")
@pytest.mark.parametrize("moment", ["written", "unsent"])
@ours_and_plain(on=EVERY)
async def test_reply_that_is_pending_at_close_fails_with_a_realtime_error(
    profile: str, moment: str, plain: bool
) -> None:
    """Never with a bare ``CancelledError``, whether it was written or not."""
    gate = Gate()
    script = [Say("Too late.", gate=gate, gate_after=0)]
    async with (
        GeminiLiveServer(script, profile=profile, strict=False) as server,
        on_call(server, plain=plain) as call,
    ):
        if moment == "unsent":
            async with server.holding_dials() as held:
                await call.add_tool()
                await held.reached()
                pending = call.realtime.generate_reply()
                await call.realtime.aclose()
        else:
            pending = call.realtime.generate_reply()
            await gate.reached()
            await call.realtime.aclose()
        assert pending.done()
        assert not pending.cancelled()
        assert isinstance(pending.exception(), llm.RealtimeError)
        assert "closed" in str(pending.exception())
        with pytest.raises(llm.RealtimeError, match="closed"):
            await call.realtime.generate_reply()


@pytest.mark.parametrize("profile", EVERY)
async def test_newer_request_takes_the_place_of_one_that_is_pending(profile: str) -> None:
    """The older fails at once and says so; it is not asked for if it was not written yet."""
    async with (
        GeminiLiveServer([Say("Goodbye.")], profile=profile) as server,
        on_call(server) as call,
    ):
        older = call.realtime.generate_reply(instructions="Greet the caller.")
        newer = call.realtime.generate_reply(instructions="Say goodbye.")
        with pytest.raises(llm.RealtimeError, match="newer"):
            await older
        await given(newer, call)
        assert not server.knows("Greet the caller.")
