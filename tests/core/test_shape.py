"""What the package may import, say and leave unsaid."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "livekit_gemini_resilient"
MODULES = [
    p for p in sorted(PACKAGE.rglob("*.py")) if "testing" not in p.relative_to(PACKAGE).parts
]
CORE = [p for p in MODULES if p.parent.name == "core"]
PURE = [*CORE, PACKAGE / "options.py"]
IMPURE = {"asyncio", "logging", "random", "socket", "threading", "time"}
DECLARATIONS = [PACKAGE / "core" / "events.py", PACKAGE / "core" / "effects.py"]
DECLARATIONS += [PACKAGE / "core" / "reports.py", PACKAGE / "options.py"]
DECIDING = [p for p in MODULES if "demo" not in p.relative_to(PACKAGE).parts]
MODEL_NAME = re.compile(r"\b[23]\.\d\b|gemini-\d|gemini-live|native-audio|flash", re.IGNORECASE)


def name(path: Path) -> str:
    """A path as a test id."""
    return str(path.relative_to(PACKAGE))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Level and module of every import, wherever it stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


@pytest.mark.parametrize("path", PURE, ids=name)
def test_the_core_imports_the_standard_library_and_itself(path: Path) -> None:
    """No loop, no clock, no chance, no log, no livekit, no google."""
    for level, module in imports(path):
        if level == 0:
            top = module.partition(".")[0]
            assert top in sys.stdlib_module_names, f"{module} is not in the standard library"
            assert top not in IMPURE, f"{module} is not pure"
        elif path.parent.name == "core":
            assert level == 1 or (level, module) == (2, "options"), f"{module} is not in the core"
        else:
            assert (level, module.partition(".")[0]) == (1, "core"), f"{module} is not in the core"


@pytest.mark.parametrize("path", DECIDING, ids=name)
def test_no_module_knows_the_name_of_a_model(path: Path) -> None:
    """Behaviour is declared or observed; docstrings and comments may name where. The demo plays
    profiles of the simulator, which are named after what was recorded."""
    source = path.read_text()
    docstrings = {
        node.value.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING and token.start[0] not in docstrings:
            found = MODEL_NAME.search(token.string)
            assert found is None, f"line {token.start[0]} names a model: {token.string}"


def documented(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Public classes, functions and methods."""
    todo: list[tuple[str, ast.AST]] = [("", ast.parse(path.read_text()))]
    while todo:
        prefix, parent = todo.pop()
        for node in ast.iter_child_nodes(parent):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("_"):
                yield prefix + node.name, node
                if isinstance(node, ast.ClassDef):
                    todo.append((f"{prefix}{node.name}.", node))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_everything_public_has_a_docstring(path: Path) -> None:
    """Modules, classes, functions and methods."""
    assert ast.get_docstring(ast.parse(path.read_text())) or path.stat().st_size == 0
    for called, node in documented(path):
        assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        setter = any(isinstance(d, ast.Attribute) for d in node.decorator_list)
        assert setter or ast.get_docstring(node), f"{called} has no docstring"


@pytest.mark.parametrize("path", DECLARATIONS, ids=name)
def test_every_field_and_member_has_a_docstring_under_it(path: Path) -> None:
    """Meaning, unit, and what ``None`` stands for."""
    for klass in ast.walk(ast.parse(path.read_text())):
        if not isinstance(klass, ast.ClassDef):
            continue
        for node, after in zip(klass.body, [*klass.body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign | ast.Assign):
                text = after.value if isinstance(after, ast.Expr) else None
                told = isinstance(text, ast.Constant) and isinstance(text.value, str)
                assert told, f"{klass.name}, line {node.lineno}: no docstring"


@pytest.mark.parametrize("path", DECLARATIONS[:3], ids=name)
def test_events_effects_and_reports_are_values(path: Path) -> None:
    """Frozen, with slots, given by keyword."""
    for klass in ast.walk(ast.parse(path.read_text())):
        if isinstance(klass, ast.ClassDef) and not klass.bases:
            options = ast.unparse(klass.decorator_list[0])
            assert options == "dataclass(frozen=True, slots=True, kw_only=True)", klass.name


def test_the_table_of_the_core_has_a_question_for_every_module() -> None:
    """None is missing, none is named twice, and none is there that is gone."""
    rows = re.findall(r"^``(\w+)`` ", (PACKAGE / "core" / "__init__.py").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(p.stem for p in CORE if p.stem != "__init__")
