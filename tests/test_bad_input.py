"""Bad input has a clear error or a documented safe outcome; the conversation goes on."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from google.genai import types
from livekit.agents import function_tool, llm

import livekit_gemini_resilient
from livekit_gemini_resilient import RealtimeModel, ResilienceError, ResilienceOptions
from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .direct import connected, output_of
from .stack import PROFILES, on_call

SCRIPT = [Call("get_weather"), Say("Here is what I found."), Say("Goodbye.")]


async def goes_on(server: GeminiLiveServer) -> None:
    """The conversation is alive."""
    await server.caller_says("Goodbye.")
    await server.until(
        lambda: server.replies[-1].completed and server.replies[-1].text == "Goodbye.",
        "an answer to the next question",
    )


def test_a_model_refuses_options_of_another_kind() -> None:
    """The error names the argument and what it takes."""
    options: Any = {"restart_when": "now"}
    with pytest.raises(livekit_gemini_resilient.ConfigurationError, match="ResilienceOptions"):
        RealtimeModel(api_key="simulator", resilience=options)


def test_a_model_refuses_an_argument_that_the_plugin_does_not_know() -> None:
    """A misspelt option is an error, not silence."""
    with pytest.raises(TypeError, match="voise"):
        RealtimeModel(api_key="simulator", voise="Puck")


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_output_without_a_call_is_put_before_the_model_in_words(profile: str) -> None:
    """It arrives alone: an outer task's result, say. One reply, no ``tool_response``."""
    orphan = llm.FunctionCallOutput(
        call_id="unknown", name="find_order", output="order 66 has shipped", is_error=False
    )
    async with (
        GeminiLiveServer([Say("Your order has shipped."), Say("Goodbye.")], profile=profile) as s,
        connected(s) as direct,
    ):
        await direct.hand_over(orphan)
        reply = await s.replied()
        assert reply.knew("order 66 has shipped")
        assert s.tool_responses == []
        await goes_on(s)


@pytest.mark.parametrize("profile", PROFILES)
async def test_of_two_outputs_for_one_call_the_first_counts(profile: str) -> None:
    """The second is dropped; the model is told once."""
    async with GeminiLiveServer(SCRIPT, profile=profile) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        await direct.answer(call, "foggy")
        await direct.answer(call, "sunny")
        reply = await server.replied()
        assert reply.knew("foggy")
        await goes_on(server)
        assert not server.knows("sunny")
        assert len(server.tool_responses) == 1


@pytest.mark.parametrize("profile", PROFILES)
async def test_two_outputs_for_one_call_in_one_update_are_one_answer(profile: str) -> None:
    """The same when they arrive together."""
    async with GeminiLiveServer(SCRIPT, profile=profile) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        await direct.hand_over(output_of(call, "foggy"), output_of(call, "sunny"))
        await server.replied()
        await goes_on(server)
        assert len(server.tool_responses) == 1


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_output_without_a_name_is_answered_under_the_name_of_its_call(
    profile: str,
) -> None:
    """The name is optional in LiveKit and needed by the service."""
    async with GeminiLiveServer(SCRIPT, profile=profile) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        unnamed = llm.FunctionCallOutput(call_id=call.call_id, output="foggy", is_error=False)
        await direct.hand_over(unnamed)
        await server.replied()
        assert server.tool_responses[0].name == "get_weather"
        await goes_on(server)


@pytest.mark.fault("A16")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("lost", [False, True], ids=["same connection", "later connection"])
async def test_a_result_that_is_too_large_is_answered_with_an_error_that_says_so(
    profile: str, lost: bool
) -> None:
    """It reaches no socket on any route; the model can tell the caller."""
    async with GeminiLiveServer(SCRIPT, profile=profile) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        if lost:
            await server.drop(1011)
            await server.connected(2)
        await direct.answer(call, "x" * 2_000_000)
        reply = await server.replied()
        assert reply.knew("2000000 bytes, more than the 524288")
        assert not server.knows("xxxx")
        await goes_on(server)


@pytest.mark.fault("A16")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("lost", [False, True], ids=["same connection", "later connection"])
@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("a\x00b \ud800 c", "ab ? c"),
        ("", ""),
        ('{"not": "closed', '{"not": "closed'),
        ("NaN", "NaN"),
        ("größe 🌫️", "größe 🌫️"),
    ],
)
async def test_strange_results_are_delivered(
    profile: str, lost: bool, output: str, told: str
) -> None:
    """Cleaned of what the service refuses, whole otherwise, by either route."""
    async with GeminiLiveServer(SCRIPT, profile=profile) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        if lost:
            await server.drop(1011)
            await server.connected(2)
        await direct.answer(call, output)
        reply = await server.replied()
        assert reply.knew(told)
        assert len(server.replies) == 1
        await goes_on(server)


