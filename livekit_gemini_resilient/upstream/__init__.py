"""The one package that names private members of the google plugin, each with why.

``session`` and ``model`` see only what is here, but that ``session`` replaces ``_main_task`` and
its ``_session_should_close``. What upstream changes is mended here.
"""

from .model import PlainModel, PluginModel
from .session import (
    Generation,
    PluginSession,
    audio_frame,
    mark_first_token,
    stamps_words,
    wall_clock,
)
from .setup import one_line

__all__ = [
    "Generation",
    "PlainModel",
    "PluginModel",
    "PluginSession",
    "audio_frame",
    "mark_first_token",
    "one_line",
    "stamps_words",
    "wall_clock",
]
