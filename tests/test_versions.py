"""What the package says when it is imported with versions of upstream that it does not support."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from livekit_gemini_resilient.versions import OVERRIDE, SUPPORTED, check

ROOT = Path(__file__).parents[1]


def pretend(monkeypatch: pytest.MonkeyPatch, **found: str | None) -> None:
    """Let packages have other versions; ``None`` takes the metadata away."""
    versions = {name.replace("_", "-"): version for name, version in found.items()}
    installed = metadata.version

    def version(package: str) -> str:
        if package not in versions:
            return installed(package)
        answer = versions[package]
        if answer is None:
            raise metadata.PackageNotFoundError(package)
        return answer

    monkeypatch.setattr(metadata, "version", version)


@pytest.mark.parametrize("plugin", ["1.6.5", "1.6.10", "1.7.1", "1.8", "1.8.9", "1.8.10.post1"])
def test_supported_versions_are_accepted(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the oldest that was run to the end of the series of the newest."""
    monkeypatch.delenv(OVERRIDE, raising=False)
    pretend(monkeypatch, livekit_plugins_google=plugin)
    check()


@pytest.mark.parametrize("plugin", ["1.6.4", "0.12", "1.9.0", "1.9.0rc1", "2.0", "unknown"])
def test_another_version_is_one_error_that_names_it_and_what_is_supported(
    plugin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides, and what can be done."""
    monkeypatch.delenv(OVERRIDE, raising=False)
    pretend(monkeypatch, livekit_plugins_google=plugin)
    with pytest.raises(ImportError) as raised:
        check()
    assert str(raised.value) == (
        f"livekit-gemini-resilient does not support livekit-plugins-google {plugin} (supported: "
        "1.6.5 up to, not including, 1.9). Install versions that it supports, or another version "
        f"of this package; {OVERRIDE}=1 tries anyway, at your own risk"
    )


def test_everything_that_is_wrong_stands_in_the_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a package whose version nobody knows, in a frozen application say."""
    monkeypatch.delenv(OVERRIDE, raising=False)
    pretend(monkeypatch, livekit_agents=None, google_genai="4.0.0")
    with pytest.raises(ImportError, match=r"livekit-agents of an unknown.*; google-genai 4\.0\.0"):
        check()


def test_the_override_makes_a_warning_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It still says what was found; any other value than 1 is no override."""
    pretend(monkeypatch, livekit_agents="1.9.0")
    monkeypatch.setenv(OVERRIDE, "1")
    with pytest.warns(RuntimeWarning, match=r"does not support livekit-agents 1\.9\.0 .*anyway"):
        check()
    monkeypatch.setenv(OVERRIDE, "0")
    with pytest.raises(ImportError):
        check()


@pytest.mark.parametrize("override", ["", "1"])
def test_importing_the_package_checks_before_anything_else(override: str, tmp_path: Path) -> None:
    """In a process of its own, where the plugin says that it is of another version."""
    found = tmp_path / "livekit_plugins_google-1.9.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Name: livekit-plugins-google\nVersion: 1.9.0\n")
    paths = [str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]
    ran = subprocess.run(
        [sys.executable, "-c", "from livekit_gemini_resilient import RealtimeModel"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), OVERRIDE: override},
        capture_output=True,
        text=True,
        timeout=180,
    )
    if override:
        assert ran.returncode == 0, ran.stderr
        assert "does not support livekit-plugins-google 1.9.0" in ran.stderr
    else:
        assert ran.returncode == 1
        last = ran.stderr.splitlines()[-1]
        assert last.startswith("ImportError: livekit-gemini-resilient does not support")


def test_what_is_checked_is_what_the_package_requires() -> None:
    """One truth in two places: ``versions.SUPPORTED`` and ``pyproject.toml``."""
    text = (ROOT / "pyproject.toml").read_text()
    required = re.findall(r'^    "([a-z-]+)>=([\d.]+),<([\d.]+)",$', text, re.MULTILINE)
    numbers = {
        package: tuple(tuple(map(int, bound.split("."))) for bound in bounds)
        for package, *bounds in required
        if package in SUPPORTED
    }
    assert numbers == SUPPORTED
