"""What was decided on each public name of upstream's model and session.

A name that is not here fails a test until somebody decides: a user of this package can call it,
and what is inherited by accident may write to a connection that is no longer the session's.
"""

from __future__ import annotations

from enum import Enum

from livekit.plugins.google.realtime import realtime_api

from livekit_gemini_resilient import RealtimeModel, RealtimeSession


class Decision(Enum):
    """What becomes of a name."""

    INHERITED = "as upstream has it"
    OVERRIDDEN = "ours does it"
    UNSUPPORTED = "as upstream has it, which refuses or only warns: the service cannot do it"


INHERITED, OVERRIDDEN, UNSUPPORTED = Decision

MODEL = {
    "aclose": (INHERITED, "does nothing; sessions are closed by themselves"),
    "capabilities": (INHERITED, "reads what our constructor has corrected"),
    "label": (INHERITED, "the name of the class"),
    "metrics_metadata": (INHERITED, "model and provider; since agents 1.7"),
    "model": (INHERITED, "the name that the user gave"),
    "provider": (INHERITED, "which of the two services"),
    "session": (OVERRIDDEN, "makes our session, and takes the argument of agents 1.7 everywhere"),
    "update_options": (INHERITED, "hands the change to every session"),
}

SESSION = {
    "aclose": (OVERRIDDEN, "from any state, and nothing is left"),
    "capabilities": (INHERITED, "the model's"),
    "chat_ctx": (INHERITED, "a copy of what was recorded"),
    "clear_audio": (UNSUPPORTED, "warns"),
    "commit_audio": (UNSUPPORTED, "warns"),
    "emit": (INHERITED, "of LiveKit's event emitter"),
    "generate_reply": (OVERRIDDEN, "a request survives a reconnect"),
    "interrupt": (INHERITED, "marks activity, by the one way by which input is sent"),
    "off": (INHERITED, "of LiveKit's event emitter"),
    "on": (OVERRIDDEN, "notes which agent takes the generations"),
    "once": (INHERITED, "of LiveKit's event emitter"),
    "push_audio": (INHERITED, "resamples, and sends by the one way"),
    "push_video": (INHERITED, "encodes, and sends by the one way"),
    "realtime_model": (INHERITED, "the model that made it"),
    "say": (UNSUPPORTED, "raises: the model has no such capability"),
    "session_resumption_handle": (OVERRIDDEN, "the core's, which drops a handle that is no good"),
    "start_user_activity": (INHERITED, "marks activity, by the one way"),
    "tools": (INHERITED, "a copy of what was declared"),
    "truncate": (UNSUPPORTED, "warns"),
    "update_chat_ctx": (OVERRIDDEN, "the ledger and the history decide what is told"),
    "update_instructions": (OVERRIDDEN, "in place or over a new connection, at a safe point"),
    "update_options": (INHERITED, "a restart that it marks is the core's to make"),
    "update_tools": (OVERRIDDEN, "over a new connection, at a safe point"),
}

CLASSES = [
    (realtime_api.RealtimeModel, RealtimeModel, MODEL),
    (realtime_api.RealtimeSession, RealtimeSession, SESSION),
]
"""Upstream's class, ours, and what was decided on its names."""

REPLACED = {"_main_task", "_mark_restart_needed", "_send_client_event"}
"""Private names of upstream that ours gives another meaning, and must: see ``table``."""

NEWER = {"metrics_metadata"}
"""Names that the oldest supported version does not have."""

OLDER = {"_first_token_timestamp"}
"""Private names that only versions before 1.8.9 have; ours looks before it uses them."""
