"""Client frames as this server reads them, whatever the SDK's spelling.

The google-genai SDK mixes snake_case and camelCase within one frame and changes its mind between
versions, so every key is read as snake_case, except in what belongs to the user: the keys of a
call's arguments, of a tool's response, and of the properties in a schema are left alone.
"""

from __future__ import annotations

import json
import re
from typing import Any

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")

USER_DATA = frozenset(
    {"args", "response", "properties", "parameters_json_schema", "response_json_schema", "labels"}
)
"""Keys (snake_case) below which nothing is renamed."""

_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""Control characters other than tab, newline and carriage return; and lone surrogates."""

INVALID_ARGUMENT = 1007
"""The close code for a request that the service cannot accept (observed, all families)."""

INVALID_ARGUMENT_REASON = "Request contains an invalid argument."
"""Its reason text (observed)."""


class Refused(Exception):
    """The service would refuse this and close the connection.

    Attributes:
        code: the close code.
        reason: the reason sent in the close frame.
        why: what was wrong with the frame, for whoever reads the breach.
        blamed: whether it is the client's fault, and therefore a breach.
    """

    def __init__(
        self,
        why: str,
        *,
        code: int = INVALID_ARGUMENT,
        reason: str = INVALID_ARGUMENT_REASON,
        blamed: bool = True,
    ) -> None:
        super().__init__(why)
        self.why = why
        self.code = code
        self.reason = reason
        self.blamed = blamed


def snake_case(key: str) -> str:
    """Return ``key`` in snake_case; a key that is so already is returned as it is."""
    return _CAPITAL.sub(r"_\1", key).lower()


def normalise(value: Any) -> Any:
    """Return ``value`` with every key in snake_case, user data excepted (`USER_DATA`)."""
    if isinstance(value, dict):
        renamed = {snake_case(key): item for key, item in value.items()}
        return {k: v if k in USER_DATA else normalise(v) for k, v in renamed.items()}
    if isinstance(value, list):
        return [normalise(item) for item in value]
    return value


def read_frame(payload: bytes) -> dict[str, Any]:
    """Return the normalised frame in the payload of one websocket message.

    Raises:
        Refused: not UTF-8, not JSON (``NaN`` is not JSON), not an object, or with text that holds a
            control character or a lone surrogate (observed: 1007 for control characters;
            surrogates are inferred, protobuf strings cannot hold them).
    """
    try:
        frame = json.loads(payload.decode(), parse_constant=_not_json)
    except ValueError as error:
        raise Refused(f"not a JSON document: {error}") from error
    if not isinstance(frame, dict):
        raise Refused(f"a frame is a JSON object, not {type(frame).__name__}")
    if bad := next((text for text in strings(frame) if _NOT_TEXT.search(text)), None):
        raise Refused(f"text with a control character or a lone surrogate: {bad!r}")
    normalised: dict[str, Any] = normalise(frame)
    return normalised


def frame_kind(frame: dict[str, Any]) -> str:
    """Return what the frame is: its one key; of realtime input also which, as in
    ``"realtime_input.audio"``."""
    kind = next(iter(frame), "empty")
    if kind == "realtime_input" and isinstance(frame[kind], dict) and frame[kind]:
        return f"{kind}.{next(iter(frame[kind]))}"
    return kind


def strings(value: Any) -> list[str]:
    """Return every string in a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for key, item in value.items() for s in (key, *strings(item))]
    if isinstance(value, list):
        return [s for item in value for s in strings(item)]
    return []


def plain_text(value: Any) -> str:
    """Return the leaves of a JSON value as lines of text, strings unquoted."""
    if isinstance(value, dict):
        return "\n".join(plain_text(item) for item in value.values())
    if isinstance(value, list):
        return "\n".join(plain_text(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)


def content_text(content: dict[str, Any]) -> str:
    """Return the text of a ``Content`` (its text parts, joined)."""
    return "".join(part.get("text", "") for part in content.get("parts", []))


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
