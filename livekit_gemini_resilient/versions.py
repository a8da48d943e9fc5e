"""Which versions of LiveKit's packages and of the SDK this package works with.

Importing this module checks them, and the package imports it before anything else: its classes
are built on members that upstream does not promise to keep, so that with another version the
import might fail where nobody could tell why, or a call might in production.
"""

from __future__ import annotations

import os
import re
import warnings
from importlib import metadata

OVERRIDE = "LIVEKIT_GEMINI_RESILIENT_UNSUPPORTED"
"""Environment variable; ``1`` makes a warning of the error."""

SUPPORTED = {
    "livekit-agents": ((1, 6, 5), (1, 9)),
    "livekit-plugins-google": ((1, 6, 5), (1, 9)),
    "google-genai": ((1, 75), (4,)),
}
"""The first version that is supported, and the first that no longer is; as ``pyproject.toml``
has them."""


def check() -> None:
    """Compare what is installed with what is supported.

    Raises:
        ImportError: A version is not supported, and ``OVERRIDE`` is not set.
    """
    wrong = [line for package in SUPPORTED if (line := _complaint(package)) is not None]
    if not wrong:
        return
    text = f"livekit-gemini-resilient does not support {'; '.join(wrong)}"
    if os.environ.get(OVERRIDE) == "1":
        warnings.warn(f"{text}. Tried anyway, as {OVERRIDE}=1 asks", RuntimeWarning, stacklevel=2)
        return
    raise ImportError(
        f"{text}. Install versions that it supports, or another version of this package; "
        f"{OVERRIDE}=1 tries anyway, at your own risk"
    )


def _complaint(package: str) -> str | None:
    first, end = SUPPORTED[package]
    supported = f"supported: {_text(first)} up to, not including, {_text(end)}"
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        return f"{package} of an unknown version (it has no metadata; {supported})"
    release = re.match(r"\d+(\.\d+)*", found)
    if release and first <= tuple(map(int, release[0].split("."))) < end:
        return None
    return f"{package} {found} ({supported})"


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


check()
