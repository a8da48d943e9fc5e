"""A call with the google plugin's own model, patched or not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

from livekit_gemini_resilient.testing import GeminiLiveServer

from ..stack import OnCall, on_call

PATIENCE = float(os.environ.get("PATIENCE", "1.5"))
"""Seconds to wait for what must happen. Without the patch it never will; with it there is time."""


@contextlib.asynccontextmanager
async def plain_call(server: GeminiLiveServer, **options: Any) -> AsyncIterator[OnCall]:
    """``on_call`` with the plugin's model and this module's patience."""
    async with on_call(server, plain=True, **options) as call:
        call.patience = PATIENCE
        yield call
