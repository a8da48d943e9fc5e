"""A pytest plugin: the copy of the google plugin has won over the installed one."""

from __future__ import annotations

import os

import pytest


def pytest_sessionstart() -> None:
    """``PLUGIN_UNDER_TEST`` holds the folder that ``livekit.plugins.google`` must come from."""
    from livekit.plugins.google.realtime import realtime_api

    wanted = os.environ["PLUGIN_UNDER_TEST"]
    if not realtime_api.__file__.startswith(wanted):
        raise pytest.UsageError(f"{realtime_api.__file__} was imported, and not from {wanted}")
