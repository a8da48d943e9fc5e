"""Digests of upstream's members: of what their source says, not of its layout or comments."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..stack import PLUGIN
from .members import ABSENT, Member
from .table import MEMBERS


@functools.cache
def _module(name: str) -> ast.Module:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text())


def find(member: Member) -> list[ast.AST]:
    """Whatever defines a member, several for a property with a setter; empty if nothing does."""
    found: list[ast.AST] = [_module(member.module)]
    for part in member.name.split("."):
        found = [node for parent in found for node in _children(parent) if node.name == part]
    return found


def _children(parent: ast.AST) -> Iterator[Any]:
    for node in getattr(parent, "body", ()):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _shape(node: Any) -> Any:
    """What a tree says, the same on every version of Python: ``ast.dump`` is not."""
    if isinstance(node, list):
        return [_shape(one) for one in node if not _is_docstring(one)]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return type(node).__name__, [(name, _shape(value)) for name, value in fields]


def _is_docstring(node: Any) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def digest(member: Member) -> str:
    """Twelve digits, or ``ABSENT``."""
    shapes = [_shape(node) for node in find(member)]
    return hashlib.sha256(repr(shapes).encode()).hexdigest()[:12] if shapes else ABSENT


if __name__ == "__main__":
    for row in MEMBERS:
        if digest(row) not in row.digests.values():
            print(f'{row.module}.{row.name}: "{PLUGIN}": "{digest(row)}"')
