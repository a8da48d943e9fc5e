"""``python -m livekit_gemini_resilient.testing``: the simulator as a command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .extra import advice


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; 2 if the extra is not installed."""
    try:
        from . import command
    except ModuleNotFoundError as missing:
        what = advice(missing)
        if what is None:
            raise
        print(what, file=sys.stderr)
        return 2
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
