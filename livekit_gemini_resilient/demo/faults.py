"""The faults that a call can meet in the demo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .line import Line

_NOTICE = 30.0
"""Seconds of notice in ``goAway``; 30 to 300 were observed."""


class Moment(Enum):
    """When a fault strikes."""

    BY_TOOL = "by the tool"
    """The tool itself brings it about."""
    DURING_TOOL = "while the tool runs"
    """From outside."""
    DURING_ANSWER = "in mid-sentence"
    """While the model tells the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that makes a connection end in mid-turn."""

    summary: str
    """One line, as the title of what happens."""
    label: str
    """The same in a few words, for a row of the timeline."""
    moment: Moment
    """When it strikes."""
    strike: Callable[[Line], Awaitable[None]]
    """Makes it happen."""
    adds_tool: bool = False
    """Whether the model must have been told of ``book_table`` afterwards."""


async def _update_tools(line: Line) -> None:
    await line.add_tool()


async def _go_away(line: Line) -> None:
    await line.server.go_away(_NOTICE)


async def _drop(line: Line) -> None:
    await line.server.drop(1011, "Internal error encountered.")


async def _abort(line: Line) -> None:
    await line.server.abort()


async def _change_voice(line: Line) -> None:
    line.change_voice("Kore")


FAULTS = {
    "update-tools": Fault(
        summary="the tool itself calls update_tools()",
        label="update_tools()",
        moment=Moment.BY_TOOL,
        strike=_update_tools,
        adds_tool=True,
    ),
    "update-tools-outside": Fault(
        summary="update_tools() is called from outside while the tool runs",
        label="update_tools()",
        moment=Moment.DURING_TOOL,
        strike=_update_tools,
        adds_tool=True,
    ),
    "go-away": Fault(
        summary=f"goAway, with {_NOTICE:g} s left, arrives while the tool runs",
        label=f"goAway, {_NOTICE:g} s left",
        moment=Moment.DURING_TOOL,
        strike=_go_away,
    ),
    "drop": Fault(
        summary="the server closes the socket with 1011 while the tool runs",
        label="close frame, 1011",
        moment=Moment.DURING_TOOL,
        strike=_drop,
    ),
    "abort": Fault(
        summary="the network cuts the socket, without a close frame, while the tool runs",
        label="TCP reset",
        moment=Moment.DURING_TOOL,
        strike=_abort,
    ),
    "voice": Fault(
        summary="the voice is changed while the model tells the result",
        label="update_options(voice=...)",
        moment=Moment.DURING_ANSWER,
        strike=_change_voice,
    ),
}
"""By the name under which the command knows them."""
