"""The states of the core as Mermaid diagrams, generated from its tables.

``python -m tests.diagrams`` prints them, ``python -m tests.diagrams --into README.md`` puts them
between the two marks there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TypeVar

from livekit_gemini_resilient.core import link, turn_state

from .section import put

BEGIN = "<!-- diagrams: made by python -m tests.diagrams --into README.md -->"
END = "<!-- end of diagrams -->"

State = TypeVar("State", bound=Enum)
Sign = TypeVar("Sign", bound=Enum)


def diagram(table: Mapping[tuple[State, Sign], State], start: State) -> str:
    """A Mermaid state diagram; signs that lead the same way share an arrow."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, sign), following in table.items():
        arrows.setdefault((state, following), []).append(sign.value)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {start.name}"]
    lines += [
        f"    {state.name} --> {following.name}: {', '.join(signs)}"
        for (state, following), signs in arrows.items()
    ]
    return "\n".join([*lines, "```"])


def section() -> str:
    """Both diagrams, with what they show."""
    return "\n\n".join(
        [
            "The connection ([`core/link.py`](livekit_gemini_resilient/core/link.py)):",
            diagram(link.TABLE, link.LinkState.DOWN),
            "The turn ([`core/turn_state.py`](livekit_gemini_resilient/core/turn_state.py)):",
            diagram(turn_state.TABLE, turn_state.TurnState.IDLE),
            "A lost connection leads from every state of the turn to `IDLE`. Steps that depend on "
            "more than the state stand in [`core/turn.py`](livekit_gemini_resilient/core/turn.py).",
        ]
    )


def put_into(text: str) -> str:
    """The text, with the section between the marks.

    Raises:
        ValueError: The marks are not there, in order.
    """
    return put(text, BEGIN, END, section())


def main(arguments: list[str]) -> int:
    """Print the section, or put it into a file."""
    parser = argparse.ArgumentParser(prog="python -m tests.diagrams")
    parser.add_argument("--into", type=Path, metavar="FILE", help="the file with the marks")
    into: Path | None = parser.parse_args(arguments).into
    if into is None:
        print(section())
    else:
        into.write_text(put_into(into.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
