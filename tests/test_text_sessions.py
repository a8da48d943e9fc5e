"""Sessions in which the model writes: ``modalities=[Modality.TEXT]``.

Native-audio models refuse that (observed); half-cascade ones and Vertex AI have taken it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from google.genai import types

from livekit_gemini_resilient.testing import PROFILES, Call, GeminiLiveServer, Say

from .stack import ANSWER, WEATHER, answers, on_call, ours_and_plain

WRITING = {
    name: replace(PROFILES[name], text_modality=True)
    for name in ("2.5-native-audio", "vertex-live-2.5")
}


@pytest.mark.fault("A3")
@ours_and_plain(on=WRITING)
async def test_a_result_survives_update_tools_where_the_model_writes(
    profile: str, plain: bool
) -> None:
    """Told once, answered once in text, and the conversation goes on."""
    script = [Call("get_weather", {"city": "London"}), Say(ANSWER), Say("Goodbye.")]
    async with (
        GeminiLiveServer(script, profile=profile) as server,
        on_call(server, plain=plain, modalities=[types.Modality.TEXT]) as call,
    ):

        async def in_tool() -> None:
            await call.add_tool()

        call.in_tool = in_tool
        await server.caller_says("What is the weather in London?")
        await call.says_within(ANSWER)
        assert answers(server)[0].knew(WEATHER)
        await server.caller_says("Thank you, goodbye.")
        await call.says_within("Goodbye.")
        assert len(answers(server)) == 1
        assert call.spoken == [ANSWER, "Goodbye."]
        assert call.speaker.heard == 0.0
