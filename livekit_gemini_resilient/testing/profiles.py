"""How each family of Live models behaves, as far as it is known.

A profile is chosen by whoever starts the server. Nothing is ever read from a model's name.

Grades, used throughout this package: *recorded* (frames of the live service, published by a third
party), *observed* (reported from the live service), *documented* (by Google), *inferred*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one family does. Vary it with `dataclasses.replace`."""

    label: str
    """A model name for `GeminiLiveServer.model_options`. Decides nothing."""

    api: Literal["gemini", "vertex"]
    """The API whose paths are served; the other's are refused with HTTP 404."""

    call_ids: Literal["function-call-N", "fc_N", "uuid"]
    """Style of the ids of function calls (recorded)."""

    audio_mime: str
    """``mimeType`` of 24 kHz mono s16le audio; Vertex names no rate (recorded)."""

    model_role: bool = False
    """Whether ``modelTurn`` carries ``role: "model"`` (recorded on Vertex)."""

    session_id: bool = False
    """Whether ``setupComplete`` carries a ``sessionId`` (recorded on Vertex)."""

    usage: Literal["response", "candidates"] = "response"
    """Prefix of the usage fields that count output (recorded)."""

    opening: Literal["nothing", "empty_content", "empty_transcription"] = "nothing"
    """What precedes the first content of a turn, and on 3.1 of the part of a turn that follows a
    tool response (recorded)."""

    speech: Literal["separate", "bundled", "transcript_first"] = "separate"
    """How transcript and audio share messages: each on its own, interleaved; together in one; or
    the whole transcript, closed by ``finished``, ahead of the audio (recorded)."""

    thoughts: bool = False
    """Whether a thought summary is sent when a step has one (recorded on 2.5)."""

    grounding_metadata: bool = False
    """Whether ``turnComplete`` comes with an empty ``groundingMetadata`` (recorded on Vertex)."""

    blocking: Literal[True] = True
    """The model says nothing between a call and its answer (observed on 2.5 and 3.1; Vertex
    recorded so)."""

    tool_round: Literal["one_turn", "two_turns"] = "one_turn"
    """Whether the answered turn speaks itself, or ends empty and a second one speaks (recorded)."""

    handle_after_turn: bool = True
    """Whether a handle follows each ``turnComplete`` (observed on Vertex; inferred for others)."""

    handle_after_tool_response: Literal["never", "asked", "always"] = "never"
    """Whether a handle follows a consumed tool response, before the reply. ``"always"``: also if
    the setup asked for no resumption (recorded on 3.1)."""

    not_resumable: Literal["never", "flag", "empty"] = "never"
    """What tells, when a call is issued, that there is no usable handle: nothing, ``resumable:
    false`` (observed on 3.1), or an update without fields (observed at the start of sessions)."""

    client_content: Literal["anywhere", "initial_only"] = "anywhere"
    """``"initial_only"``: refused with 1007 outside the initial history that the setup announced
    (observed on 3.1 in spring 2026; the model page of September 2026 says ``"anywhere"``)."""

    requires_role: bool = False
    """Whether a turn without a role is refused with 1007 (observed on 3.1)."""

    system_role: bool = False
    """Whether the role ``"system"`` is accepted (documented for Vertex; refused on the Gemini
    API, observed)."""

    media_chunks: bool = True
    """Whether ``mediaChunks`` is accepted (observed: 1007 on newer models)."""

    text_modality: bool = False
    """Whether the response modality ``TEXT`` is accepted (observed: 1007 on every native-audio
    model of the Gemini API; inferred for Vertex)."""

    null_handle: bool = True
    """Whether ``sessionResumption: {handle: null}`` is accepted (observed: 2.5 does, 3.1 not)."""

    unanswered_setup: frozenset[str] = frozenset()
    """Fields, of the setup or its generation config, with which the setup is never answered
    (observed on 3.1)."""

    realtime_text: Literal["answered", "context"] = "answered"
    """Whether realtime text makes the model reply (observed on 3.1; inferred for others)."""

    echoes_realtime_text: bool = False
    """Whether realtime text comes back as ``inputTranscription`` (observed on 3.1)."""

    foreign_response: Literal["ignore", 1007, 1008] = "ignore"
    """What a response to a call of another connection, or of none, meets: silence (observed on
    2.5 and 3.1) or a close code (1008 "Requested entity was not found." was seen after responses,
    cause unproven)."""

    duplicate_response: Literal["ignore", 1007, 1008] = "ignore"
    """What a second response to one call meets (nobody has reported; inferred)."""


PROFILES: dict[str, Profile] = {
    "2.5-native-audio": Profile(
        label="gemini-2.5-flash-native-audio-preview-12-2025",
        api="gemini",
        call_ids="function-call-N",
        audio_mime="audio/pcm;rate=24000",
        thoughts=True,
    ),
    "3.1-flash-live": Profile(
        label="gemini-3.1-flash-live-preview",
        api="gemini",
        call_ids="fc_N",
        audio_mime="audio/pcm;rate=24000",
        opening="empty_content",
        speech="bundled",
        handle_after_tool_response="always",
        not_resumable="flag",
        requires_role=True,
        media_chunks=False,
        null_handle=False,
        unanswered_setup=frozenset({"proactivity", "enable_affective_dialog"}),
        echoes_realtime_text=True,
    ),
    "vertex-live-2.5": Profile(
        label="gemini-live-2.5-flash-native-audio",
        api="vertex",
        call_ids="uuid",
        audio_mime="audio/pcm",
        model_role=True,
        session_id=True,
        usage="candidates",
        opening="empty_transcription",
        speech="transcript_first",
        grounding_metadata=True,
        tool_round="two_turns",
        system_role=True,
    ),
}
"""The families, by name."""


def profile_named(profile: str | Profile) -> Profile:
    """Return the profile of that name, or the profile given.

    Raises:
        ValueError: there is none of that name.
    """
    if isinstance(profile, Profile):
        return profile
    if profile not in PROFILES:
        raise ValueError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    return PROFILES[profile]
