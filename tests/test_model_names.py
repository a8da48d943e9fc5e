"""No decision depends on a model's name, also not through what is inherited."""

from __future__ import annotations

import pytest
from google.genai import types

from livekit_gemini_resilient import RealtimeModel
from livekit_gemini_resilient.testing import GeminiLiveServer

from .direct import get_time
from .stack import PROFILES
from .test_update_tools_mid_turn import Case, survives

NAMES = [
    "gemini-3.8-live",
    "gemini-3.8-live-extended-thinking",
    "gemini-3.1-flash-live-preview",
    "gemini-2.5-flash-native-audio-preview-12-2025",
    "gemini-live-2.5-flash-native-audio",
    "some-model",
]
CASE = Case(moment="before", by="tool", handle="covers the question", arrives="closing")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_result_survives_under_a_lying_model_name(profile: str, name: str) -> None:
    """Every kind of server behaves as it does, whatever the user calls the model."""
    await survives(CASE, profile, model=name)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_the_same_under_every_name(name: str) -> None:
    """Upstream derives capabilities, tool behaviour and refusals from parts of the name."""
    model = RealtimeModel(api_key="simulator", model=name)
    other = RealtimeModel(api_key="simulator", model="some-model")
    assert model.model == name
    assert model.capabilities == other.capabilities
    assert model.capabilities.mutable_chat_context
    assert model.capabilities.mutable_instructions
    assert not model.capabilities.mutable_tools


def test_an_option_is_not_refused_for_the_name_of_the_model() -> None:
    """Whether a server takes it is for the server to say."""
    thinking = types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
    model = RealtimeModel(api_key="simulator", model="gemini-3.8-live", thinking_config=thinking)
    assert model.model == "gemini-3.8-live"


@pytest.mark.parametrize("name", NAMES)
async def test_tools_are_declared_as_the_user_says_and_not_by_name(name: str) -> None:
    """Without ``tool_behavior`` none is sent; with it, it is."""
    for behavior in (None, types.Behavior.NON_BLOCKING):
        options = {} if behavior is None else {"tool_behavior": behavior}
        async with GeminiLiveServer() as server:
            model = RealtimeModel(**{**server.model_options(), "model": name, **options})
            session = model.session()
            await session.update_tools([get_time])
            connection = await server.connected()
            assert ("NON_BLOCKING" in str(connection.setup)) is (behavior is not None)
            await session.aclose()
