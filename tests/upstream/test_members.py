"""What this package is built on is what was looked at, member by member and name by name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest
from livekit.plugins.google.realtime import realtime_api

from ..stack import PLUGIN
from .digests import digest, find
from .members import ABSENT, Member
from .members import PLUGIN as PLUGIN_MODULE
from .names import OLDER
from .table import MEMBERS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "livekit_gemini_resilient"
UPSTREAM = sorted((PACKAGE / "upstream").glob("*.py"))
OTHERS = sorted({*PACKAGE.rglob("*.py")} - {*UPSTREAM})
MEANT = {"_main_task", "_session_should_close"}
"""Private names of upstream that ``session`` gives to its own."""
ADVICE = """\
{member.name} of {plugin} is not what was looked at.
Why that matters: {member.why}
What to do: {member.if_it_moved}
Its test: {member.protected_by}
Then append {plugin!r}: {digest!r} to its row, to support one more version; or replace the others
by it, to raise the floor.
"""


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_member_of_upstream_says_what_it_said_when_it_was_looked_at(member: Member) -> None:
    """One that does not has to be looked at before the version is supported."""
    now = digest(member)
    assert now in member.digests.values(), ADVICE.format(member=member, plugin=PLUGIN, digest=now)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_row_names_a_test_that_is_there(member: Member) -> None:
    """The one that breaks when the member is no longer what it was taken to be."""
    path, _, name = member.protected_by.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert name in {getattr(node, "name", None) for node in tree.body}


def test_no_member_has_two_rows_and_each_is_somewhere() -> None:
    """A row with a misspelt name would be absent for ever, and pass."""
    assert len({(member.module, member.name) for member in MEMBERS}) == len(MEMBERS)
    for member in MEMBERS:
        assert set(member.digests.values()) != {ABSENT}


def test_every_private_name_that_is_used_stands_in_a_member_that_is_watched() -> None:
    """``upstream`` is the one package that uses any; ``session`` replaces two."""
    nodes = [node for path in UPSTREAM for node in ast.walk(ast.parse(path.read_text()))]
    own = {n.target.attr for n in nodes if isinstance(n, ast.AnnAssign) and _is_attribute(n)}
    own = (own | _functions(nodes)) - set(dir(realtime_api.RealtimeSession))
    used = {name for name in _attributes(nodes) if _is_private(name)} - own | MEANT
    watched = {member.name.rpartition(".")[2] for member in MEMBERS}
    for member in MEMBERS:
        for tree in find(member):
            watched |= {_name(node) for node in ast.walk(tree)}
    assert used - watched <= OLDER


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_other_module_uses_a_private_name_of_upstream(path: Path) -> None:
    """Of its model, session or generation; a module's own functions may be called likewise."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    theirs = set[str]()
    for name in ("RealtimeModel", "RealtimeSession", "_ResponseGeneration"):
        (tree,) = find(Member(PLUGIN_MODULE, name, "", "", "", {}))
        theirs |= _attributes(ast.walk(tree)) | _functions(ast.walk(tree))
    used = (_attributes(nodes) & theirs) - _functions(nodes) - MEANT
    assert {name for name in used if _is_private(name)} == set()


def _attributes(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.attr for n in nodes if isinstance(n, ast.Attribute)}


def _functions(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_attribute(node: ast.AnnAssign) -> bool:
    return isinstance(node.target, ast.Attribute)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
