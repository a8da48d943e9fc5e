"""The demo: what it prints, what it exits with, and that it judges by the model's memory."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import subprocess
import sys

import pytest
from livekit.plugins.google.realtime import RealtimeModel as PluginModel

from livekit_gemini_resilient import RealtimeModel, model
from livekit_gemini_resilient.__main__ import main
from livekit_gemini_resilient.demo.faults import FAULTS, Fault, Moment
from livekit_gemini_resilient.demo.line import Line
from livekit_gemini_resilient.demo.play import Played, play
from livekit_gemini_resilient.demo.report import columns
from livekit_gemini_resilient.demo.scribe import Row
from livekit_gemini_resilient.testing import PROFILES

_PATIENCE = 5.0
"""Seconds for calls that are expected to go well."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the arguments, without a terminal."""
    return subprocess.run(
        # google.api_core announces the end of life of the Python it runs on
        [sys.executable, "-W", "ignore::FutureWarning", *arguments],
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        capture_output=True,
        text=True,
        timeout=180,
    )


async def played(
    model_type: type[PluginModel],
    fault: Fault,
    profile: str = "2.5-native-audio",
    patience: float = _PATIENCE,
) -> Played:
    """A call of the demo."""
    start = asyncio.get_running_loop().time()
    return await play(model_type, fault, profile=profile, patience=patience, start=start)


async def nothing(line: Line) -> None:
    """A fault that is none."""


HARMLESS = Fault(summary="nothing", label="nothing", moment=Moment.DURING_TOOL, strike=nothing)


def test_demo_shows_both_calls_and_exits_with_zero() -> None:
    """Two columns, one verdict each, nothing on stderr, no line wider than 100 characters."""
    demo = run("-m", "livekit_gemini_resilient", "demo")
    assert (demo.returncode, demo.stderr) == (0, "")
    assert max(map(len, demo.stdout.splitlines())) <= 100
    assert demo.stdout.isascii()
    rows = [line.split(" | ") for line in demo.stdout.splitlines() if " | " in line]
    for column in zip(*rows, strict=True):
        for kind in ("connection", "call", "restart", "result", "reply", "fault"):
            assert any(cell[7:].startswith(kind) for cell in column), kind
    assert "plain plugin: fails: " in demo.stdout
    assert "resilient:    survives: answered once, knowing the result" in demo.stdout


def test_long_demo_counts_the_losses_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    """It exits with zero where this package's model lost nothing."""
    assert main(["demo", "--long", "--seed", "3"]) == 0
    printed = capsys.readouterr().out
    assert "losses\n  turn 1 " in printed
    assert printed.endswith("resilient: nothing is lost\n")


def test_demo_exits_with_one_if_ours_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report is derived: with the plugin's model in place of ours, ours fails too."""
    monkeypatch.setattr(model, "RealtimeModel", PluginModel)
    assert main(["demo", "--patience", "1"]) == 1
    assert "resilient:    fails: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["show"],
        ["demo", "--fault", "flood"],
        ["demo", "--profile", "4-live"],
        ["demo", "--patience", "0"],
        ["demo", "--patience", "long"],
        ["demo", "--long", "--fault", "drop"],
    ],
    ids=" ".join,
)
def test_bad_usage_exits_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It says what was wrong on stderr, and plays nothing."""
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error:" in printed.err


def test_list_names_every_profile_and_fault(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each."""
    assert main(["demo", "--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == ["profiles:", *PROFILES, "faults:", *FAULTS]


def test_a_missing_extra_is_named_in_one_line() -> None:
    """Without the simulator's dependencies the demo says what to install."""
    demo = run(
        "-c",
        "import sys; sys.modules['trustme'] = None\n"
        "from livekit_gemini_resilient.__main__ import main\n"
        "sys.exit(main(['demo']))",
    )
    assert (demo.returncode, demo.stdout) == (2, "")
    [line] = demo.stderr.splitlines()
    assert line.endswith(
        'pip install -e ".[testing]" in a clone, "/path/to/clone[testing]" elsewhere'
    )


async def test_ours_survives_every_fault() -> None:
    """On one profile each; the first fault is the default's."""
    profiles = [*PROFILES] * len(FAULTS)
    calls = [played(RealtimeModel, f, p) for f, p in zip(FAULTS.values(), profiles, strict=False)]
    verdicts = [call.verdict for call in await asyncio.gather(*calls)]
    assert {name: str(v) for name, v in zip(FAULTS, verdicts, strict=True) if not v.survived} == {}


async def test_the_judge_is_not_against_the_plain_plugin() -> None:
    """Where nothing happens the plain plugin survives, and the demo says so."""
    verdict = (await played(PluginModel, HARMLESS, patience=1.0)).verdict
    assert verdict.survived
    assert str(verdict).startswith("answered once, knowing the result; the later turn worked.")
    assert "tool_response (accepted) on connection 1" in verdict.told


async def test_a_doubled_answer_a_breach_and_a_missing_tool_are_no_success() -> None:
    """Exactly one answer, nothing to object to, and the model knows the new tool."""
    verdict = (await played(RealtimeModel, HARMLESS, patience=1.0)).verdict
    assert verdict.survived
    for spoilt, told in (
        (dataclasses.replace(verdict, answers=2), "answered 2 times"),
        (dataclasses.replace(verdict, blind=1), "spoke without knowing the result"),
        (dataclasses.replace(verdict, answers=0, cut=1), "cut short in mid-sentence"),
        (dataclasses.replace(verdict, answers=0), "silent for 1 s"),
        (dataclasses.replace(verdict, answers=0, later=False), "silent for good"),
        (dataclasses.replace(verdict, remembered=False), "later turn was answered without"),
        (dataclasses.replace(verdict, has_tool=False), "without the new tool"),
        (dataclasses.replace(verdict, breaches=("a duplicate",)), "a duplicate"),
    ):
        assert not spoilt.survived
        assert told in str(spoilt)


@pytest.mark.parametrize(("asked", "given"), [(40, 100), (120, 120), (400, 140)])
def test_columns_fit_the_width(asked: int, given: int) -> None:
    """Long texts wrap inside their column; the width is kept within what can be read."""
    row = Row(at=0.0125, phase="greeting", kind="reply", text="word " * 40)
    lines = columns([row], [row], ("one", "other"), asked).splitlines()
    assert given - 6 <= max(map(len, lines)) <= given
    assert lines[2].startswith("    12 reply      word word")