@pytest.mark.fault("A16")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("output", "told"),
    [("a\x00b \ud800 \x1b[1mc", "ab ? [1mc"), ("x" * 2_000_000, "2000000 bytes")],
    ids=["strange", "too large"],
)
async def test_a_result_closes_no_connection_as_part_of_the_history(
    profile: str, output: str, told: str
) -> None:
    """A fresh session is told it in the form in which it was told first."""
    async with (
        GeminiLiveServer(SCRIPT, profile=profile, handles="never") as server,
        connected(server) as direct,
    ):
        await server.caller_says("What is the weather?")
        await direct.answer(await direct.call(), output)
        await server.replied()
        await server.drop(1011)
        await direct.until(lambda: direct.reconnected, "a reconnect")
        await server.until(lambda: server.knows(told), "the exchange in the history")
        await goes_on(server)
        assert len(server.connections) == 2


@pytest.mark.fault("A16")
@pytest.mark.parametrize("profile", PROFILES)
async def test_strange_arguments_of_a_call_close_no_later_connection(profile: str) -> None:
    """The model's own words are quoted to it together with the result."""
    script = [Call("get_weather", {"city": "Lon\x00don\ud800"}), *SCRIPT[1:]]
    async with GeminiLiveServer(script, profile=profile) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        await server.drop(1011)
        await server.connected(2)
        await direct.answer(call, "foggy")
        reply = await server.replied()
        assert reply.knew("foggy")
        await goes_on(server)
        assert len(server.connections) == 2


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("where", ["reply", "setup", "update"])
async def test_strange_instructions_close_no_connection(profile: str, where: str) -> None:
    """Cleaned of what the service refuses, on whatever way they reach it."""
    dirty = "Be\x00 brief\ud800."
    options = {"instructions": dirty} if where == "setup" else {}
    async with (
        GeminiLiveServer([Say("Hello."), Say("Goodbye.")], profile=profile) as server,
        connected(server, **options) as direct,
    ):
        if where == "update":
            await direct.session.update_instructions(dirty)
        if where == "reply":
            await direct.session.generate_reply(instructions=dirty)
        else:
            await server.caller_says("Hello?")
        await server.replied()
        await goes_on(server)
        assert direct.errors == []


@pytest.mark.fault("A16")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("handles", ["profile", "never"])
async def test_a_result_that_closed_a_connection_is_not_sent_again(
    profile: str, handles: Any
) -> None:
    """Not by any route, nor in the history; the model learns that it is not available."""
    script = [Call("get_weather", handle_first=handles == "profile"), *SCRIPT[1:]]
    async with (
        GeminiLiveServer(script, profile=profile, handles=handles) as server,
        connected(server) as direct,
    ):
        server.drop_on("tool_response", 1007)
        await server.caller_says("What is the weather?")
        await direct.answer(await direct.call(), "poison")
        reply = await server.replied()
        assert reply.knew("cannot be passed on")
        direct.session.update_options(voice="Kore")
        await direct.until(lambda: direct.reconnected == 2, "a reconnect")
        await goes_on(server)
        assert not any(c.times_told("poison") for c in server.connections[1:])


@pytest.mark.fault("A16")
async def test_an_error_result_is_told_as_an_error() -> None:
    """The model can tell a failure from a result."""
    async with GeminiLiveServer(SCRIPT) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        await direct.answer(await direct.call(), "the station is offline", is_error=True)
        await server.replied()
        assert "error" in server.tool_responses[0].response
        await goes_on(server)


async def test_a_result_that_is_not_serialisable_is_answered() -> None:
    """Newer agents turn it into text; older ones hand over nothing, and the model is freed."""

    @function_tool
    async def get_weather() -> Any:
        """Look up the weather."""
        return object()

    async with (
        GeminiLiveServer(SCRIPT) as server,
        on_call(
            server, tools=[get_weather], resilience=ResilienceOptions(tool_answer_timeout=1.0)
        ) as call,
    ):
        await server.caller_says("What is the weather?")
        await call.says("Here is what I found.")
        assert len(server.tool_responses) == 1
        await goes_on(server)


@pytest.mark.fault("A13")
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_tool_that_takes_too_long_does_not_mute_the_model(profile: str) -> None:
    """The call is answered with "still running"; the result is said when it comes."""
    script = [Call("get_weather"), Say("One moment."), Say("It is foggy."), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        connected(server, resilience=ResilienceOptions(tool_answer_timeout=0.2)) as direct,
    ):
        await server.caller_says("What is the weather?")
        call = await direct.call()
        await server.replied()
        assert "still running" in str(server.tool_responses[0].response)
        await direct.answer(call, "foggy and 12 degrees")
        reply = await server.replied(2)
        assert reply.knew("foggy and 12 degrees")
        await goes_on(server)
        assert len(server.tool_responses) == 1


