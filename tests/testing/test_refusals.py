"""What the service refuses, the simulator refuses with the same close code."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from livekit_gemini_resilient.testing import PROFILES, Call, Gate, GeminiLiveServer, Say

from .conftest import Dial, response, user


def content(**turn: Any) -> dict[str, Any]:
    return {"client_content": {"turns": [turn], "turnComplete": False}}


def text(words: str) -> dict[str, Any]:
    return {"realtime_input": {"text": words}}


AUDIO = {"data": "AAAA", "mimeType": "audio/pcm"}
CALL_PART = {"functionCall": {"name": "lookUp", "args": {}}}
RESPONSE_PART = {"function_response": {"name": "lookUp", "response": {}}}

REFUSED = [
    pytest.param("3.1-flash-live", content(parts=[{"text": "x"}]), "role", id="role missing"),
    pytest.param(
        "2.5-native-audio", content(role="system", parts=[]), "'system'", id="role system"
    ),
    pytest.param(
        "2.5-native-audio", content(role="model", parts=[CALL_PART]), "function", id="call part"
    ),
    pytest.param(
        "2.5-native-audio",
        content(role="user", parts=[RESPONSE_PART]),
        "function",
        id="result part",
    ),
    pytest.param(
        "3.1-flash-live", {"realtime_input": {"mediaChunks": [AUDIO]}}, "mediaChunks", id="media"
    ),
    pytest.param("2.5-native-audio", text("a\x00b"), "control", id="NUL"),
    pytest.param("2.5-native-audio", text("\ud800"), "surrogate", id="surrogate"),
    pytest.param(
        "2.5-native-audio", response("x", output="a\x00b"), "control", id="NUL in a result"
    ),
    pytest.param("2.5-native-audio", {"nonsense": {}}, "unknown frame", id="unknown frame"),
    pytest.param("2.5-native-audio", {"setup": {"model": "m"}}, "second setup", id="second setup"),
    pytest.param(
        "2.5-native-audio", {"client_content": {"x": 1}}, "no field x", id="unknown field"
    ),
    pytest.param("2.5-native-audio", "{", "not a JSON", id="no JSON"),
    pytest.param("2.5-native-audio", '{"tool_response": NaN}', "not a JSON", id="NaN"),
    pytest.param("2.5-native-audio", "[]", "object", id="no object"),
    pytest.param(
        "2.5-native-audio", {"realtime_input": {"activityEnd": {}}}, "automatic", id="activity"
    ),
    pytest.param("2.5-native-audio", response(""), "without an id", id="response without id"),
]


@pytest.mark.parametrize(("profile", "frame", "why"), REFUSED)
async def test_an_invalid_frame_closes_with_1007_and_is_a_breach(
    dial: Dial, profile: str, frame: Any, why: str
) -> None:
    """Code and reason are those of the service; the breach says what was wrong."""
    async with GeminiLiveServer(profile=profile) as server:
        client = await dial(server)
        await client.send(frame)
        assert await client.closed() == (1007, "Request contains an invalid argument.")
        [breach] = server.forgive(why)
    assert breach.code == 1007
    assert server.connections[0].closed == (1007, "Request contains an invalid argument.", "server")


@pytest.mark.parametrize(
    ("profile", "changes"),
    [
        ("2.5-native-audio", {"generationConfig": {"responseModalities": ["TEXT"]}}),
        ("3.1-flash-live", {"sessionResumption": {"handle": None}}),
        ("2.5-native-audio", {"sessionResumption": {"transparent": True}}),
        ("2.5-native-audio", {"model": ""}),
        ("2.5-native-audio", {"sessionResumption": {"handle": "never-issued"}}),
    ],
    ids=["TEXT", "null handle", "transparent", "no model", "unknown handle"],
)
async def test_an_invalid_setup_closes_with_1007(
    dial: Dial, profile: str, changes: dict[str, Any]
) -> None:
    """A refused setup is never answered."""
    async with GeminiLiveServer(profile=profile) as server:
        client = await dial(server, answered=False, **changes)
        assert (await client.closed())[0] == 1007
        assert len(server.forgive("")) == 1
    assert not server.connections[0].accepted


async def test_the_first_frame_must_be_the_setup(dial: Dial) -> None:
    """Anything else before it closes with 1007."""
    async with GeminiLiveServer() as server:
        client = await dial(server, setup=False)
        await client.send(user("hello"))
        assert (await client.closed())[0] == 1007
        server.forgive("before the setup")


async def test_a_null_handle_starts_afresh_where_it_is_accepted(dial: Dial) -> None:
    """2.5 takes ``handle: null`` (observed)."""
    async with GeminiLiveServer() as server:
        await dial(server, sessionResumption={"handle": None})
    assert server.connections[0].resumed_from is None


async def test_content_outside_the_initial_history_is_refused_where_the_policy_says_so(
    dial: Dial,
) -> None:
    """3.1 of spring 2026 takes client content as initial history only (observed)."""
    profile = dataclasses.replace(PROFILES["3.1-flash-live"], client_content="initial_only")
    async with GeminiLiveServer(profile=profile) as server:
        client = await dial(server, historyConfig={"initialHistoryInClientContent": True})
        await client.send(user("my name is Ada"))
        await client.send(user("who am I?"))
        assert (await client.closed())[0] == 1007
        server.forgive("initial history")
    assert server.connections[0].knows("Ada")


async def test_a_resume_is_refused_while_the_earlier_socket_is_open(dial: Dial) -> None:
    """Close first, then dial: 1011 until the earlier connection is gone (observed)."""
    async with GeminiLiveServer([Say("Hi.")]) as server:
        client = await dial(server)
        await client.send(user("hello"))
        handle = await client.handle()
        early = await dial(server, answered=False, sessionResumption={"handle": handle})
        assert (await early.closed())[0] == 1011
        server.forgive("is open")
        await client.socket.close()
        await dial(server, sessionResumption={"handle": handle})
    assert server.connections[2].resumed_from == handle


async def test_a_second_response_to_one_call_is_a_breach_and_changes_nothing(dial: Dial) -> None:
    """The verdict is ``duplicate``; the model knows the first result."""
    async with GeminiLiveServer([Call("lookUp"), Say("42.")]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id))
        await client.send(response(call_id, output="forty-three"))
        await server.until(lambda: server.breaches, "the breach")
        server.forgive("second response")
        assert not server.knows("forty-three")
    assert [told.verdict for told in server.tool_responses] == ["accepted", "duplicate"]


async def test_input_during_a_blocking_call_may_close_the_connection(dial: Dial) -> None:
    """One client says so of the service; by default it is taken, and after the answer always."""
    profile = dataclasses.replace(PROFILES["2.5-native-audio"], input_during_call=1008)
    audio = {"realtime_input": {"audio": {"data": "AAA=", "mime_type": "audio/pcm;rate=16000"}}}
    script = [Call("lookUp"), Say("42."), Call("lookUp")]
    async with GeminiLiveServer(script, profile=profile) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id))
        await client.send(audio)
        await server.replied()
        await client.send(user("and now?"))
        await server.called("lookUp", 2)
        await client.send(audio)
        assert (await client.closed())[0] == 1008


@pytest.mark.parametrize("kind", ["foreign_response", "duplicate_response"])
async def test_the_answer_to_a_wrong_response_is_a_switch(dial: Dial, kind: str) -> None:
    """Nobody knows for every family, so a profile can close instead."""
    switch: dict[str, Any] = {kind: 1008}
    profile = dataclasses.replace(PROFILES["2.5-native-audio"], **switch)
    async with GeminiLiveServer([Call("lookUp"), Say("42.")], profile=profile) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id))
        await client.send(response("elsewhere" if kind == "foreign_response" else call_id))
        assert (await client.closed())[0] == 1008
        server.forgive("response")


async def test_content_while_a_call_is_open_is_a_breach_and_is_not_taken(dial: Dial) -> None:
    """The service does not accept it (observed)."""
    async with GeminiLiveServer([Call("lookUp")]) as server:
        client = await dial(server)
        await client.send(user("what is it?"))
        await client.call_ids()
        await client.send(user("hurry"))
        await server.until(lambda: server.breaches, "the breach")
        server.forgive("while a call is open")
        assert not server.knows("hurry")


async def test_an_activity_end_without_a_start_is_a_breach(dial: Dial) -> None:
    """A new connection knows nothing of an activity begun on another."""
    async with GeminiLiveServer() as server:
        config = {"automaticActivityDetection": {"disabled": True}}
        client = await dial(server, realtimeInputConfig=config)
        await client.send({"realtime_input": {"activityEnd": {}}})
        await server.until(lambda: server.breaches, "the breach")
        server.forgive("without activityStart")


async def test_a_setup_that_the_family_leaves_unanswered_is_left_unanswered(dial: Dial) -> None:
    """3.1 never answers a setup with affective dialog (observed)."""
    async with GeminiLiveServer(profile="3.1-flash-live") as server:
        await dial(server, answered=False, generationConfig={"enableAffectiveDialog": True})
        await server.until(
            lambda: "unanswered" in str(server.timeline[-1]), "the setup to be left unanswered"
        )
    assert not server.connections[0].accepted


@pytest.mark.parametrize("served", ["2.5-native-audio", "vertex-live-2.5"])
async def test_the_path_of_the_other_api_is_refused_by_http(dial: Dial, served: str) -> None:
    """The error says which API is served."""
    async with GeminiLiveServer(profile=served) as server:
        path = "/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent"
        if served.startswith("vertex"):
            path = "/ws/google.ai.generativelanguage.v1.GenerativeService.BidiGenerateContent"
        with pytest.raises(InvalidStatus) as refused:
            await dial(server, path=path)
    assert refused.value.response.status_code == 404
    assert server.profile.api in refused.value.response.body.decode()


@pytest.mark.parametrize("version", ["v1", "v1beta", "v1alpha"])
@pytest.mark.parametrize("base", ["", "/", "/some/proxy"])
async def test_versions_base_paths_and_double_slashes_are_served(
    dial: Dial, version: str, base: str
) -> None:
    """The SDK's default base URL yields a double slash (measured)."""
    path = f"/ws/google.ai.generativelanguage.{version}.GenerativeService.BidiGenerateContent"
    async with GeminiLiveServer() as server:
        await dial(server, path=f"{base}{path}?key=k")
    assert server.connections[0].accepted


