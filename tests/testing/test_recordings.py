"""Recordings are compared by shape, and can be played to a client."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from livekit_gemini_resilient.testing import PROFILES, Call, Calls, Say, Silence
from livekit_gemini_resilient.testing.compare import compare, shapes
from livekit_gemini_resilient.testing.play import RecordingServer, whole_samples
from livekit_gemini_resilient.testing.recording import RecordingError, load, script_of

from .conftest import Dial, user

HERE = Path(__file__).parent / "recordings"
RECORDINGS = {
    "2.5-native-audio": HERE / "round.separate.yaml",
    "3.1-flash-live": HERE / "round.bundled.yaml",
    "vertex-live-2.5": HERE / "round.two_turns.yaml",
    "3.8-live": HERE / "spoken.bundled.yaml",
}


@pytest.mark.parametrize("profile", RECORDINGS)
async def test_a_recording_agrees_with_the_profile_of_its_family(profile: str) -> None:
    """The same client frames get an answer of the same shape."""
    comparison = await compare(RECORDINGS[profile], PROFILES[profile])
    assert comparison.agrees, str(comparison)


@pytest.mark.parametrize("other", ["3.1-flash-live", "vertex-live-2.5"])
async def test_a_recording_disagrees_with_another_profile_and_says_where(other: str) -> None:
    """The difference is a diff of shapes."""
    comparison = await compare(RECORDINGS["2.5-native-audio"], PROFILES[other])
    assert not comparison.agrees
    assert '-{"toolCall": {"functionCalls": [{"args": "user data", "id": "function-call-N"' in str(
        comparison
    )


async def test_a_client_that_the_profile_refuses_is_a_disagreement(tmp_path: Path) -> None:
    """The simulator's objections are part of the result."""
    recording = yaml.safe_load(RECORDINGS["3.1-flash-live"].read_text())
    del recording["interactions"][2]["data"]["client_content"]["turns"][0]["role"]
    path = tmp_path / "refused.yaml"
    path.write_text(yaml.safe_dump(recording))
    comparison = await compare(path, PROFILES["3.1-flash-live"])
    assert "objection: a turn without a role" in str(comparison)


def test_runs_of_speech_count_once_even_if_they_alternate() -> None:
    """How often chunks repeat depends on what is said; turns and calls are counted."""
    audio = {"serverContent": {"modelTurn": {"parts": [{"inlineData": {"data": "AAAA"}}]}}}
    words = {"serverContent": {"outputTranscription": {"text": "x"}}}
    turn = {"serverContent": {"turnComplete": True}}
    assert shapes([words, audio, audio, words, audio]) == shapes([words, words, audio])
    assert shapes([turn, turn]) != shapes([turn])
    assert shapes([audio, words]) != shapes([words, audio])


def test_a_script_is_read_off_a_recording() -> None:
    """Words and audio up to ``turnComplete`` are a speech; an empty turn may belong to a call."""
    received = [m for exchange in load(RECORDINGS["vertex-live-2.5"]) for m in exchange.received]
    call, *spoken = script_of(received, PROFILES["vertex-live-2.5"])
    assert call == Calls([Call("countSheep", {})])
    assert spoken == [Say("Nine sheep.", audio_seconds=0.04)]
    assert script_of(received, PROFILES["2.5-native-audio"])[1] == Silence()


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"words",
        b"# a: [heading\n* and: {a list",
        b"\xff\xfe",
        b"interactions: []",
        b"interactions: [words]",
        b"interactions: [{direction: received, data: {}}]",
        b"interactions: [{direction: sent}]",
        b"interactions: [{direction: sent, data: {}}, {direction: up, data: {}}]",
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: bytes) -> None:
    """The error names the file and says what a recording is, whatever the file holds."""
    path = tmp_path / "other.yaml"
    path.write_bytes(text)
    with pytest.raises(RecordingError, match=r"other\.yaml: not a recording \(expected YAML"):
        load(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """The error names the file and why."""
    with pytest.raises(RecordingError, match=r"/nope\.yaml: no such file$"):
        load(tmp_path / "nope.yaml")
    with pytest.raises(RecordingError, match=r": is a directory$"):
        load(tmp_path)


async def test_a_recording_is_played_frame_by_frame(dial: Dial) -> None:
    """Each client frame of the recorded kind brings the recorded answer; others bring nothing."""
    path = RECORDINGS["2.5-native-audio"]
    async with RecordingServer(load(path), profile="2.5-native-audio") as server:
        client = await dial(server)
        await client.send({"realtime_input": {"audio": {"data": "AAAA"}}})
        await client.send(user("anything"))
        [call_id] = await client.call_ids()
        response = {"id": call_id, "name": "countSheep", "response": {}}
        await client.send({"tool_response": {"functionResponses": [response]}})
        assert "usageMetadata" in (await client.turn())[-1]
    assert call_id == "function-call-17"


@pytest.mark.parametrize("cut", ["AAECAwQF", "AAEC", "AAECA", "AAE", ""])
def test_cut_audio_is_padded_to_whole_samples(cut: str) -> None:
    """Recorders cut base64 at any character; players need 16-bit samples."""
    part = {"inlineData": {"mimeType": "audio/pcm", "data": cut}}
    message = {"serverContent": {"modelTurn": {"parts": [part]}}}
    mended = whole_samples(message)["serverContent"]["modelTurn"]["parts"][0]["inlineData"]["data"]
    assert len(base64.b64decode(mended, validate=True)) % 2 == 0
    assert part["inlineData"]["data"] == cut
