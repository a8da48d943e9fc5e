"""The model's constructor shows upstream's arguments and ours; ``typed_use`` is for mypy."""

from __future__ import annotations

import inspect

from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from livekit_gemini_resilient import RealtimeModel, install


def test_the_constructor_shows_upstreams_arguments_and_then_ours() -> None:
    """With the names, defaults and annotations that the installed plugin has."""
    theirs = inspect.signature(PluginModel).parameters
    ours = inspect.signature(RealtimeModel).parameters
    assert list(ours) == [*theirs, "resilience"]
    assert all(ours[name] == theirs[name] for name in theirs)
    assert (ours["resilience"].kind, ours["resilience"].default) == (
        inspect.Parameter.KEYWORD_ONLY,
        None,
    )
    assert ours["resilience"].annotation == "ResilienceOptions | None"


def test_what_is_installed_shows_them_too() -> None:
    """Also with options of its own."""
    shown = inspect.signature(RealtimeModel)
    with install():
        from livekit.plugins.google.realtime import RealtimeModel as installed

        assert inspect.signature(installed) == shown
