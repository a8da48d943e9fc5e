"""The options that this package adds to the google plugin's own."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from enum import Enum

from .core.behaviour import Behaviour
from .core.errors import ConfigurationError
from .core.requests import ReplyDuringCall
from .core.rotation import RestartWhen, ToolUpdate

_NO_NUMBERS = frozenset(
    {
        "restart_when",
        "reply_during_call",
        "behaviour",
        "tool_update",
        "transition_tools",
        "hold_input_during_call",
    }
)
"""Options that are checked in ways of their own; all others are numbers."""


@dataclass(frozen=True, kw_only=True)
class ResilienceOptions:
    """How a session replaces its connection and delivers tool results.

    Every default works; none has to be set. All times are seconds.

    Raises:
        ConfigurationError: A value cannot work; the text names the option and what it expects.
            It is also a ``ValueError``.
    """

    restart_when: RestartWhen | str = RestartWhen.AUTO
    """The safe point at which a change that needs a new connection takes effect: ``"auto"``,
    ``"pause"`` (the model is silent, a tool may be running), ``"turn_end"`` (the exchange is
    over) or ``"now"`` (at once, as the google plugin does: no result is lost, speech is cut)."""

    max_defer: float = 30.0
    """Seconds for which such a change waits for its safe point at most, counted anew from the end
    of an open call, so that the reply to its result is not cut. More than 0."""

    go_away_margin: float = 5.0
    """Seconds kept between our reconnect and the end that ``goAway.time_left`` announces.
    Notices of 30 to 300 s were observed; of one shorter than twice the margin, half is kept. 0 or
    more."""

    max_connection_age: float | None = None
    """Seconds after which a connection is replaced although the server has announced nothing: at
    the same safe point as after a notice, within ``max_defer``, and only where it can be resumed;
    without a handle the fresh session would know the conversation as text alone, a certain loss for
    a possible one. Each connection begins anew. ``None``, the default, leaves the end to the
    server: it closes a connection after about 10 minutes and announces that (documented), one was
    seen to stay open for 58 minutes, and a resume is not free of risk (observed: prefilled history
    lost, handles that do not speak). Set it where connections end at a known age without a notice:
    540 for those 10 minutes, or less than the limit of a proxy (one that closed them at 150 s was
    observed). More than 0."""

    settle_grace: float = 0.5
    """Seconds for which a resumed connection may show an effect of the responses that close the
    exchanges left open, before the results are put into words. 0 or more."""

    reply_timeout: float = 10.0
    """Seconds of silence after which a model that owes a reply to a tool result is asked once
    more, and, after as long again, an error is reported. As long a silence ends a turn that stops
    in the middle or leaves the caller without an answer, for which the model is then asked, first
    here and then in a fresh session; and a result waits as long for the others of its batch before
    it is put into words. Healthy replies were observed to begin after up to 7 s. More than 0."""

    tool_answer_timeout: float | None = 60.0
    """Seconds after which a call whose tool has not answered is answered with "still running", so
    that a model that waits for it can speak again; the result is told when it comes. LiveKit 1.6.5
    never hands over a result that it cannot serialise. ``None`` lets the model wait for ever. More
    than 0."""

    reply_during_call: ReplyDuringCall | str = ReplyDuringCall.FAIL
    """What ``generate_reply`` does while a tool runs that the model waits for: ``"fail"`` (at once,
    with ``llm.RealtimeError``) or ``"interim"`` (the call is answered "still running", the reply is
    spoken, and the result is told when it comes)."""

    tool_update: ToolUpdate | str = ToolUpdate.RECONNECT
    """How tools and instructions change: ``"reconnect"``, or ``"context_update"``: in place, where
    google-genai 3.x can express that; a server that closes the connection for it is remembered
    (``Behaviour.context_updates``), and a new connection carries the change. Untested on the live
    service: nobody here could try it."""

    transition_tools: Collection[str] | str = ()
    """Names of the tools whose effect is another prompt or another agent (they call
    ``update_tools``, ``update_instructions``, or hand over), or ``"all"``. Such a call that arrives
    while the model speaks waits until it has finished, for ``max_defer`` seconds at most; a restart
    that the tool asks for takes effect as soon as the model is silent, and the result is then told
    on the new connection, so that the new prompt answers it."""

    close_timeout: float = 3.0
    """Seconds that the closing handshake of an old connection may take before it is aborted.
    1.4 to 3 s were observed. More than 0."""

    dial_timeout: float = 15.0
    """Seconds that a dial may take, the answer to the setup included; the SDK has no such limit,
    and servers were observed never to answer. More than 0."""

    ping_interval: float | None = 20.0
    """Seconds between keepalive pings of the websocket, ``None`` for none. More than 0."""

    ping_timeout: float | None = 60.0
    """Seconds after which a missing pong ends the connection, ``None`` for never. Pongs were
    observed to take 8 to 30 s on healthy calls, where the SDK's own 20 s cuts. More than 0."""

    trailing_quiet: float = 0.25
    """Seconds without a frame after which speech that trails a tool call is over. LiveKit hands
    over no result before that. 0 or more."""

    transcript_grace: float = 0.25
    """Seconds for which the transcript may trail ``generationComplete``. 0 or more."""

    input_buffer: float = 5.0
    """Seconds of the caller's audio kept while there is no connection; the oldest is dropped
    first, and counted. 0 or more."""

    hold_input_during_call: bool = False
    """Whether the caller's audio and video wait, in order and within ``input_buffer``, while the
    model waits for a tool, and are sent once it has been answered. Servers were observed to take
    audio in that time for a new turn and to cancel the call, and 1008 was reported for it, by one
    client whose own measurements later spoke against that. The price: the caller cannot interrupt
    the wait. Nothing is held for tools that do not block."""

    max_result_bytes: int = 512 * 1024
    """Largest tool result in UTF-8 bytes that is passed on; a larger one is answered with an
    error that tells the model so. What the service allows is not documented. More than 0."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    """What the server is known to do. What is learned otherwise is logged in the form in which it
    can be written here, and shared by the sessions of one ``RealtimeModel``."""

    def __post_init__(self) -> None:
        """Check every value."""
        self._check_choice("restart_when", RestartWhen)
        self._check_choice("reply_during_call", ReplyDuringCall)
        self._check_choice("tool_update", ToolUpdate)
        self._check_names()
        if not isinstance(self.hold_input_during_call, bool):
            name, value = "hold_input_during_call", self.hold_input_during_call
            raise ConfigurationError(name, value, "True or False")
        if not isinstance(self.behaviour, Behaviour):
            raise ConfigurationError("behaviour", self.behaviour, "a Behaviour")
        may_be_zero = {
            "go_away_margin",
            "settle_grace",
            "trailing_quiet",
            "transcript_grace",
            "input_buffer",
        }
        may_be_none = {
            "ping_interval",
            "ping_timeout",
            "tool_answer_timeout",
            "max_connection_age",
        }
        for option in fields(self):
            if option.name in _NO_NUMBERS:
                continue
            value = getattr(self, option.name)
            if value is None and option.name in may_be_none:
                continue
            _check_number(option.name, value, zero=option.name in may_be_zero)
        if not isinstance(self.max_result_bytes, int):
            raise ConfigurationError("max_result_bytes", self.max_result_bytes, "a whole number")

    @property
    def transition_names(self) -> frozenset[str] | None:
        """The tools that are transitions, ``None`` for all."""
        return None if self.transition_tools == "all" else frozenset(self.transition_tools)

    def _check_names(self) -> None:
        names = self.transition_tools
        listed = not isinstance(names, str | bytes) and isinstance(names, Collection)
        if names != "all" and not (listed and all(isinstance(name, str) for name in names)):
            raise ConfigurationError("transition_tools", names, 'names of tools, or "all"')

    def _check_choice(self, name: str, choices: type[Enum]) -> None:
        value = getattr(self, name)
        try:
            object.__setattr__(self, name, choices(value))
        except ValueError:
            names = ", ".join(repr(choice.value) for choice in choices)
            raise ConfigurationError(name, value, f"one of {names}") from None


def _check_number(name: str, value: object, *, zero: bool) -> None:
    expected = "a finite number of 0 or more" if zero else "a finite number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(name, value, expected)
    if value < 0 or (value == 0 and not zero):
        raise ConfigurationError(name, value, expected)
