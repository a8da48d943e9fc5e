"""The README's section on tests is true; its example is run with the other examples."""

from __future__ import annotations

import inspect
import re
import shlex
import socket
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from livekit_gemini_resilient.testing import PROFILES, GeminiLiveServer
from livekit_gemini_resilient.testing.command import main
from livekit_gemini_resilient.testing.verbs import Verbs

ROOT = Path(__file__).parents[2]
_, _, _REST = (ROOT / "README.md").read_text().partition("\n## Test your own agent\n")
SECTION, _, _ = _REST.partition("\n## ")
PROSE = " ".join(re.sub("^```.*?^```$", "", SECTION, flags=re.DOTALL | re.MULTILINE).split())
_PREFIX = re.escape(".venv/bin/python -m livekit_gemini_resilient.testing ")
COMMANDS = re.findall(f"^{_PREFIX}(.*)$", SECTION, re.MULTILINE)


def test_every_profile_is_named() -> None:
    """With the evidence for it."""
    assert [name for name in PROFILES if f"`{name}`" not in PROSE] == []


def test_every_kind_of_a_trap_is_a_kind() -> None:
    """What the section lists is what a trap may be set for; all but single fields are there."""
    [listed] = re.findall(r"frame of a kind: (.*?)\. ", PROSE)
    kinds = re.findall("`(.*?)`", listed)
    traps = [GeminiLiveServer().drop_on(kind) for kind in kinds]
    with pytest.raises(ValueError, match="there are") as error:
        GeminiLiveServer().drop_on("none")
    known = str(error.value).partition("there are ")[2].split(", ")
    assert {trap.kind for trap in traps} >= {kind for kind in known if "." not in kind}


def test_every_fault_is_called_as_the_section_says() -> None:
    """Coroutine methods are awaited, with what they need; barriers are context managers."""
    [listed] = re.findall(r"Coroutine methods: (.*?)\. ", PROSE)
    for written in re.findall("`(.*?)`", listed):
        name, _, arguments = written.partition("(")
        method = getattr(GeminiLiveServer(), name)
        assert inspect.iscoroutinefunction(method), name
        parameters = inspect.signature(method).parameters.values()
        plain = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        required = [p.name for p in plain if p.default is p.empty]
        assert required == [a for a in arguments.rstrip(")").split(", ") if a], name
    barriers = re.findall(r"\b(\w+ing_\w+)\(\)", PROSE)
    assert len(barriers) == 4
    for name in barriers:
        assert isinstance(getattr(GeminiLiveServer(), name)(), AbstractAsyncContextManager), name


def test_every_verb_is_named() -> None:
    """None is known to readers of the code only."""
    verbs = [name for name in vars(Verbs) if not name.startswith("_")]
    assert [name for name in verbs if not re.search(rf"\b{name}\b", SECTION)] == []


def test_every_command_of_the_section_can_be_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a clone: the comparison agrees, and a server gets as far as listening."""
    monkeypatch.chdir(ROOT)
    serve, compare, play = COMMANDS
    assert main(shlex.split(compare)) == 0
    assert ": agrees" in capsys.readouterr().out
    for command in (serve, play):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            assert main([*shlex.split(command), "--port", str(port)]) == 2
        assert f"port {port} is in use" in capsys.readouterr().err
