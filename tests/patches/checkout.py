"""A repository laid out like upstream's, made from the installed google plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from livekit.plugins import google

PLUGIN_ROOT = Path("livekit-plugins/livekit-plugins-google")
"""What has to stand on the path for the copy to be imported: ``livekit`` and ``livekit.plugins``
are namespaces, to which the first folder on the path contributes first."""

GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@example.invalid",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@example.invalid",
}
"""No setting of the machine changes what plain ``git am`` does."""


def git(folder: Path, *arguments: str | Path) -> str:
    """What a git command prints.

    Raises:
        AssertionError: It failed.
    """
    ran = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **GIT_ENVIRONMENT},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def lay_out(folder: Path) -> Path:
    """Commit a copy of the installed plugin to a new repository in the folder."""
    plugin = Path(google.__file__).parent
    shutil.copytree(
        plugin,
        folder / PLUGIN_ROOT / "livekit/plugins/google",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "the release")
    return folder
