"""How each family of Live models behaves, as far as it is known.

A profile is chosen by whoever starts the server. Nothing is ever read from a model's name.

Grades, used throughout this package: *recorded* (frames of the live service, published by a third
party), *observed* (reported from the live service), *documented* (by Google), *inferred*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one family does. Vary it with `dataclasses.replace`."""

    label: str
    """A model name for `GeminiLiveServer.model_options`. Decides nothing."""

    api: Literal["gemini", "vertex"]
    """The API whose paths are served; the other's are refused with HTTP 404."""

    call_ids: Literal["function-call-N", "fc_N", "uuid", "none"]
    """Style of the ids of function calls (recorded). ``"none"``: calls carry no id, a response is
    matched by name, and one with an id is refused with 1007 (observed on Vertex in 2025). Nobody
    has reported such calls on the Gemini API, where the SDK sends no response without the field:
    there the empty id, which in protobuf JSON is none, is required (inferred)."""

    audio_mime: str
    """``mimeType`` of 24 kHz mono s16le audio; Vertex names no rate (recorded)."""

    model_role: bool = False
    """Whether ``modelTurn`` carries ``role: "model"`` (recorded on Vertex and 3.8)."""

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

    hears: Literal["in_pieces", "at_once"] = "in_pieces"
    """How the caller's words are transcribed: in pieces that begin with a space (recorded on 2.5),
    or in one without (recorded on 3.1 and 3.8)."""

    voice_activity: Literal["never", "alone", "with_content"] = "never"
    """Whether ``voiceActivity`` says when the caller begins to speak, and has finished, and whether
    an empty ``serverContent`` comes with it (recorded: alone on 3.8, where it was missing in
    September 2026; with one on 3.1). Under manual activity detection none does (inferred)."""

    blank_messages: bool = False
    """Whether messages without a field come in between (recorded on 3.8, before most messages of
    speech; the simulator sends one before each)."""

    thoughts: Literal["none", "counted", "sent"] = "none"
    """What becomes of a step's thought: its tokens are counted in the usage (recorded on 3.8), and
    a summary of it is sent as well (recorded on 2.5)."""

    grounding_metadata: bool = False
    """Whether ``turnComplete`` comes with an empty ``groundingMetadata`` (recorded on Vertex)."""

    default_behavior: Literal["BLOCKING", "NON_BLOCKING"] = "BLOCKING"
    """What a function does whose declaration names no ``behavior``. Blocking: the model says
    nothing between a call and its answer (observed on 2.5 and 3.1; Vertex recorded so; 3.8 is
    documented to be non-blocking)."""

    other_behavior: Literal["honoured", "ignored", "refused"] = "honoured"
    """What a declaration of the other behaviour meets: it is honoured (observed on 2.5,
    documented for 3.8), accepted without effect (observed on 3.1), or refused with 1007
    (documented for 3.8 with extended thinking; the code is inferred)."""

    scheduling: Literal["honoured", "ignored"] = "honoured"
    """Whether ``scheduling`` of a response to a non-blocking call counts (documented; not
    available with extended thinking). A blocking call ignores it anyway (documented)."""

    responses_wait_for_caller: bool = False
    """Whether a response to a non-blocking call is not spoken about while the caller speaks
    (documented for INTERRUPT on 3.8; 2.5 cuts in at once). The simulator knows that the caller
    speaks between ``activityStart`` and ``activityEnd``."""

    cancels_on_input: bool = False
    """Whether new input of the caller cancels the blocking calls that are open (documented for
    3.8 on Vertex). Elsewhere it waits for the end of the turn."""

    input_during_call: Literal["taken", 1008] = "taken"
    """What realtime input meets while a blocking call is open: it is taken, or the connection is
    closed, as one client says of the service without a frame to show for it; its own later
    measurements found the same close at a fixed age, calls or not (inferred, and doubtful)."""

    nameless_response: Literal["read", "failed"] = "read"
    """Whether a response without a name is read as one, or taken for the failure of its call
    (observed on 3.8 with extended thinking). It is a breach in both cases."""

    interaction_status: bool = False
    """Whether ``turnComplete`` comes with ``interactionStatus``: ``IN_PROGRESS`` while more will be
    said or a call is open, then ``IDLE`` (documented for 3.8 with extended thinking)."""

    tool_round: Literal["one_turn", "two_turns"] = "one_turn"
    """Whether the answered turn speaks itself, or ends empty and a second one speaks (recorded)."""

    handle_after_setup: bool = False
    """Whether a handle follows ``setupComplete``, also if the setup asked for no resumption
    (recorded on 3.8). It covers what the connection was resumed from, and nothing else."""

    handle_after_turn: bool = True
    """Whether a handle follows each ``turnComplete`` (observed on Vertex; inferred for others)."""

    handle_after_tool_response: Literal["never", "asked", "always"] = "never"
    """Whether a handle follows a consumed tool response, before the reply. ``"always"``: also if
    the setup asked for no resumption (recorded on 3.1)."""

    handle_mid_answer: bool = False
    """Whether, if the setup asked for resumption, a handle also follows each call and the first
    audio of each speech; every update is marked resumable then (observed on Vertex)."""

    resume_keeps_pending_call: Literal["never", "if_handle_after_call"] = "never"
    """Whether a connection resumed from a handle issued while a call was open still waits for its
    answer. Nobody has reported it (``"never"`` is inferred)."""

    handle_ttl: float = 7200.0
    """Seconds for which a handle is good after the last connection of its conversation has ended;
    then it is refused with 1007 (2 h are documented; the code was seen once, on 3.8)."""

    connection_lifetime: float | None = None
    """Seconds after which the server closes a connection; ``None`` for never, as tests want it. The
    service: about 600 (documented, observed), 3480 on 3.8 (observed)."""

    go_away_lead: float = 50.0
    """Seconds between ``goAway`` and the end of a lifetime (observed: 30 on Vertex, 50 and 60; 300
    on 3.8)."""

    lifetime_close: tuple[int, str] = (1011, "Deadline expired before operation could complete.")
    """Close code and reason at the end of a lifetime (observed; also 1000 "The operation was
    cancelled." on Vertex, and 1008 "The operation was aborted.")."""

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

    refused_functions: frozenset[str] = frozenset()
    """Names of functions whose schemas the server does not take: a setup that declares one is
    refused with 1007, and that is no breach (observed of schemas that it cannot read)."""

    names_refused_function: bool = True
    """Whether the reason of that refusal says where the first of them stands in the setup, as in
    ``Unknown name "const" at 'setup.tools[0].function_declarations[5].parameters'``, or is the one
    for any invalid argument (both observed; which schema gets which is not documented)."""

    foreign_response: Literal["ignore", "answer", "empty_turn", "swallow", 1007, 1008] = "ignore"
    """What a response meets whose call was issued on another connection, or never.

    - ``"ignore"``: silence (observed on 2.5 and 3.1; inferred for Vertex).
    - ``"answer"``: the model learns the result and speaks (clients assume it, nobody has shown it).
    - ``"empty_turn"``: ``turnComplete`` without content (inferred from the empty turns of Vertex).
    - ``"swallow"``: a resumed connection still waits on the calls that were open when the earlier
      one ended. Whatever it hears is lost, without a reaction, until each has got a response; the
      last of these ends the turn silently, and none is learnt (observed on 3.8; that *every* input
      is lost until then, and the result with it, is inferred). Anything else is ignored.
    - 1007 or 1008: the connection is closed (1008 "Requested entity was not found." was seen after
      responses, cause unproven).
    """

    context_update: Literal["taken", 1007, 1008] = "taken"
    """What ``contextUpdate`` meets: it is taken (documented by the SDK), or the connection is
    closed (nobody has reported; inferred for servers that do not know it)."""

    duplicate_response: Literal["ignore", 1007, 1008] = "ignore"
    """What a second response to one call meets (nobody has reported; inferred)."""


