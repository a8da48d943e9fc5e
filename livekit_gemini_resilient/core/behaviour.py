"""What has this server been seen to do?

Behaviour is declared or observed, never read off a model's name. The first guess is what no
recorded family refuses. A close straight after our own frame corrects it, and so does a model that
stays silent about one way of asking and speaks after the other; so a wrong guess costs one
recovery, or ``reply_timeout`` of silence, in the life of a record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from .errors import ConfigurationError


class Trigger(str, Enum):
    """How words of ours make the model speak."""

    CLIENT_CONTENT = "client_content"
    """A user turn with ``turn_complete``: accepted with explicit roles by all recorded families."""
    REALTIME_TEXT = "realtime_text"
    """Realtime text: always answered by newer families (observed); for servers that take client
    content only as initial history (observed in spring 2026, close 1007)."""

    @property
    def other(self) -> Trigger:
        """The other way."""
        ways = (Trigger.CLIENT_CONTENT, Trigger.REALTIME_TEXT)
        return ways[self is Trigger.CLIENT_CONTENT]

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What one server does for one model.

    Raises:
        ConfigurationError: ``trigger`` is none of its values, or a flag is no ``bool``.
    """

    trigger: Trigger | str = Trigger.CLIENT_CONTENT
    """How to make the model speak: ``"client_content"`` or ``"realtime_text"``."""

    content_at_any_time: bool = True
    """Whether client content is taken in the middle of a conversation; if not, only as the initial
    history that the setup announces (documented, and observed as 1007 in spring 2026)."""

    foreign_responses: bool = True
    """Whether a resumed connection takes a response to a call that another one issued. Ignored by
    2.5 and 3.1, needed by 3.8 to close the dead exchange (observed); a gateway refuses it."""

    context_updates: bool = True
    """Whether tools and instructions can be changed in place (documented by google-genai 3.x, tried
    by nobody here). Asked only with ``ResilienceOptions(tool_update="context_update")``."""

    def __post_init__(self) -> None:
        """Check every value."""
        try:
            object.__setattr__(self, "trigger", Trigger(self.trigger))
        except ValueError:
            names = " or ".join(repr(trigger.value) for trigger in Trigger)
            raise ConfigurationError("trigger", self.trigger, names) from None
        for name in ("content_at_any_time", "foreign_responses", "context_updates"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigurationError(name, getattr(self, name), "True or False")


class Observed:
    """What a server is taken to do, corrected by what it does.

    Args:
        guess: Where to begin.
    """

    def __init__(self, guess: Behaviour | None = None) -> None:
        self.behaviour = guess or Behaviour()
        """The present record."""
        self._news: Behaviour | None = None
        self._declared = self.behaviour
        self._before: Behaviour | None = None

    @property
    def trigger(self) -> Trigger:
        """How to make the model speak."""
        return Trigger(self.behaviour.trigger)

    @property
    def other_trigger(self) -> Trigger:
        """What to try on a model that stayed silent: the other way, unless that is declared to be
        refused. A close from which it was learned may have had another cause."""
        return self.trigger.other if self._declared.content_at_any_time else self.trigger

    def take_news(self) -> Behaviour | None:
        """The record if it has changed since this was asked last."""
        news, self._news = self._news, None
        return news

    def refused(self, trigger: Trigger) -> None:
        """The server closed the connection straight after words of ours that went this way."""
        self._before = self._before or self.behaviour
        by_content = trigger is Trigger.CLIENT_CONTENT
        self._learn(trigger=trigger.other, content_at_any_time=not by_content)

    def taken(self) -> None:
        """Words of ours did not close the connection: what was learned from others that did
        holds."""
        self._before = None

    def absolved(self) -> None:
        """It was not the way of those words: they are refused in any form."""
        before, self._before = self._before or self.behaviour, None
        self._learn(trigger=Trigger(before.trigger), content_at_any_time=before.content_at_any_time)

    def answered(self, trigger: Trigger) -> None:
        """The model was silent about one way, and spoke after this one."""
        taken = trigger is Trigger.CLIENT_CONTENT or self.behaviour.content_at_any_time
        self._learn(trigger=trigger, content_at_any_time=taken)

    def saw_foreign_response(self, *, taken: bool) -> None:
        """A response to a call of another connection was taken, or closed the connection."""
        self._learn(foreign_responses=taken)

    def refused_context_update(self) -> None:
        """The server closed the connection straight after one."""
        self._learn(context_updates=False)

    def _learn(self, **changes: bool | Trigger) -> None:
        learned = replace(self.behaviour, **changes)  # type: ignore[arg-type]
        if learned != self.behaviour:
            self.behaviour = self._news = learned
