"""Stand in for the google plugin's realtime model, in code that was written for the plugin.

Only the plugin's own names are bound anew, and only by a call of ``install``. Whoever took the
class from them before, by ``from livekit.plugins.google.realtime import RealtimeModel``, keeps the
plugin's class: install first.
"""

from __future__ import annotations

import contextlib
from typing import Any

from livekit.plugins.google import realtime
from livekit.plugins.google.realtime import realtime_api

from .core.errors import ConfigurationError
from .model import RealtimeModel
from .options import ResilienceOptions
from .upstream import PlainModel

_EXPORTING = (realtime, realtime_api)
"""Every module of the plugin in which the class has a name; ``google.beta.realtime`` is the first
of them under another name."""

_NAME = "RealtimeModel"


def install(
    *, resilience: ResilienceOptions | None = None
) -> contextlib.AbstractContextManager[object]:
    """Make ``google.realtime.RealtimeModel`` ours, for whatever looks it up from now on.

    Call it in the agent file, before anything else is imported: the job processes of a worker
    import that file afresh. Of several calls the last one counts; one ``uninstall`` ends them all.

    Args:
        resilience: Times and limits of the models that are made under the plugin's names and bring
            none of their own; ``None`` for the defaults.

    Returns:
        A context manager, which may be ignored. At the end of its block the names are bound as
        they were before the call.

    Raises:
        ConfigurationError: ``resilience`` is not a ``ResilienceOptions``.
    """
    model: type[RealtimeModel] = RealtimeModel
    if resilience is not None:
        if not isinstance(resilience, ResilienceOptions):
            raise ConfigurationError("resilience", resilience, "a ResilienceOptions")
        model = type(_NAME, (RealtimeModel,), {"_default_resilience": resilience})
    before = contextlib.ExitStack()
    before.callback(_bind, vars(realtime)[_NAME])
    _bind(model)
    return before


def uninstall() -> None:
    """Give the plugin's names back to the plugin's class; models that exist are left as they are.

    Does nothing if nothing was installed.
    """
    _bind(PlainModel)


def _bind(model: type[Any]) -> None:
    for module in _EXPORTING:
        vars(module)[_NAME] = model
