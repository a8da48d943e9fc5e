"""The simulator as a pytest fixture."""

from __future__ import annotations

import inspect

import pytest

from livekit_gemini_resilient.testing import GeminiLive, GeminiLiveServer, Say
from livekit_gemini_resilient.testing.pytest_plugin import gemini_live

from .conftest import Dial, user

__all__ = ["gemini_live"]

pytest_plugins = ["pytester"]

PLUGIN = "livekit_gemini_resilient.testing.pytest_plugin"


async def test_the_fixture_starts_servers(gemini_live: GeminiLive, dial: Dial) -> None:
    """It takes the server's arguments; what it started is verified and closed afterwards."""
    server = await gemini_live([Say("Hi.")], profile="3.1-flash-live")
    client = await dial(server)
    await client.send(user("hello"))
    await server.replied()


def test_the_fixture_fails_a_test_that_leaves_a_step_unplayed(pytester: pytest.Pytester) -> None:
    """A strict server is verified at teardown, any other is only closed."""
    pytester.makepyfile(
        """
        import pytest
        from livekit_gemini_resilient.testing import Say

        @pytest.mark.parametrize("strict", [True, False])
        async def test_it(gemini_live, strict):
            await gemini_live([Say("Never.")], strict=strict)
        """
    )
    result = pytester.runpytest(
        "-p", PLUGIN, "--asyncio-mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*not played: Say(text='Never.')*"])


def test_the_type_of_the_fixture_has_the_arguments_of_the_server() -> None:
    """A typed test is checked against what the server takes."""
    declared = inspect.signature(GeminiLive.__call__)
    taken = inspect.signature(GeminiLiveServer.__init__)
    assert declared.parameters == taken.parameters


def test_without_pytest_asyncio_the_fixture_says_what_to_install(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It exists, and fails the test that asks for it."""
    pytester.makepyfile(without="import sys; sys.modules['pytest_asyncio'] = None")
    pytester.makepyfile("async def test_it(gemini_live): ...")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    result = pytester.runpytest_subprocess("-p", "without", "-p", PLUGIN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the fixture gemini_live needs pytest-asyncio: install *"])
