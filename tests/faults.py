"""The faults of the google plugin that the tests are marked with, and the table of what was seen.

``python -m tests.faults`` runs every marked test in this environment and prints, per fault, what
became of it with this package and with the plugin itself. ``python -m tests.faults A.json B.json``
prints the table of runs that were written down with ``pytest -m fault --fault-table A.json``, one
per version of the plugin.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FAULTS = {
    "A1": "a restart is requested in the tick in which a tool result is queued",
    "A2": "a tool result arrives while the socket is closing, backing off or dialing",
    "A3": "the tool itself asks for the restart and returns",
    "A4": "`goAway` while a tool runs; chat messages queued across a restart",
    "A5": "the result reaches a connection that never issued the call",
    "A6": "the socket drops while the response is written, or before any reaction",
    "A8": "an `AgentTask` is awaited inside a tool",
    "A10": "the server cancels a call whose tool returns all the same",
    "A11": "a call comes without an id",
    "A13": "a tool that takes too long mutes the model",
    "A14": "several calls in one turn, a restart between their results",
    "A15": "a call is issued again after a reconnect, or delivered twice",
    "A16": "a result is too large, strange, or closes the connection",
    "A19": "outputs that are history, not answers",
    "B1": "speech trails a tool call",
    "B2": "speech trails a tool call in the same tick",
    "B3": "a second tool call message in one turn",
    "B5": "a message lasts until the server thinks that it was heard",
    "B11": '`tool_choice="none"` drops the rest of the message',
    "B14": "the same call is delivered twice",
    "C1": "`generate_reply` is refused by the model's name",
    "C2": "`generate_reply` waits, then a restart",
    "C3": "`generate_reply` was written, then a drop",
    "C6": "`generate_reply` inside a tool that the model waits for",
    "C7": "`generate_reply` is pending when the session closes",
    "D2": "voice, temperature or tools change in mid-sentence",
    "D5": "several changes in a row",
    "D6": "the old socket is still open at the resume",
    "E10": "closing leaves tasks or sockets, or hangs",
    "F1": "the whole history is told to a resumed session",
    "F3": "tool exchanges are missing from a fresh session",
    "F7": "system messages, empty messages, images and hand-offs in the context",
}
"""Id and situation. A mark with another id is an error."""


def table(runs: list[dict[str, Any]]) -> str:
    """A Markdown table of runs, one column for ours and one per version of the plugin."""
    plugins = [run["plugin"] for run in runs]
    head = ["Fault", "Situation", "This package", *(f"Plugin {version}" for version in plugins)]
    lines = [_row(head), _row(["---"] * len(head))]
    for fault, situation in FAULTS.items():
        rows = [run["faults"].get(fault) for run in runs]
        seen = [row for row in rows if row is not None]
        if not seen:
            continue
        ours = "passes" if all(row.get("ours") == "passes" for row in seen) else "FAILS"
        plain = [row.get("plain", "not run") if row else "not run" for row in rows]
        lines.append(_row([fault, situation, ours, *plain]))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main(arguments: list[str]) -> int:
    """Print the table of the runs in files, or of a run made now."""
    if arguments:
        print(table([json.loads(Path(name).read_text()) for name in arguments]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "faults.json"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "fault", f"--fault-table={path}"]
        status = subprocess.run(command, check=False).returncode
        print(table([json.loads(path.read_text())]))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
