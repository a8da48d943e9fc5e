"""What became of a tool result, as the simulated model remembers it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..testing import GeminiLiveServer
from .line import WEATHER, book_table
from .scribe import tells

FAREWELL = "Thank you, goodbye."
"""The caller's last words; a reply that knows them belongs to the later turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the model knew, and said."""

    answers: int
    """Completed replies, ahead of the caller's last words, that knew the result."""
    blind: int
    """Replies in that time that did not know it."""
    cut: int
    """Replies in that time that were not completed."""
    later: bool
    """Whether the caller's last words were answered."""
    remembered: bool
    """Whether the model knew the result when it answered them."""
    has_tool: bool
    """Whether it knew of the tool that was added; true if none was."""
    told: str
    """Responses and words with the result, by connection."""
    breaches: tuple[str, ...]
    """What the simulator objected to."""
    patience: float
    """Seconds for which an answer was waited for."""

    @property
    def survived(self) -> bool:
        """Answered exactly once, and the call went on."""
        once = self.answers == 1 and not self.blind and not self.cut
        return once and self.later and self.remembered and self.has_tool and not self.breaches

    def __str__(self) -> str:
        happened = "; ".join([self._answered(), self._went_on(), *self.breaches])
        return f"{happened}. Result told: {self.told}."

    def _answered(self) -> str:
        if not (self.answers or self.blind or self.cut):
            return f"silent for {self.patience:g} s" if self.later else "silent for good"
        parts = []
        if self.answers:
            times = "once" if self.answers == 1 else f"{self.answers} times"
            parts.append(f"answered {times}, knowing the result")
        if self.cut:
            parts.append("cut short in mid-sentence")
        if self.blind:
            parts.append("spoke without knowing the result")
        return ", ".join(parts)

    def _went_on(self) -> str:
        if not self.later:
            return "the later turn got no answer"
        parts = ["the later turn worked" if self.remembered else "the later turn was answered"]
        if not self.remembered:
            parts.append("without knowing the result")
        if not self.has_tool:
            parts.append("without the new tool")
        return " ".join(parts)


def judge(server: GeminiLiveServer, *, adds_tool: bool, patience: float) -> Verdict:
    """Look into the memory of a model whose call is over.

    Args:
        server: The simulator.
        adds_tool: Whether it must know of ``book_table``.
        patience: Seconds for which an answer was waited for.
    """
    after_greeting = server.replies[1:]
    before = [reply for reply in after_greeting if not reply.knew(FAREWELL)]
    later = [reply for reply in after_greeting if reply.knew(FAREWELL) and reply.completed]
    latest = [connection for connection in server.connections if connection.accepted][-1]
    return Verdict(
        answers=sum(reply.completed and reply.knew(WEATHER) for reply in before),
        blind=sum(reply.completed and not reply.knew(WEATHER) for reply in before),
        cut=sum(not reply.completed for reply in before),
        later=bool(later),
        remembered=any(reply.knew(WEATHER) for reply in later),
        has_tool=not adds_tool or book_table.info.name in latest.declared_tools,
        told=_told(server),
        breaches=tuple(breach.what for breach in server.breaches),
        patience=patience,
    )


def _told(server: GeminiLiveServer) -> str:
    told: list[str] = []
    for connection in server.connections:
        responses = [response for response in connection.tool_responses if tells(response)]
        ways = Counter(f"tool_response ({response.verdict})" for response in responses)
        said = connection.context[connection.restored :]
        ways["in words"] = sum(e.kind == "user" and WEATHER in e.text for e in said)
        shown = [way if n == 1 else f"{way} x{n}" for way, n in ways.items() if n]
        if shown:
            told.append(f"{' and '.join(shown)} on connection {connection.number}")
    return "; ".join(told) or "never"