@pytest.mark.fault("F7")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("lost", [False, True], ids=["same connection", "later connection"])
async def test_an_image_that_cannot_be_told_takes_nothing_with_it(profile: str, lost: bool) -> None:
    """Neither the words beside it, nor a result in the same context, nor the next connection."""
    image = llm.ImageContent(image="data:image/tiff;base64,AAAA")
    async with GeminiLiveServer(SCRIPT, profile=profile) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        if lost:
            await server.drop(1011)
        await direct.hand_over(
            llm.ChatMessage(role="user", content=["Look at this.", image]),
            output_of(call, "foggy"),
        )
        reply = await server.replied()
        assert reply.knew("foggy")
        await server.until(lambda: server.knows("Look at this."), "the words beside the image")
        await goes_on(server)
        assert len(server.connections) == 1 + lost


MALFORMED = [b"not json", b"[]", b"\xff\xfe", b'{"error": {"code": 400}}', b'{"serverContent": 5}']


@pytest.mark.parametrize("data", MALFORMED)
async def test_a_message_that_cannot_be_read_is_left_out(data: bytes) -> None:
    """One bad frame does not cost the call."""
    async with GeminiLiveServer(SCRIPT) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        await server.send_raw(data)
        await direct.answer(call, "foggy")
        await server.replied()
        await goes_on(server)
        assert len(server.connections) == 1


async def test_a_connection_that_sends_only_rubbish_is_replaced() -> None:
    """A stream of messages that cannot be read is not a connection; nothing is lost with it."""
    async with GeminiLiveServer(SCRIPT) as server, connected(server) as direct:
        await server.caller_says("What is the weather?")
        call = await direct.call()
        for _ in range(5):
            await server.send_raw(b"not json")
        await server.connected(2)
        await direct.answer(call, "foggy")
        await server.replied()
        await goes_on(server)


async def test_a_setup_that_the_server_refuses_is_a_fatal_error_that_says_what_to_change() -> None:
    """No retry can help; the error event names the code and what to check."""
    async with GeminiLiveServer() as server, server.refusing_dials(code=1007):
        session = RealtimeModel(**server.model_options()).session()
        errors: asyncio.Queue[Any] = asyncio.Queue()
        session.on("error", errors.put_nowait)
        error = await asyncio.wait_for(errors.get(), 10)
        await session.aclose()
    assert not error.recoverable
    assert "the server refused the setup" in str(error.error)
    assert errors.empty()


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("API key not valid.", "code 1007, API key not valid."),
        ("", "code 1007"),
    ],
)
async def test_what_the_server_said_is_in_the_error(reason: str, told: str) -> None:
    """A newcomer with a bad key need not guess."""
    async with (
        GeminiLiveServer() as server,
        server.refusing_dials(code=1007, reason=reason),
    ):
        error = await first_error(RealtimeModel(**server.model_options()))
    assert told in str(error)


async def test_what_the_network_said_is_in_the_error_and_its_cause() -> None:
    """A certificate that is not trusted, a port that nobody listens on."""
    async with GeminiLiveServer() as server:
        options = types.HttpOptions(base_url=server.url)
        untrusted = await first_error(RealtimeModel(api_key="any", http_options=options))
    refused = await first_error(RealtimeModel(api_key="any", http_options=options))
    assert "SSLCertVerificationError" in str(untrusted)
    assert isinstance(untrusted.__cause__, ssl.SSLCertVerificationError)
    assert "ConnectionRefusedError" in str(refused)
    assert isinstance(refused.__cause__, ConnectionRefusedError)


async def first_error(model: RealtimeModel) -> Exception:
    """The first error that a session of the model reports."""
    session = model.session()
    errors: asyncio.Queue[Any] = asyncio.Queue()
    session.on("error", errors.put_nowait)
    event = await asyncio.wait_for(errors.get(), 10)
    await session.aclose()
    error: Exception = event.error
    return error


def errors(of: type[Exception] = ResilienceError) -> list[str]:
    """Names of a kind of error and of all that are of its kind."""
    return [of.__name__, *(name for kind in of.__subclasses__() for name in errors(kind))]


def test_public_names_are_sorted_and_documented() -> None:
    """``__all__`` is what there is, and no error can only be caught by its private place."""
    names = livekit_gemini_resilient.__all__
    assert sorted(names) == list(names)
    assert all(getattr(livekit_gemini_resilient, name) for name in names)
    assert set(errors()) <= set(names)
    assert ResilienceOptions.__doc__
