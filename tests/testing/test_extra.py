"""Without the extra the simulator says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from livekit_gemini_resilient.testing.extra import advice, raising

INSTALL = 'pip install -e ".[testing]" in a clone, "/path/to/clone[testing]" elsewhere'


def run_without(module: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program for which a module is not installed."""
    return subprocess.run(
        # google.api_core announces the end of life of the Python it runs on
        [
            *(sys.executable, "-W", "ignore::FutureWarning"),
            *("-c", f"import runpy, sys; sys.modules[{module!r}] = None\n{program}"),
        ],
        capture_output=True,
        text=True,
        timeout=180,
    )


@pytest.mark.parametrize(("module", "argument"), [("trustme", "--help"), ("yaml", "serve")])
def test_the_command_says_in_one_line_what_to_install(module: str, argument: str) -> None:
    """It exits with 2, as for any other bad usage."""
    ran = run_without(
        module,
        f"sys.argv = ['testing', {argument!r}]\n"
        "runpy.run_module('livekit_gemini_resilient.testing', run_name='__main__')",
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"the simulator needs its extra ({module} is missing): {INSTALL}\n"


def test_an_import_says_what_to_install() -> None:
    """Whatever the name, also one that would do without the extra."""
    ran = run_without("trustme", "from livekit_gemini_resilient.testing import PROFILES")
    *_, line = ran.stderr.splitlines()
    expected = f"the simulator needs its extra (trustme is missing): {INSTALL}"
    assert line == f"ModuleNotFoundError: {expected}"


def test_a_module_that_is_missing_for_another_reason_is_not_blamed_on_the_extra() -> None:
    """The error is left as it is."""
    other = ModuleNotFoundError("No module named 'sheep'", name="sheep")
    assert advice(other) is None
    with pytest.raises(ModuleNotFoundError) as raised:
        raising(other)
    assert raised.value is other


def test_private_names_are_looked_up_as_ever() -> None:
    """Tools that probe a module for what it may have are not in want of the extra."""
    look_up = raising(ModuleNotFoundError("No module named 'yaml'", name="yaml"))
    with pytest.raises(AttributeError):
        look_up("__wrapped__")
    with pytest.raises(ModuleNotFoundError, match="yaml is missing"):
        look_up("Say")