async def test_keys_are_read_in_either_case_and_user_data_is_left_alone(dial: Dial) -> None:
    """Nothing is renamed below arguments, responses and schema properties."""
    properties = {"theCity": {"type": "STRING"}}
    declaration = {"name": "lookUp", "parameters": {"type": "OBJECT", "properties": properties}}
    async with GeminiLiveServer([Call("lookUp"), Say("Ok.")]) as server:
        tools = [{"function_declarations": [declaration]}]
        client = await dial(server, tools=tools)
        await client.send(user("go"))
        [call_id] = await client.call_ids()
        body = {"id": call_id, "name": "lookUp", "response": {"theResult": {"camelCase": 1}}}
        await client.send({"toolResponse": {"functionResponses": [body]}})
        await server.replied()
    [declared] = server.connections[0].setup["tools"][0]["function_declarations"]
    assert declared["parameters"]["properties"] == properties
    assert server.tool_responses[0].response == body["response"]


async def test_a_call_of_an_undeclared_function_is_a_breach(dial: Dial) -> None:
    """A model calls what the setup of its connection declared."""
    async with GeminiLiveServer([Call("book")]) as server:
        client = await dial(server, tools=[])
        await client.send(user("go"))
        await server.called("book")
        server.forgive("not declared")


async def test_a_response_under_another_name_is_a_breach(dial: Dial) -> None:
    """The id decides, and the name has to fit."""
    async with GeminiLiveServer([Call("lookUp"), Say("Ok.")]) as server:
        client = await dial(server)
        await client.send(user("go"))
        [call_id] = await client.call_ids()
        await client.send(response(call_id, "book"))
        await server.replied()
        server.forgive("names 'book'")


async def test_frames_after_a_refusal_are_discarded(dial: Dial) -> None:
    """A connection that the server has closed takes nothing in."""
    gate = Gate()
    async with GeminiLiveServer([Say("Hi.", gate=gate, gate_after=0)]) as server:
        client = await dial(server)
        await client.send(user("hello"))
        await gate.reached()
        await server.drop(1008)
        await client.send(user("hello?"))
        await client.closed()
    assert server.connections[0].times_told("hello?") == 0
