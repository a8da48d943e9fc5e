"""A drop-in Gemini Live realtime model for LiveKit Agents.

It never loses, doubles or misroutes a tool result when its websocket is replaced.
"""

from . import versions as versions  # checks them, before anything is built on upstream
from .core.behaviour import Behaviour
from .core.effects import Outcome, ReportOutcome
from .core.errors import (
    CallerUnanswered,
    ConfigurationError,
    ConnectionFailed,
    MessagesLeftOut,
    ReplyRefused,
    ResilienceError,
    ResultUnanswered,
    SessionFailed,
    SettingsRefused,
    ToolsUnusable,
)
from .core.requests import ReplyDuringCall
from .core.rotation import RestartWhen, ToolUpdate
from .install import install, uninstall
from .model import RealtimeModel
from .options import ResilienceOptions
from .session import RealtimeSession

__version__ = "0.1.0"

__all__ = [
    "Behaviour",
    "CallerUnanswered",
    "ConfigurationError",
    "ConnectionFailed",
    "MessagesLeftOut",
    "Outcome",
    "RealtimeModel",
    "RealtimeSession",
    "ReplyDuringCall",
    "ReplyRefused",
    "ReportOutcome",
    "ResilienceError",
    "ResilienceOptions",
    "RestartWhen",
    "ResultUnanswered",
    "SessionFailed",
    "SettingsRefused",
    "ToolUpdate",
    "ToolsUnusable",
    "__version__",
    "install",
    "uninstall",
]
