"""Tools and options that cannot be used: those that can stay, and so does the connection."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from google.genai import types
from livekit.agents import function_tool, llm
from livekit.plugins import google

from livekit_gemini_resilient import RealtimeModel
from livekit_gemini_resilient.core.errors import ConnectionFailed, SettingsRefused, ToolsUnusable
from livekit_gemini_resilient.core.link import LinkState
from livekit_gemini_resilient.core.settings import SettingsState
from livekit_gemini_resilient.testing import PROFILES as SIMULATED
from livekit_gemini_resilient.testing import Call, Gate, GeminiLiveServer, Profile, Say

from .direct import connected, get_time, get_weather
from .stack import ANSWER, EVERY, WEATHER, OnCall, book_table, eventually, on_call, ours_and_plain

STORY = "Once upon a time there was a fog over London."

SCHEMAS: dict[str, dict[str, Any]] = {
    "a list of types": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
    "a reference to itself": {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    },
    "no schema": {"type": "nonsense"},
}
"""Of parameters, none of which the plugin can declare."""


def tool_with(parameters: dict[str, Any]) -> Any:
    """A tool ``find_order`` with parameters of its own."""

    async def find_order(raw_arguments: dict[str, object]) -> str:
        raise AssertionError("it was declared")

    schema = {"name": "find_order", "description": "Find an order.", "parameters": parameters}
    return function_tool(find_order, raw_schema=schema)


def errors_of(call: Any, kind: type[Exception]) -> list[Any]:
    """The errors of a kind that were reported; all of them are recoverable."""
    seen = [error for error in call.errors if isinstance(error.error, kind)]
    assert all(error.recoverable for error in seen)
    return [error.error for error in seen]


@pytest.mark.fault("E6")
@pytest.mark.parametrize("schema", SCHEMAS)
@ours_and_plain(on=EVERY)
async def test_a_tool_that_cannot_be_declared_costs_no_other_in_mid_call(
    profile: str, schema: str, plain: bool
) -> None:
    """The sentence is not cut, the tool that came along is declared, the event names the other."""
    gate = Gate()
    script = [Say(STORY, audio_seconds=0.4, gate=gate, gate_after=2), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Tell me a story.")
        await asyncio.wait_for(call.speaker.playing.wait(), 10)
        await call.agent.update_tools([*call.agent.tools, book_table, tool_with(SCHEMAS[schema])])
        if plain:
            await server.until(lambda: server.connections[0].closing, "the close of the socket")
        gate.open()
        await call.says_within(STORY)
        second = await server.connected(2)
        assert second.declared_tools == {"get_weather", "book_table"}
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")
        (error,) = errors_of(call, ToolsUnusable)
        assert error.names == ("find_order",)
        assert "find_order" in str(error)


@pytest.mark.fault("E6")
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("profile", EVERY)
async def test_a_tool_that_cannot_be_declared_costs_no_other_at_the_start(
    profile: str, schema: str
) -> None:
    """The conversation begins, the other tool works, the event names the one."""
    tools = [get_weather, tool_with(SCHEMAS[schema])]
    script = [Call("get_weather"), Say(ANSWER)]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, tools=tools) as call,
    ):
        assert server.connections[0].declared_tools == {"get_weather"}
        await server.caller_says("What is the weather?")
        await call.says(ANSWER)
        assert server.knows(WEATHER)
        (error,) = errors_of(call, ToolsUnusable)
        assert error.names == ("find_order",)


@pytest.mark.fault("E6")
async def test_a_tool_that_is_left_out_is_named_once_and_costs_no_connection() -> None:
    """Until it is gone and comes again."""
    bad = tool_with(SCHEMAS["no schema"])
    async with GeminiLiveServer([Say("Hello.")]) as server, connected(server) as direct:
        for tools in ([bad], [bad], [], [bad]):
            await direct.session.update_tools([get_time, get_weather, *tools])
        assert [type(event.error) for event in direct.errors] == [ToolsUnusable] * 2
        await server.caller_says("Hello?")
        await server.replied()
        assert len(server.connections) == 1


@pytest.mark.fault("E6")
@ours_and_plain(on=EVERY)
async def test_tools_that_the_server_refuses_in_mid_call_are_left_out(
    profile: str, plain: bool
) -> None:
    """The setup before is known to be taken: it is used again, and the event names what is new."""
    script = [Say("Hello."), Call("get_weather", {"city": "London"}), Say(ANSWER)]
    async with (
        GeminiLiveServer(script, profile=picky(profile, "book_table", names_it=True)) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        await call.becomes_resumable()
        await call.add_tool()
        await server.until(
            lambda: server.current and server.current.number > 1, "a connection", call.patience
        )
        await server.caller_says("What is the weather in London?")
        await call.says_within(ANSWER)
        assert server.current is not None
        assert server.current.declared_tools == {"get_weather"}
        assert server.current.resumed_from is not None
        assert len(server.connections) == 3
        (error,) = errors_of(call, SettingsRefused)
        assert error.functions == ("book_table",)
        assert "function_declarations[1]" in str(error)


@function_tool
async def cancel_table(day: str) -> str:
    """Cancel a booking.

    Args:
        day: The day.
    """
    return f"cancelled for {day}"


async def nothing_is_tried(call: OnCall) -> None:
    """The connection stands, and is not about to be replaced."""
    link = call.realtime._conversation.link

    def stands() -> bool:
        return link.state is LinkState.OPEN and link.settings.state is not SettingsState.TRYING

    await eventually(stands, "a connection that stays")


BATCH = [book_table, cancel_table, get_time]


def picky(profile: str, *refused: str, names_it: bool) -> Profile:
    """A server that does not take some functions."""
    return dataclasses.replace(
        SIMULATED[profile],
        refused_functions=frozenset(refused),
        names_refused_function=names_it,
    )


@pytest.mark.fault("E6")
@pytest.mark.parametrize(
    ("bad", "names_it"),
    [("cancel_table", True), ("book_table", False), ("get_time", False)],
    ids=["named", "unnamed-first", "unnamed-last"],
)
@ours_and_plain(on=EVERY)
async def test_the_good_tools_of_a_batch_stay_in_mid_call(
    profile: str, bad: str, names_it: bool, plain: bool
) -> None:
    """Found by the place that the reason names, or by halves; the event names the other."""
    script = [Say("Hello."), Say("Certainly."), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=picky(profile, bad, names_it=names_it)) as server,
        on_call(server, plain=plain) as call,
    ):
        await server.caller_says("Hello?")
        await call.says_within("Hello.")
        await call.becomes_resumable()
        await call.agent.update_tools([*call.agent.tools, *BATCH])
        await server.until(
            lambda: server.current and server.current.number > 1, "a connection", call.patience
        )
        await nothing_is_tried(call)
        handle = call.realtime.session_resumption_handle
        await server.caller_says("And now?")
        await call.says_within("Certainly.")
        await eventually(
            lambda: call.realtime.session_resumption_handle != handle, "the end of the turn"
        )
        await nothing_is_tried(call)
        good = {"get_weather", *(tool.info.name for tool in BATCH)} - {bad}
        assert server.current is not None
        assert server.current.declared_tools == good
        await server.caller_says("Goodbye.")
        await call.says_within("Goodbye.")
        (error,) = errors_of(call, ToolsUnusable)
        assert error.names == (bad,)
        refusals = [c for c in server.connections if not c.accepted]
        assert len(refusals) == (2 if bad == "book_table" else 1)


async def fails_with(server: GeminiLiveServer, tools: list[Any]) -> ConnectionFailed:
    """What a session ends with that never had a connection, and begins with these tools."""
    model = RealtimeModel(**server.model_options())
    session = model.session()
    errors: asyncio.Queue[Any] = asyncio.Queue()
    session.on("error", errors.put_nowait)
    await session.update_tools(tools)
    event = await asyncio.wait_for(errors.get(), 10)
    await session.aclose()
    await model.aclose()
    assert not event.recoverable
    assert isinstance(event.error, ConnectionFailed)
    return event.error


@pytest.mark.fault("E6")
@pytest.mark.parametrize("names_it", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("profile", EVERY)
async def test_a_tool_that_the_server_refuses_at_the_start_is_fatal_at_once_and_named(
    profile: str, names_it: bool
) -> None:
    """No dial is repeated; where the server does not say which, all tools are listed."""
    server = GeminiLiveServer(profile=picky(profile, "get_time", names_it=names_it))
    async with server:
        error = await fails_with(server, [get_weather, get_time])
        advice = "tool(s) get_time," if names_it else "the tools were get_weather, get_time"
        assert advice in str(error)
        assert len(server.connections) == 1


@pytest.mark.fault("E6")
@pytest.mark.parametrize("profile", EVERY)
async def test_refused_settings_are_not_tried_again_until_they_change(profile: str) -> None:
    """A rotation for another reason repeats what is known to be taken."""
    async with (
        GeminiLiveServer(
            [Say("Hello.")], profile=picky(profile, "book_table", names_it=True)
        ) as server,
        connected(server) as direct,
    ):
        await direct.session.update_tools([get_time, get_weather, book_table])
        await direct.until(lambda: direct.reconnected == 1, "the connection with what was taken")
        await server.go_away(60)
        await direct.until(lambda: direct.reconnected == 2, "a rotation")
        assert len(server.connections) == 4
        await direct.session.update_tools([get_time])
        direct.session.update_options(voice="Kore")
        await direct.until(lambda: direct.reconnected == 3, "a rotation with other settings")
        assert "Kore" in str(server.connections[-1].setup)
        assert server.connections[-1].declared_tools == {"get_time"}
        await server.caller_says("Hello?")
        await server.replied()
        refusals = [e for e in direct.errors if isinstance(e.error, SettingsRefused)]
        assert len(refusals) == 1


@pytest.mark.fault("E6")
async def test_a_tool_blocks_as_the_setup_says_that_is_in_force() -> None:
    """The option was refused: a reply cannot be had from a model that waits for its tool."""
    picky = dataclasses.replace(SIMULATED["3.1-flash-live"], other_behavior="refused")
    async with (
        GeminiLiveServer([Call("get_weather"), Say(ANSWER)], profile=picky) as server,
        connected(server) as direct,
    ):
        direct.session.update_options(tool_behavior=types.Behavior.NON_BLOCKING)
        await direct.until(lambda: direct.reconnected, "the connection set up as before")
        assert errors_of(direct, SettingsRefused)
        await server.caller_says("What is the weather?")
        call = await direct.call()
        with pytest.raises(llm.RealtimeError, match="the model waits for its result"):
            await direct.session.generate_reply()
        await direct.answer(call, WEATHER)
        assert (await server.replied()).knew(WEATHER)
        server.forgive("get_time is declared NON_BLOCKING")


@pytest.mark.fault("E6")
async def test_options_of_which_no_setup_can_be_made_cost_no_connection() -> None:
    """The running connection is not given up for one that cannot be had."""
    nonsense: Any = object()
    async with GeminiLiveServer([Say("Hello.")]) as server, connected(server) as direct:
        direct.session.update_options(voice=nonsense)
        (event,) = direct.errors
        assert event.recoverable
        assert "change or remove the options" in str(event.error)
        await server.caller_says("Hello?")
        await server.replied()
        assert len(server.connections) == 1
        direct.session.update_options(voice="Kore")
        await direct.until(lambda: direct.reconnected, "the connection with a voice that is one")


MAPS = google.tools.GoogleMaps(
    auth_config=types.AuthConfig(oauth_config=types.AuthConfigOauthConfig(access_token="none"))
)
"""The SDK refuses the credentials on the Gemini API, in the middle of the dial."""


@pytest.mark.fault("E6")
async def test_settings_that_the_sdk_refuses_are_fatal_at_once_at_the_start() -> None:
    """No dial is repeated; the error says what it is about."""
    async with GeminiLiveServer() as server:
        error = await fails_with(server, [get_time, MAPS])
        assert "oauth_config" in str(error)
        assert "change what the reason names" in str(error)
        assert error.attempts == 1
        assert server.connections == []


@pytest.mark.fault("E6")
async def test_settings_that_the_sdk_refuses_in_mid_call_are_left_out() -> None:
    """Known only when the connection before has been closed: its settings are used again."""
    async with GeminiLiveServer([Say("Hello.")]) as server, connected(server) as direct:
        await direct.session.update_tools([get_time, get_weather, MAPS])
        await direct.until(lambda: direct.reconnected, "a connection")
        await server.caller_says("Hello?")
        await server.replied()
        assert len(server.connections) == 2
        (_, event) = direct.errors
        assert isinstance(event.error, SettingsRefused)
        assert "oauth_config" in str(event.error)


@pytest.mark.fault("E6")
async def test_an_answer_that_is_no_json_is_a_lost_connection() -> None:
    """Not a fault of the settings, although the SDK raises the same type."""
    async with GeminiLiveServer([Say("Hello.")]) as server, connected(server) as direct:
        async with server.holding_dials() as held:
            direct.session.update_options(voice="Kore")
            await held.reached()
            await server.send_raw("no JSON", connection=server.connections[-1])
            await held.reached(2)
        await direct.until(lambda: direct.reconnected, "the connection after it")
        assert "Kore" in str(server.connections[-1].setup)
        await server.caller_says("Hello?")
        await server.replied()
