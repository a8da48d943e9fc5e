"""The arguments of a constructor as upstream declares them: shown, not copied, so never stale.

Python's type system cannot say "those of another function, and one more keyword"; hence two
overloads, upstream's arguments and ours, and a signature for whatever looks at runtime.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
Init = TypeVar("Init", bound=Callable[..., None])


def takes(
    upstream: Callable[Concatenate[Any, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """For type checkers: an ``__init__`` that takes the arguments of another.

    Args:
        upstream: The other.
    """
    return lambda init: init


def shows(upstream: Callable[..., None]) -> Callable[[Init], Init]:
    """For ``help`` and ``inspect``: an ``__init__`` shows the arguments of another, then its own.

    Args:
        upstream: The other.
    """

    def show(init: Init) -> Init:
        theirs = inspect.signature(upstream)
        ours = inspect.signature(init).parameters.values()
        own = [one for one in ours if one.kind is inspect.Parameter.KEYWORD_ONLY]
        signature = theirs.replace(parameters=[*theirs.parameters.values(), *own])
        vars(init)["__signature__"] = signature
        return init

    return show
