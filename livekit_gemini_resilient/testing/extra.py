"""What the simulator needs beyond the package's own dependencies, and what to say without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MODULES = ("trustme", "websockets", "yaml")
"""What the extra ``testing`` installs, as it is imported."""


def advice(missing: ModuleNotFoundError) -> str | None:
    """Return what to do about a module that is missing; ``None`` if the extra has none such."""
    if missing.name not in _MODULES:
        return None
    install = 'pip install -e ".[testing]" in a clone, "/path/to/clone[testing]" elsewhere'
    return f"the simulator needs its extra ({missing.name} is missing): {install}"


def raising(missing: ModuleNotFoundError) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that says, for any public name, what to install.

    Raises:
        ModuleNotFoundError: ``missing`` itself, if it is none of the extra's.
    """
    what = advice(missing)
    if what is None:
        raise missing

    def getattr_(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ModuleNotFoundError(what, name=missing.name) from missing

    return getattr_
