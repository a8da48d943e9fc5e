"""``--fault-table FILE``: what the tests marked with a fault say of ours and the plugin, as JSON.

Per fault, ``ours`` is ``passes`` or ``fails``; ``plain``, the google plugin itself, is ``has it``
where a scenario of the fault fails as expected, ``free of it`` where every one that was run with
it passes, and missing where none was run with it. With ``--collect-only`` both are ``collected``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .faults import FAULTS
from .stack import PLUGIN


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--fault-table", metavar="FILE", help="write what is known of each fault")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run if it is to be written down."""
    path = config.getoption("--fault-table")
    # the processes of pytest-xdist report to the one that was started
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_FaultTable(Path(path)), "fault-table")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a mark that ``faults`` does not explain."""
    for item in items:
        for mark in item.iter_markers("fault"):
            if mark.args[0] not in FAULTS:
                raise pytest.UsageError(
                    f"{item.nodeid}: no fault {mark.args[0]!r} in tests/faults.py"
                )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Write on the report of a test which faults it is about, and whether with the plugin."""
    report = yield
    faults = [mark.args[0] for mark in item.iter_markers("fault")]
    report.user_properties += [("fault", (fault, _is_plain(item))) for fault in faults]
    return report


class _FaultTable:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of one test under its faults."""
        if report.when != "call" and report.outcome != "failed":
            return
        for name, value in report.user_properties:
            if name == "fault":
                fault, plain = value
                self._note(fault, report, plain)

    def _note(self, fault: str, report: pytest.TestReport, plain: bool) -> None:
        row = self._rows.setdefault(fault, {})
        if not plain:
            passed = report.outcome == "passed" and row.get("ours") != "fails"
            row["ours"] = "passes" if passed else "fails"
        elif hasattr(report, "wasxfail") and report.outcome == "skipped":
            row["plain"] = "has it"
        elif report.outcome == "passed":
            row.setdefault("plain", "free of it")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what would be run."""
        if session.config.option.collectonly:
            for item in session.items:
                for mark in item.iter_markers("fault"):
                    row = self._rows.setdefault(mark.args[0], {})
                    row["plain" if _is_plain(item) else "ours"] = "collected"

    def pytest_sessionfinish(self) -> None:
        """Write the table."""
        faults = dict(sorted(self._rows.items(), key=lambda row: (row[0][0], int(row[0][1:]))))
        table = {"plugin": PLUGIN, "faults": faults}
        self._path.write_text(json.dumps(table, indent=2) + "\n")


def _is_plain(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return bool(callspec and callspec.params.get("plain")) or "plain_plugin" in item.name
