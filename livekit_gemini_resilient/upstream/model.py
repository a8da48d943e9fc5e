"""Upstream's model, without what it infers from the model's name."""

from __future__ import annotations

import dataclasses
from typing import Any

from google.genai import types
from livekit.agents.types import NOT_GIVEN
from livekit.agents.utils import is_given
from livekit.plugins.google.realtime import realtime_api as plugin

PlainModel = plugin.RealtimeModel
"""Upstream's model; the plugin's own name for it may come to stand for ours."""

_UNNAMED_MODEL = "unnamed"
"""Stands in for the model's name while upstream's constructor runs, since that decides
capabilities and tool behaviour by parts of the name, and refuses some names."""


class PluginModel(PlainModel):
    """Upstream's model without what it infers from the model's name.

    Args:
        http_defaults: Arguments for the websocket that the user's own ``http_options`` override.
        **kwargs: Upstream's arguments.
    """

    def __init__(self, *, http_defaults: dict[str, Any], **kwargs: Any) -> None:
        name = kwargs.get("model", NOT_GIVEN)
        if is_given(name):
            kwargs["model"] = _UNNAMED_MODEL
        super().__init__(**kwargs)
        if is_given(name):
            self._opts.model = name
        # declared by the user or left to the server: upstream's default goes by the name
        self._opts.tool_behavior = kwargs.get("tool_behavior", NOT_GIVEN)
        self._opts.http_options = _http_options(
            self._opts.http_options, self._opts.conn_options.timeout, http_defaults
        )
        # ours can do both on every server: in place or over a new connection. mutable_tools stays
        # false: LiveKit would reuse the session for an AgentTask while the outer call is open
        self._capabilities = dataclasses.replace(
            self._capabilities,
            mutable_chat_context=True,
            mutable_instructions=True,
            mutable_tools=False,
        )


def _http_options(given: Any, timeout: float, defaults: dict[str, Any]) -> types.HttpOptions:
    """The user's options, copied (upstream writes into them), with our websocket arguments."""
    if given and is_given(given):
        options: types.HttpOptions = given.model_copy()
    else:
        options = types.HttpOptions(timeout=int(timeout * 1000))
    options.headers = dict(options.headers or {})
    options.async_client_args = {**defaults, **(options.async_client_args or {})}
    return options