_2_5 = Profile(
    label="gemini-2.5-flash-native-audio-preview-12-2025",
    api="gemini",
    call_ids="function-call-N",
    audio_mime="audio/pcm;rate=24000",
    thoughts="sent",
)

_3_1 = Profile(
    label="gemini-3.1-flash-live-preview",
    api="gemini",
    call_ids="fc_N",
    audio_mime="audio/pcm;rate=24000",
    opening="empty_content",
    speech="bundled",
    hears="at_once",
    voice_activity="with_content",
    other_behavior="ignored",
    handle_after_tool_response="always",
    not_resumable="flag",
    requires_role=True,
    media_chunks=False,
    null_handle=False,
    unanswered_setup=frozenset({"proactivity", "enable_affective_dialog"}),
    echoes_realtime_text=True,
)

_VERTEX_2_5 = Profile(
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
)

_3_8 = replace(
    _3_1,
    label="gemini-3.8-live",
    model_role=True,
    voice_activity="alone",
    blank_messages=True,
    thoughts="counted",
    handle_after_setup=True,
    default_behavior="NON_BLOCKING",
    other_behavior="honoured",
    responses_wait_for_caller=True,
    cancels_on_input=True,
    handle_after_tool_response="never",
    unanswered_setup=frozenset(),
    foreign_response="swallow",
)
# Spoken and typed turns of 3.8-live are recorded. No frame of a tool call, of a handle after a turn
# or of extended thinking is known: there the form of messages is that of 3.1 (inferred).

_3_8_THINKING = replace(
    _3_8,
    label="gemini-3.8-live-extended-thinking",
    other_behavior="refused",
    scheduling="ignored",
    nameless_response="failed",
    interaction_status=True,
)

PROFILES: dict[str, Profile] = {
    "2.5-native-audio": _2_5,
    "3.1-flash-live": _3_1,
    "vertex-live-2.5": _VERTEX_2_5,
    "vertex-live-2.5-no-ids": replace(_VERTEX_2_5, call_ids="none"),
    "3.8-live": _3_8,
    "3.8-extended-thinking": _3_8_THINKING,
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
