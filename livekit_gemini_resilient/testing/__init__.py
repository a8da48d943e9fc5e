"""A Gemini Live server to test agents against, without an API key.

`GeminiLiveServer` is a real TLS websocket server on 127.0.0.1 that the unmodified google-genai SDK
and LiveKit's google plugin connect to. A scripted model with a memory answers, in the manner of the
family that its `Profile` names. It shares no code with the rest of this package.
"""

from typing import TYPE_CHECKING

try:
    from .server import GeminiLive, GeminiLiveServer
except ModuleNotFoundError as missing:
    # Raised by whoever uses a name, so that the command can start and say what to install.
    if not TYPE_CHECKING:
        from .extra import raising

        __getattr__ = raising(missing)
else:
    from .faults import Barrier, Refusals, Trap
    from .profiles import PROFILES, Profile
    from .records import (
        Breach,
        Closed,
        Connection,
        Entry,
        IssuedCall,
        Reply,
        TimelineEvent,
        ToolResponse,
    )
    from .script import CHUNK_SECONDS, Call, Calls, Gate, Say, Silence, Step

__all__ = [
    "CHUNK_SECONDS",
    "PROFILES",
    "Barrier",
    "Breach",
    "Call",
    "Calls",
    "Closed",
    "Connection",
    "Entry",
    "Gate",
    "GeminiLive",
    "GeminiLiveServer",
    "IssuedCall",
    "Profile",
    "Refusals",
    "Reply",
    "Say",
    "Silence",
    "Step",
    "TimelineEvent",
    "ToolResponse",
    "Trap",
]
