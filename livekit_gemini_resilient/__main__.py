"""``python -m livekit_gemini_resilient``: the commands of the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .demo.command import add_to as add_demo
from .patch import add_to as add_patch


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0 for success, 1 for failure, 2 for bad usage."""
    parser = argparse.ArgumentParser(
        prog="python -m livekit_gemini_resilient",
        description="A LiveKit realtime model for Gemini Live that survives reconnects.",
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    add_demo(commands)
    add_patch(commands)
    chosen = parser.parse_args(arguments)
    status: int = chosen.run(chosen)
    return status


if __name__ == "__main__":
    sys.exit(main())
