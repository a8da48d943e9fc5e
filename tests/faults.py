"""The faults of the google plugin that the tests are marked with, and the table of what was seen.

``python -m tests.faults`` runs every marked test in this environment and prints, per fault, what
became of it with this package and with the plugin itself. ``python -m tests.faults A.json B.json``
prints the table of runs that were written down with ``pytest -m fault --fault-table A.json``, one
per version of the plugin, in that order. With ``--into README.md`` the table replaces the one in
that file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from .section import put

FAULTS = {
    "A1": "a restart is requested in the tick in which a tool result is queued",
    "A2": "a tool result arrives while the socket is closing, backing off or dialing",
    "A3": "the tool itself asks for the restart and returns",
    "A4": "`goAway` while a tool runs; chat messages queued across a restart",
    "A5": "the result reaches a connection that never issued the call",
    "A6": "the socket drops while the response is written, or before any reaction",
    "A7": "the caller supplies a resumption handle and a context that has results",
    "A8": "an `AgentTask` is awaited inside a tool",
    "A9": "a tool hands over to another agent and returns a result",
    "A10": "the server cancels a call whose tool returns all the same",
    "A11": "a call comes without an id",
    "A12": "a call comes while the agent is being replaced, and nobody takes it",
    "A13": "a tool that takes too long mutes the model",
    "A14": "several calls in one turn, a restart between their results",
    "A15": "a call is issued again after a reconnect, or delivered twice",
    "A16": "a result is too large, strange, or closes the connection",
    "A17": "tools that do not block: speech goes on, scheduling survives a restart",
    "A18": "a `RealtimeModelFallbackAdapter` swaps its session with a result in flight",
    "A19": "outputs that are history, not answers",
    "B1": "speech trails a tool call",
    "B2": "speech trails a tool call in the same tick",
    "B3": "a second tool call message in one turn",
    "B4": "the caller's last words are transcribed after the tool call that they prompted",
    "B5": "a message lasts until the server thinks that it was heard",
    "B6": "speech follows `generationComplete` in the same turn",
    "B7": "an interrupted turn ends late, or without an end",
    "B8": "empty or usage-only messages before anything is said",
    "B9": "several utterances for one request",
    "B10": "stray content on a connection that was just resumed",
    "B11": '`tool_choice="none"`, and a call whose message carries more',
    "B12": "the caller's message is stamped after the reply that it prompted",
    "B13": "a second tool call during a hand-off",
    "B14": "the same call is delivered twice",
    "B15": "the link is lost between the caller's words and the answer",
    "B16": "a reply freezes in mid-sentence",
    "B17": "the transcript trails `generationComplete`",
    "C1": "`generate_reply` is refused by the model's name",
    "C2": "`generate_reply` waits, then a restart",
    "C3": "`generate_reply` was written, then a drop",
    "C4": "`generate_reply` is cancelled, or times out, before it is sent",
    "C5": "`generate_reply` is answered by an empty turn",
    "C6": "`generate_reply` inside a tool that the model waits for",
    "C7": "`generate_reply` is pending when the session closes",
    "C8": "`generate_reply` with tools of its own",
    "D1": "`goAway` in mid-sentence",
    "D2": "voice, temperature or tools change in mid-sentence",
    "D3": "a reply that was cut is stored as complete",
    "D4": "the server goes quiet after `goAway`",
    "D5": "several changes in a row",
    "D6": "the old socket is still open at the resume",
    "D7": "audio that waits when the connection is replaced is lost, or arrives as a burst",
    "D8": "the connection is replaced while the client has marked the caller's activity",
    "D9": "the caller is speaking when a restart is due",
    "D10": "options of one session reach another",
    "D11": "a tool is removed and called before the connection that declares it is replaced",
    "D12": "a connection ends at an age that nothing announced",
    "E1": "a failed dial in mid-conversation",
    "E2": "a handle is refused, has expired, or is poisoned",
    "E3": "a 1007 in mid-conversation",
    "E4": "every new connection dies after its first message",
    "E5": "the server never answers the setup",
    "E6": "a tool schema cannot be built, or is refused",
    "E7": "pongs that are late end a healthy connection",
    "E8": "a 1008 while audio flows and a tool runs",
    "E9": "no event tells that the session reconnected",
    "E10": "closing leaves tasks or sockets, or hangs",
    "F1": "the whole history is told to a resumed session",
    "F2": "the last turn is told again where its handle came before its end",
    "F3": "tool exchanges are missing from a fresh session",
    "F4": "the caller supplies a resumption handle that is older than the context",
    "F5": "no newer handle: the server is not resumable for a while",
    "F6": "messages that were heard are removed or edited",
    "F7": "system messages, empty messages, images and hand-offs in the context",
}
"""Id and situation. A mark with another id is an error."""


NOT_RUN = {
    "B9": "nor with this package: google-genai 1.75.0 does not know `interactionStatus`",
    "D4": "it reconnects at once, in mid-sentence, which is D1",
    "D6": "it ends the old socket first, too, but waits 10 s for a server that does not answer",
    "E7": "its limit cannot be reached in a test",
}
"""Why no scenario of a fault is run with the plugin, or with some versions of it."""

_MARKS = (
    "<!-- faults: written by `python -m tests.faults FILE... --into README.md`, newest first -->",
    "<!-- /faults -->",
)


def table(runs: list[dict[str, Any]]) -> str:
    """A Markdown table of runs, one column for ours and one per version of the plugin."""
    plugins = [run["plugin"] for run in runs]
    head = ["Fault", "Situation", "This package", *(f"Plugin {version}" for version in plugins)]
    lines = [_row(head), _row(["---"] * len(head))]
    not_run: list[str] = []
    for fault, situation in FAULTS.items():
        rows = [run["faults"].get(fault, {}) for run in runs]
        if not any(rows):
            continue
        ours = "passes" if all(row.get("ours", "passes") == "passes" for row in rows) else "FAILS"
        plain = [row.get("plain", "not run") for row in rows]
        lines.append(_row([fault, situation, ours, *plain]))
        without = [v for v, cell in zip(plugins, plain, strict=True) if cell == "not run"]
        if without:
            where = "" if without == plugins else f" with {', '.join(without)}"
            not_run.append(f"{fault}{where} ({NOT_RUN.get(fault, 'nobody has said why')})")
    why = f"Not run with the plugin: {', '.join(not_run)}." if not_run else ""
    return "\n".join([*lines, "", *textwrap.wrap(why, 100)])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def written_into(text: str, table: str) -> str:
    """The text with this table between its marks.

    Raises:
        ValueError: It has no marks.
    """
    return put(text, *_MARKS, table)


def main(arguments: list[str]) -> int:
    """Print or write the table of the runs in files, or of a run made now."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="written by pytest --fault-table")
    parser.add_argument("--into", type=Path, help="a file whose table is replaced")
    given = parser.parse_args(arguments)
    status, runs = 0, [json.loads(path.read_text()) for path in given.runs]
    if not runs:
        status, run = _run()
        runs = [run]
    if given.into is None:
        print(table(runs))
    else:
        given.into.write_text(written_into(given.into.read_text(), table(runs)))
    return status


def _run() -> tuple[int, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "faults.json"
        pytest = [sys.executable, "-m", "pytest", "-q", "-n", "4"]
        command = [*pytest, "-m", "fault", f"--fault-table={path}"]
        status = subprocess.run(command, check=False).returncode
        run: dict[str, Any] = json.loads(path.read_text())
    return status, run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
