"""What the service refuses, and with which close code.

Each function raises `Refused`; a frame that none of them minds is accepted.
"""

from __future__ import annotations

from typing import Any

from .profiles import Profile
from .wire import INVALID_ARGUMENT_REASON, Refused

_SETUP_FIELDS = frozenset(
    {
        "model",
        "generation_config",
        "system_instruction",
        "tools",
        "session_resumption",
        "input_audio_transcription",
        "output_audio_transcription",
        "realtime_input_config",
        "context_window_compression",
        "proactivity",
        "history_config",
        "explicit_vad_signal",
        "avatar_config",
        "safety_settings",
        "translation_config",
        "labels",
    }
)

_REALTIME_FIELDS = frozenset(
    {
        "audio",
        "video",
        "text",
        "media_chunks",
        "activity_start",
        "activity_end",
        "audio_stream_end",
    }
)

FIELDS: dict[str, frozenset[str]] = {
    "setup": _SETUP_FIELDS,
    "client_content": frozenset({"turns", "turn_complete"}),
    "realtime_input": _REALTIME_FIELDS,
    "tool_response": frozenset({"function_responses"}),
    "context_update": frozenset({"system_instruction", "tools"}),
}
"""The frames a client may send, and the fields of each (documented). Anything else is an invalid
request (1007, inferred: protobuf JSON refuses unknown names)."""

FRAME_KINDS = (*FIELDS, *(f"realtime_input.{field}" for field in sorted(_REALTIME_FIELDS)))
"""All that `wire.frame_kind` may say of a frame with a known form, and ``"realtime_input"`` for any
frame of realtime input."""

_RESPONSE_FIELDS = frozenset({"id", "name", "response", "will_continue", "scheduling", "parts"})

_SCHEDULING = frozenset({None, "SCHEDULING_UNSPECIFIED", "SILENT", "WHEN_IDLE", "INTERRUPT"})
"""Values of ``scheduling`` (documented; that others are refused is inferred)."""


def check_form(frame: dict[str, Any]) -> None:
    """Refuse a frame that is not exactly one of the known ones, with known fields."""
    if len(frame) != 1:
        raise Refused(f"a frame has one key, not {sorted(frame)}")
    (kind, body), *_ = frame.items()
    if kind not in FIELDS:
        raise Refused(f"unknown frame {kind!r}")
    if not isinstance(body, dict):
        raise Refused(f"{kind} is an object, not {type(body).__name__}")
    if unknown := body.keys() - FIELDS[kind]:
        raise Refused(f"{kind} has no field {', '.join(sorted(unknown))}")


def check_setup(profile: Profile, setup: dict[str, Any]) -> None:
    """Refuse a setup that this family cannot serve."""
    if not setup.get("model"):
        raise Refused("the setup names no model")
    modalities = (setup.get("generation_config") or {}).get("response_modalities") or []
    if "TEXT" in modalities and not profile.text_modality:
        raise Refused(
            "response modality TEXT",
            reason="The requested combination of response modalities (TEXT) is not supported.",
        )
    resumption = setup.get("session_resumption") or {}
    if resumption.get("handle", "") is None and not profile.null_handle:
        raise Refused("sessionResumption with a handle of null")
    if profile.api == "gemini":
        if "transparent" in resumption:
            raise Refused("transparent resumption on the Gemini API (the SDK refuses to send it)")
        if "explicit_vad_signal" in setup:
            raise Refused("explicitVadSignal on the Gemini API (the SDK refuses to send it)")
    if instruction := setup.get("system_instruction"):
        _check_parts(instruction)
    check_tools(profile, setup.get("tools"))


def check_tools(profile: Profile, tools: list[dict[str, Any]] | None) -> None:
    """Refuse declarations that this server does not take, and behaviours that it does not have."""
    for number, tool in enumerate(tools or []):
        for place, declaration in enumerate(tool.get("function_declarations") or []):
            name = declaration.get("name", "")
            if name in profile.refused_functions:
                where = f"setup.tools[{number}].function_declarations[{place}].parameters"
                said = f"Invalid JSON payload received. Unknown name \"const\" at '{where}'"
                reason = said if profile.names_refused_function else INVALID_ARGUMENT_REASON
                raise Refused(f"the schema of {name}", reason=reason, blamed=False)
    if profile.other_behavior != "refused":
        return
    for name, behavior in declared_behaviors(tools).items():
        if behavior != profile.default_behavior:
            raise Refused(f"{name} is declared {behavior}")


def check_content(profile: Profile, content: dict[str, Any], *, initial_history: bool) -> None:
    """Refuse client content that this family cannot take.

    Args:
        profile: the family.
        content: the frame's body.
        initial_history: whether the connection is in the phase in which client content is history.
    """
    if profile.client_content == "initial_only" and not initial_history:
        raise Refused("client_content outside the initial history")
    roles = {"user", "model"} | ({"system"} if profile.system_role else set())
    for turn in content.get("turns") or []:
        if "role" not in turn:
            if profile.requires_role:
                raise Refused("a turn without a role")
        elif turn["role"] not in roles:
            raise Refused(f"a turn of role {turn['role']!r}")
        _check_parts(turn)


def check_realtime(profile: Profile, realtime: dict[str, Any], *, manual: bool) -> None:
    """Refuse realtime input that this family, or this setup, cannot take.

    Args:
        profile: the family.
        realtime: the frame's body.
        manual: whether the setup turned automatic activity detection off.
    """
    if "media_chunks" in realtime and not profile.media_chunks:
        raise Refused("mediaChunks")
    if not manual and realtime.keys() & {"activity_start", "activity_end"}:
        # Inferred: the documentation forbids it, nobody has published the answer.
        raise Refused("activityStart/activityEnd under automatic activity detection")


def check_responses(profile: Profile, responses: list[dict[str, Any]]) -> None:
    """Refuse function responses of the wrong form."""
    for response in responses:
        if unknown := response.keys() - _RESPONSE_FIELDS:
            raise Refused(f"a function response has no field {', '.join(sorted(unknown))}")
        if profile.api == "gemini" and response.get("id") is None:
            raise Refused("a function response without an id (the SDK refuses to send it)")
        if profile.api == "gemini" and profile.call_ids != "none" and not response["id"]:
            raise Refused("a function response without an id: the empty one is none")
        if profile.call_ids == "none" and response.get("id"):
            raise Refused("a function response with an id, which this server never issued")
        if response.get("scheduling", "SILENT") not in _SCHEDULING:
            raise Refused(f"scheduling {response['scheduling']!r}")
        if not isinstance(response.get("response", {}), dict):
            raise Refused("a function response is an object")


def _check_parts(content: dict[str, Any]) -> None:
    for part in content.get("parts") or []:
        if part.keys() & {"function_call", "function_response"}:
            raise Refused("a function part in a turn")
        if not isinstance(part.get("text", ""), str):
            raise Refused("text that is no string")


def declared_tools(tools: list[dict[str, Any]] | None) -> set[str]:
    """Return the names of the functions in ``tools``."""
    return {declaration.get("name", "") for declaration in _declarations(tools)}


def declared_behaviors(tools: list[dict[str, Any]] | None) -> dict[str, str]:
    """Return the ``behavior`` of each function in ``tools`` that names one."""
    return {
        declaration.get("name", ""): declaration["behavior"]
        for declaration in _declarations(tools)
        if declaration.get("behavior") in ("BLOCKING", "NON_BLOCKING")
    }


def _declarations(tools: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [
        declaration
        for tool in tools or []
        for declaration in tool.get("function_declarations") or []
    ]
