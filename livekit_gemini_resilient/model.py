"""The drop-in model."""

from __future__ import annotations

from typing import Any, ClassVar, overload

from .core.behaviour import Observed
from .core.errors import ConfigurationError
from .core.recovery import YOUNG
from .options import ResilienceOptions
from .session import RealtimeSession
from .signature import shows, takes
from .upstream import PlainModel, PluginModel

_MAX_MESSAGE = 16 * 1024 * 1024
"""Bytes. The SDK's own limit of 1 MiB ends the connection when a larger message arrives."""


class RealtimeModel(PluginModel):
    """A Gemini Live model whose sessions survive the replacement of their connection.

    Takes the place of ``livekit.plugins.google.realtime.RealtimeModel`` and is one.

    Args:
        resilience: Times and limits; every default works.
        **kwargs: The arguments of the google plugin's model, unchanged. ``http_options`` may carry
            ``async_client_args`` (websocket arguments), which win over those made here.

    Raises:
        ConfigurationError: ``resilience`` is not a ``ResilienceOptions``.
        ValueError: As the google plugin, e.g. without an API key.
    """

    _default_resilience: ClassVar[ResilienceOptions] = ResilienceOptions()

    @overload
    @takes(PlainModel.__init__)
    def __init__(self) -> None: ...
    @overload
    def __init__(self, *, resilience: ResilienceOptions | None, **kwargs: Any) -> None: ...
    @shows(PlainModel.__init__)
    def __init__(self, *, resilience: ResilienceOptions | None = None, **kwargs: Any) -> None:
        resilience = self._default_resilience if resilience is None else resilience
        if not isinstance(resilience, ResilienceOptions):
            raise ConfigurationError("resilience", resilience, "a ResilienceOptions")
        super().__init__(
            http_defaults={
                "ping_interval": resilience.ping_interval,
                "ping_timeout": resilience.ping_timeout,
                "close_timeout": resilience.close_timeout,
                "max_size": _MAX_MESSAGE,
            },
            **kwargs,
        )
        self._resilience = resilience
        self._observed = Observed(resilience.behaviour)
        # a call that is scaled down in time, as in the demo, has connections that live for less
        self._young = YOUNG

    @property
    def resilience(self) -> ResilienceOptions:
        """Times and limits of the sessions of this model."""
        return self._resilience

    def session(self, *, turn_detection_disabled: bool = False) -> RealtimeSession:
        """A new conversation; it begins to connect at once.

        Args:
            turn_detection_disabled: For LiveKit's sake; the service cannot do that per session.
        """
        return RealtimeSession(self, self._resilience, self._observed, young=self._young)
