"""The ``patch`` command: all patches or none, and it says why."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from livekit.plugins.google import __version__ as plugin

from livekit_gemini_resilient.__main__ import main
from livekit_gemini_resilient.patch import BASE_VERSION, PATCHED_FILE, mails

from .patches.checkout import GIT_ENVIRONMENT, git, lay_out

needs_base = pytest.mark.skipif(
    plugin != BASE_VERSION,
    reason=f"a checkout is made from the installed plugin, which is {plugin}, not {BASE_VERSION}",
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean checkout, and no settings of the machine."""
    for name, value in GIT_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return lay_out(tmp_path)


def test_list_prints_title_and_body_of_every_pull_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A body keeps no line breaks within a paragraph, and nothing of the mail or the diff."""
    assert main(["patch", "--list"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\nfix(google): ") == len(mails())
    assert "fix(google): deliver a tool result exactly once across a restart\n\n" in printed
    assert "put into the queue of the next one, and the replay" in printed
    assert "[PATCH]" not in printed
    assert "diff --git" not in printed


@needs_base
def test_patches_are_committed_and_their_texts_printed(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One commit each, in order, also when the path leads into the checkout."""
    assert main(["patch", "--into", str(checkout / "livekit-plugins")]) == 0
    titles = [mail.title for mail in mails()]
    assert git(checkout, "log", "--reverse", "--format=%s").splitlines()[1:] == titles
    printed = capsys.readouterr().out
    assert f"applied {len(titles)} patches" in printed
    assert all(title in printed for title in titles)


def not_a_repository(checkout: Path) -> None:
    """A folder that git knows nothing of."""
    (checkout / ".git").rename(checkout / "git")


def dirty(checkout: Path) -> None:
    """A change that is not committed."""
    (checkout / PATCHED_FILE).write_text("changed")


def another_release(checkout: Path) -> None:
    """The file differs, and the tree is clean."""
    (checkout / PATCHED_FILE).write_text("another release")
    git(checkout, "commit", "--quiet", "--all", "--message", "another release")


def another_project(checkout: Path) -> None:
    """The file is not there."""
    git(checkout, "rm", "--quiet", PATCHED_FILE)
    git(checkout, "commit", "--quiet", "--message", "another project")


def in_the_way(checkout: Path) -> None:
    """A test module that the last patch adds is there already."""
    (checkout / "tests").mkdir()
    (checkout / "tests/test_google_realtime_restart_after_turn.py").write_text("")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "in the way")


def unfinished(checkout: Path) -> None:
    """Somebody's own ``git am`` has stopped."""
    (checkout / ".git/rebase-apply").mkdir()


@pytest.mark.parametrize(
    ("spoil", "status", "says"),
    [
        (not_a_repository, 2, ["is not a git repository", "give the path of a checkout"]),
        (dirty, 1, ["has changes that are not committed", "commit or stash"]),
        (
            another_release,
            1,
            [
                f"made for release {BASE_VERSION}",
                "expected sha256 0a4eb5632f",
                f"found    sha256 {hashlib.sha256(b'another release').hexdigest()}",
            ],
        ),
        (another_project, 1, ["is it a checkout of livekit/agents?"]),
        (unfinished, 1, ["a git am or rebase is under way", "finish or abort it"]),
        pytest.param(
            in_the_way,
            1,
            ["nothing was changed", "already exists in"],
            marks=needs_base,
        ),
    ],
)
def test_checkout_that_cannot_take_the_patches_is_left_as_it_was(
    checkout: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], None],
    status: int,
    says: list[str],
) -> None:
    """The error says what is wrong and what to do."""
    spoil(checkout)
    before = {path: path.read_bytes() for path in checkout.glob("*/**/*.py")}
    heads = sorted((checkout / ".git/refs/heads").glob("*"))
    commits = [head.read_text() for head in heads]
    assert main(["patch", "--into", str(checkout)]) == status
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert [part for part in says if part not in complaint] == []
    assert {path: path.read_bytes() for path in checkout.glob("*/**/*.py")} == before
    assert [head.read_text() for head in heads] == commits


def test_path_that_does_not_exist_is_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And so is a command that says neither where to apply nor to list."""
    assert main(["patch", "--into", str(tmp_path / "nowhere")]) == 2
    assert "nowhere is not a git repository" in capsys.readouterr().err
    with pytest.raises(SystemExit) as usage:
        main(["patch"])
    assert usage.value.code == 2


def test_missing_git_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not a traceback."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["patch", "--into", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "git is not installed\n"
