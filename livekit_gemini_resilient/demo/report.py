"""Two calls side by side, as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import chain, zip_longest

from .scribe import Row

_NARROWEST = 100
"""Characters; narrower columns wrap most rows."""

_WIDEST = 140
"""Characters; wider columns only drift apart."""

_BETWEEN = " | "


def columns(left: Iterable[Row], right: Iterable[Row], titles: tuple[str, str], width: int) -> str:
    """Return the timelines of two calls next to each other, aligned by the parts of the call.

    Args:
        left: The rows of one call.
        right: The rows of the other.
        titles: What stands above them.
        width: Characters in a line; brought into the range that can be read.
    """
    width = _readable(width)
    column = (width - len(_BETWEEN)) // 2
    sides = [list(left), list(right)]
    heads = [[f"{'ms':>6} {title}"] for title in titles]
    lines = [_side_by_side(heads[0], heads[1], column)]
    # a call that a fault never reached has fewer parts
    parts = sorted(([row.phase for row in rows] for rows in sides), key=lambda p: -len(set(p)))
    for phase in dict.fromkeys(chain.from_iterable(parts)):
        lines.append(f"--- {phase} ".ljust(width, "-"))
        cells = [_cell((row for row in rows if row.phase == phase), column) for rows in sides]
        lines.append(_side_by_side(cells[0], cells[1], column))
    return "\n".join(lines)


def paragraph(label: str, text: str, width: int) -> str:
    """Return a labelled statement, wrapped."""
    return textwrap.fill(
        text, _readable(width), initial_indent=f"{label:<14}", subsequent_indent=" " * 14
    )


def _readable(width: int) -> int:
    return max(_NARROWEST, min(width, _WIDEST))


def _cell(rows: Iterable[Row], width: int) -> list[str]:
    lines: list[str] = []
    for row in rows:
        head = f"{round(row.at * 1000):>6} {row.kind:<10} "
        wrapped = textwrap.wrap(row.text, width - len(head))
        lines += [head + wrapped[0], *(" " * len(head) + more for more in wrapped[1:])]
    return lines


def _side_by_side(left: list[str], right: list[str], column: int) -> str:
    pairs = zip_longest(left, right, fillvalue="")
    return "\n".join(f"{one:<{column}}{_BETWEEN}{other}".rstrip() for one, other in pairs)
