"""What this package is built on is what was looked at, member by member and name by name."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from livekit_gemini_resilient import upstream

from ..stack import PLUGIN
from .digests import digest, find
from .members import ABSENT, Member
from .names import OLDER
from .table import MEMBERS

ROOT = Path(__file__).parents[2]
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
    """``upstream`` is the one module that uses any; ``session`` replaces two."""
    nodes = list(ast.walk(ast.parse(inspect.getsource(upstream))))
    own = {n.target.attr for n in nodes if isinstance(n, ast.AnnAssign) and _is_attribute(n)}
    own |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    own -= set(dir(upstream.plugin.RealtimeSession))
    used = {n.attr for n in nodes if isinstance(n, ast.Attribute) and _is_private(n.attr)} - own
    used |= {"_main_task", "_session_should_close"}
    watched = {member.name.rpartition(".")[2] for member in MEMBERS}
    for member in MEMBERS:
        for tree in find(member):
            watched |= {_name(node) for node in ast.walk(tree)}
    assert used - watched <= OLDER


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_attribute(node: ast.AnnAssign) -> bool:
    return isinstance(node.target, ast.Attribute)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
