"""The table of faults in the README is that of the tests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .faults import FAULTS, NOT_RUN, table, written_into

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
_, _, SECTION = README.partition("\n## Faults\n")
ROWS = {
    fault: cells.split(" | ")
    for fault, cells in re.findall(r"^\| ([A-F]\d+) \| (.*) \|$", SECTION, re.MULTILINE)
}


def test_the_readme_has_a_row_for_every_fault_that_has_tests(tmp_path: Path) -> None:
    """By collection; "not run" stands where no test runs the plugin; and it is said why."""
    path = tmp_path / "faults.json"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "fault"]
    subprocess.run(
        [*command, f"--fault-table={path}"], cwd=ROOT, check=True, capture_output=True, timeout=120
    )
    collected = json.loads(path.read_text())["faults"]
    assert list(ROWS) == [fault for fault in FAULTS if fault in collected]
    without_plain = {fault for fault, row in collected.items() if "plain" not in row}
    assert {
        fault for fault, cells in ROWS.items() if set(cells[2:]) == {"not run"}
    } == without_plain
    assert set(NOT_RUN) == {fault for fault, cells in ROWS.items() if "not run" in cells}


def test_the_line_under_the_table_is_that_of_its_rows() -> None:
    """Also where they were written by hand."""
    plugins = re.findall(r"Plugin ([\d.]+)", SECTION.partition("\n| ---")[0])
    runs = [
        {"plugin": plugin, "faults": {fault: _seen(cells[2 + i]) for fault, cells in ROWS.items()}}
        for i, plugin in enumerate(plugins)
    ]
    assert written_into(README, table(runs)) == README


def _seen(cell: str) -> dict[str, str]:
    return {"ours": "passes"} if cell == "not run" else {"ours": "passes", "plain": cell}


def test_every_row_says_that_this_package_passes() -> None:
    """In the words of ``FAULTS``, with a column for each version of the plugin that was run."""
    assert {fault: cells[0] for fault, cells in ROWS.items()} == {f: FAULTS[f] for f in ROWS}
    assert {cells[1] for cells in ROWS.values()} == {"passes"}
    assert "| Plugin 1.8.9 | Plugin 1.8.3 | Plugin 1.7.1 | Plugin 1.6.5 |" in SECTION


def test_a_row_fails_if_it_fails_with_one_version() -> None:
    """The two runs need not have the same rows; what was not run is told with its version."""
    newest = {"plugin": "2", "faults": {"A1": {"ours": "passes", "plain": "has it"}, "C6": {}}}
    oldest = {"plugin": "1", "faults": {"A1": {"ours": "fails"}, "D6": {"ours": "passes"}}}
    rows = table([newest, oldest]).splitlines()
    assert rows[0].endswith("| This package | Plugin 2 | Plugin 1 |")
    assert rows[2].endswith("| FAILS | has it | not run |")
    assert rows[3].startswith("| D6 |")
    told = " ".join(rows)
    assert f"A1 with 1 (nobody has said why), D6 ({NOT_RUN['D6']})." in told


def test_the_table_is_written_between_its_marks() -> None:
    """What stands around it stays; without marks there is nowhere to write."""
    before, _, _ = README.partition("| Fault |")
    assert written_into(README, "a table").startswith(f"{before}a table\n")
    assert "| Fault |" not in written_into(README, "a table")
    with pytest.raises(ValueError, match="to write between"):
        written_into("nothing", "a table")
