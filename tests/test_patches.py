"""The patches for upstream: each ends its fault, alone and in the series, and is fit to be mailed.

Every patch has two test modules: a scenario of ours on the simulator (``tests/patches``), and the
module that the patch itself adds to upstream's tests. Both run in subprocesses with a copy of the
installed plugin, where every test must fail without the patch and pass with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.version import Version

from livekit_gemini_resilient.patch import BASE_DIGEST, BASE_VERSION, PATCHED_FILE, mails

from .patches.checkout import git, lay_out
from .patches.runs import Outcomes, run, scenario
from .stack import PLUGIN

PATCHES = [mail.path for mail in mails()]
README = (PATCHES[0].parent / "README.md").read_text()

for_base = pytest.mark.skipif(
    Version(PLUGIN) < Version(BASE_VERSION),
    reason=f"the patches apply to livekit-plugins-google {BASE_VERSION}, {PLUGIN} is older",
)
each_patch = pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)


def added_test(patch: Path) -> str:
    """The test module that a patch adds to upstream's tests."""
    (module,) = re.findall(r"^\+\+\+ b/tests/(\w+)\.py$", patch.read_text(), re.MULTILINE)
    return module


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Everything that runs in subprocesses, at the same time."""

    without: list[Future[Outcomes]]
    """The scenarios, and upstream's modules, with the plugin as it was released."""
    alone: dict[Path, Future[Outcomes]]
    """Both modules of a patch with that patch."""
    together: Future[Outcomes]
    """All modules with the series."""


def patched(folder: Path, *patches: Path) -> Path:
    """A checkout with the patches, applied by one plain ``git am``."""
    checkout = lay_out(folder)
    git(checkout, "am", *patches)
    # git may succeed and change nothing
    assert (checkout / PATCHED_FILE).read_bytes() != released(checkout)
    assert git(checkout, "rev-list", "--count", "HEAD").strip() == str(len(patches) + 1)
    return checkout


def released(checkout: Path) -> bytes:
    """The file as it was before any patch."""
    first = git(checkout, "rev-list", "--max-parents=0", "HEAD").strip()
    return git(checkout, "show", f"{first}:{PATCHED_FILE}").encode()


def with_patches(folder: Path, *patches: Path) -> Outcomes:
    """Run the modules of patches with them applied."""
    checkout = patched(folder, *patches)
    theirs = [checkout / "tests" / f"{added_test(patch)}.py" for patch in patches]
    return run(checkout, [*map(scenario, patches), *theirs], patched=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Start the subprocesses; three at a time, since half of them wait for what never happens."""

    def folder(name: str) -> Path:
        return tmp_path_factory.mktemp(name)

    theirs = patched(folder("theirs"), *PATCHES) / "tests"
    with ThreadPoolExecutor(3) as pool:
        yield Runs(
            without=[
                pool.submit(run, lay_out(folder("without")), tests, patched=False)
                for tests in ([scenario(p) for p in PATCHES], sorted(theirs.glob("*.py")))
            ],
            together=pool.submit(with_patches, folder("together"), *PATCHES),
            alone={p: pool.submit(with_patches, folder(p.stem), p) for p in PATCHES},
        )
        pool.shutdown(cancel_futures=True)


@for_base
@each_patch
def test_every_test_of_a_patch_fails_without_it(patch: Path, runs: Runs) -> None:
    """The fault is in the released plugin, and the tests see it."""
    scenarios, theirs = (future.result() for future in runs.without)
    for outcomes in (scenarios[scenario(patch).stem], theirs[added_test(patch)]):
        assert set(outcomes.values()) == {"failed"}, outcomes


@for_base
@each_patch
def test_every_test_of_a_patch_passes_with_it_alone(patch: Path, runs: Runs) -> None:
    """No patch needs another one."""
    outcomes = runs.alone[patch].result()
    assert outcomes.keys() == {scenario(patch).stem, added_test(patch)}
    assert {o for module in outcomes.values() for o in module.values()} == {"passed"}


@for_base
def test_every_test_passes_with_the_whole_series(runs: Runs) -> None:
    """One ``git am`` takes all of them, and none undoes another."""
    outcomes = runs.together.result()
    assert outcomes.keys() == {n for p in PATCHES for n in (scenario(p).stem, added_test(p))}
    assert {o for module in outcomes.values() for o in module.values()} == {"passed"}


def test_installed_plugin_is_not_newer_than_what_the_patches_are_made_for() -> None:
    """A new release has to be looked at."""
    assert Version(PLUGIN) <= Version(BASE_VERSION), (
        f"livekit-plugins-google {PLUGIN} is newer than {BASE_VERSION}: for each patch run its "
        "scenario (patches/README.md) to see whether the fault is still there, delete the patch "
        "if it is not, make it anew against the release if it is, and refresh BASE_VERSION and "
        "BASE_DIGEST in livekit_gemini_resilient/patch.py and patches/README.md"
    )


@pytest.mark.skipif(PLUGIN != BASE_VERSION, reason=f"{PLUGIN} is installed, not {BASE_VERSION}")
def test_digest_is_that_of_the_release(tmp_path: Path) -> None:
    """It is what the command compares a checkout with."""
    file = lay_out(tmp_path) / PATCHED_FILE
    assert hashlib.sha256(file.read_bytes()).hexdigest() == BASE_DIGEST


@each_patch
def test_a_patch_is_fit_to_be_mailed(patch: Path) -> None:
    """One fault, one file and its test; no person's name; a subject in upstream's manner."""
    text = patch.read_bytes().decode("ascii")
    assert "\nFrom: livekit-gemini-resilient <noreply@example.invalid>\n" in text
    assert "\nSubject: [PATCH] fix(google): " in text
    touched = re.findall(r"^\+\+\+ b/(.*)$", text, re.MULTILINE)
    assert touched == [PATCHED_FILE, f"tests/{added_test(patch)}.py"]
    assert "livekit_gemini_resilient" not in text


@each_patch
def test_the_readme_lists_a_patch_with_its_command(patch: Path) -> None:
    """And the command names the file that is there."""
    assert f"[`{patch.name}`]({patch.name})" in README
    assert f"tests/patches/{scenario(patch).name}" in README
    assert scenario(patch).is_file()


def test_the_readme_names_the_base() -> None:
    """Version and digest are those that the command checks."""
    assert BASE_VERSION in README
    assert BASE_DIGEST in README
