"""The README is true: its options, its links, its files and its example."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from livekit_gemini_resilient import Behaviour, ResilienceOptions
from livekit_gemini_resilient.core import link, turn_state

from . import diagrams

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def option_rows() -> Iterator[tuple[str, object]]:
    """Name and default of every option in the table; a row may hold several."""
    _, _, section = README.partition("\n## Options\n")
    section, _, _ = section.partition("\n## ")
    for row in re.findall(r"^\| (`.*?) \| (.*?) \| .* \|$", section, re.MULTILINE):
        names, defaults = (cell.split(", ") for cell in row)
        for name, default in zip(names, defaults, strict=True):
            code = default.strip("`")
            yield name.strip("`"), eval(code, {"Behaviour": Behaviour})


def test_the_table_of_options_lists_every_field_with_its_default() -> None:
    """None is missing, none is made up, and they stand in the order of the class."""
    declared = [(f.name, getattr(ResilienceOptions(), f.name)) for f in fields(ResilienceOptions)]
    plain = [(name, v.value if isinstance(v, Enum) else v) for name, v in declared]
    assert list(option_rows()) == plain


def test_the_diagrams_are_those_of_the_tables() -> None:
    """``python -m tests.diagrams --into README.md`` makes them so."""
    assert diagrams.put_into(README) == README


@pytest.mark.parametrize("table", [link.TABLE, turn_state.TABLE], ids=["link", "turn"])
def test_every_state_and_every_arrow_of_a_table_is_drawn(table: dict[Any, Any]) -> None:
    """None is left out, and none is drawn twice."""
    drawn = diagrams.section().splitlines()
    for (state, sign), following in table.items():
        start = f"    {state.name} --> {following.name}: "
        (line,) = [line for line in drawn if line.startswith(start)]
        assert sign.value in line.removeprefix(start).split(", ")


def test_the_table_of_versions_is_what_the_checks_install() -> None:
    """Oldest first; every constraint file of ``.ci`` is a row, and the other way round."""
    _, _, section = README.partition("\n## Supported versions\n")
    section, _, _ = section.partition("\n## ")
    told = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \|$", section, re.MULTILINE)
    pinned = set()
    for path in (ROOT / ".ci").glob("*.txt"):
        pins = dict(re.findall(r"^([a-z-]+)==(\S+)$", path.read_text(), re.MULTILINE))
        assert pins["livekit-agents"] == pins["livekit-plugins-google"]
        pinned.add((pins["livekit-plugins-google"], pins["google-genai"]))
    assert told == sorted(pinned, key=lambda pins: [int(part) for part in pins[0].split(".")])


def test_every_relative_link_leads_to_a_file() -> None:
    """Links to other hosts are left alone, and so is code that looks like one."""
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", prose) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_file_named_in_a_command_is_there() -> None:
    """Commands are pasted as they stand."""
    commands = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    paths = re.findall(r"\S+/\S+\.yaml", "\n".join(commands))
    assert paths
    assert [path for path in paths if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.splitlines()[0])
def test_every_import_of_the_examples_works(example: str) -> None:
    """All that an example needs is public."""
    found = [n for n in ast.parse(example).body if isinstance(n, ast.Import | ast.ImportFrom)]
    for node in found:
        exec(compile(ast.Module([node], []), "README.md", "exec"), {})


def test_the_example_of_a_test_passes(tmp_path: Path) -> None:
    """As it stands, in a project that has configured nothing."""
    (example,) = [text for text in EXAMPLES if "\nasync def test_" in text]
    (tmp_path / "test_example.py").write_text(example)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ran.returncode == 0, ran.stdout
    assert "1 passed" in ran.stdout
