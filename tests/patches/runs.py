"""Run the tests of patches in subprocesses, with a copy of the google plugin."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

import trustme

from .checkout import PLUGIN_ROOT

ROOT = Path(__file__).parents[2]

_PATIENCE = {"without": "0.7", "with": "15"}
"""Seconds to wait for what must happen; see ``line``."""

Outcomes = dict[str, dict[str, str]]
"""Per test module its tests, each with ``passed``, ``failed`` or ``error``."""


def scenario(patch: Path) -> Path:
    """The scenario of a patch, on the simulator: ``0001-tool-result`` has ``tool_result``."""
    name = patch.stem.partition("-")[2].replace("-", "_")
    return ROOT / "tests/patches" / f"scenario_{name}.py"


def run(checkout: Path, tests: Iterable[Path], *, patched: bool) -> Outcomes:
    """Run tests with the plugin of a checkout.

    Raises:
        AssertionError: pytest did not run them.
    """
    plugin = checkout / PLUGIN_ROOT
    # each session of the SDK loads all certificates of the machine three times, for 0.1 s
    certificate = checkout / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(certificate))
    report = checkout / "report.xml"
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short"),
            *("-p", "no:cacheprovider", "-p", "tests.patches.right_plugin"),
            *("-c", str(ROOT / "pyproject.toml"), f"--junitxml={report}"),
            # upstream marks its tests so, and lies outside of the root
            *("-o", "markers=unit: needs no network", "-o", "junit_family=xunit1"),
            *map(str, tests),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(plugin), str(ROOT)]),
            "SSL_CERT_FILE": str(certificate),
            "PLUGIN_UNDER_TEST": str(plugin),
            "PATIENCE": _PATIENCE["with" if patched else "without"],
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert report.exists(), ran.stdout + ran.stderr
    if patched:
        assert ran.returncode == 0, ran.stdout
    outcomes: Outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        module = Path(case.attrib["file"]).stem
        bad = {"failure": "failed", "error": "error", "skipped": "skipped"}
        outcome = next((bad[child.tag] for child in case if child.tag in bad), "passed")
        outcomes.setdefault(module, {})[case.attrib["name"]] = outcome
    return outcomes
