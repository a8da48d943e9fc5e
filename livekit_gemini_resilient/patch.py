"""The ``patch`` command: put the patches for upstream into a checkout of livekit/agents."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from dataclasses import dataclass
from email import policy
from email.parser import BytesParser
from pathlib import Path

BASE_VERSION = "1.8.9"
"""Release of livekit-plugins-google that the patches are made against."""

PATCHED_FILE = (
    "livekit-plugins/livekit-plugins-google/livekit/plugins/google/realtime/realtime_api.py"
)
"""The one file that they change, in upstream's repository."""

BASE_DIGEST = "0a4eb5632f0435d70334a7add8d0fba51af84b463ef299189f263fc1ba0d78da"
"""sha256 of that file in the release."""

_SUBJECT_PREFIX = "[PATCH] "


class PatchError(Exception):
    """A checkout cannot take the patches; it is left as it was. The text says what to do."""


class NoRepositoryError(PatchError):
    """There is no checkout at the path."""


@dataclass(frozen=True, slots=True)
class Mail:
    """One patch, and the text of a pull request for it."""

    path: Path
    """The file, as ``git format-patch`` wrote it."""
    title: str
    """The subject, without ``[PATCH]``."""
    body: str
    """The paragraphs of the message, each in one line: a pull request keeps line breaks."""

    @property
    def pull_request(self) -> str:
        """Title and body under the name of the patch."""
        return f"=== {self.path.name}\n{self.title}\n\n{self.body}\n"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser's subcommands."""
    parser = commands.add_parser(
        "patch",
        help="apply the patches for upstream to a checkout of livekit/agents",
        description="Applies the patches for livekit-plugins-google to a checkout of "
        f"livekit/agents at release {BASE_VERSION}, with git am, and prints the texts of their "
        "pull requests. Exits with 0 on success, with 1 if the checkout cannot take them (it is "
        "left as it was), with 2 on bad usage.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--into", type=Path, metavar="CHECKOUT", help="where to apply them")
    what.add_argument("--list", action="store_true", help="only print the texts")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    series = mails()
    if not chosen.list:
        try:
            apply(series, chosen.into)
        except PatchError as error:
            print(error, file=sys.stderr)
            return 2 if isinstance(error, NoRepositoryError) else 1
        print(f"applied {len(series)} patches to {chosen.into}\n")
    print("\n".join(mail.pull_request for mail in series), end="")
    return 0


def mails() -> list[Mail]:
    """The patches in the order in which they apply."""
    here = Path(__file__).parent
    # a wheel has them in the package, a clone beside it
    folder = next(f for f in (here / "patches", here.parent / "patches") if f.is_dir())
    return [_read(path) for path in sorted(folder.glob("*.patch"))]


def _read(path: Path) -> Mail:
    message = BytesParser(policy=policy.default).parsebytes(path.read_bytes())
    text, _, _ = message.get_content().partition("\n---\n")
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    title = " ".join(message["subject"].split()).removeprefix(_SUBJECT_PREFIX)
    return Mail(path, title, "\n\n".join(paragraphs))


def apply(series: list[Mail], checkout: Path) -> None:
    """Commit the patches to the branch that is checked out, all of them or none.

    Raises:
        NoRepositoryError: It is not a git repository.
        PatchError: It has changes, another version of the file, or git did not apply a patch.
    """
    if not checkout.is_dir() or _git(checkout, "rev-parse", "--is-inside-work-tree").returncode:
        raise NoRepositoryError(
            f"{checkout} is not a git repository: give the path of a checkout of livekit/agents"
        )
    root = Path(_git(checkout, "rev-parse", "--show-toplevel").stdout.strip())
    _check(root)
    applied = _git(root, "am", *(str(mail.path) for mail in series))
    if applied.returncode:
        _git(root, "am", "--abort")
        raise PatchError(f"git did not apply the patches, nothing was changed:\n{applied.stderr}")


def _check(root: Path) -> None:
    if _git(root, "status", "--porcelain", "--untracked-files=no").stdout:
        raise PatchError(f"{root} has changes that are not committed: commit or stash them first")
    unfinished = root / _git(root, "rev-parse", "--git-path", "rebase-apply").stdout.strip()
    if unfinished.exists():
        raise PatchError(f"a git am or rebase is under way in {root}: finish or abort it first")
    file = root / PATCHED_FILE
    if not file.is_file():
        raise PatchError(f"{root} has no {PATCHED_FILE}: is it a checkout of livekit/agents?")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != BASE_DIGEST:
        raise PatchError(
            f"the patches are made for release {BASE_VERSION}, check that out first.\n"
            f"{PATCHED_FILE}\n  expected sha256 {BASE_DIGEST}\n  found    sha256 {found}"
        )


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise PatchError("git is not installed") from None
