"""The simulator as a command, and as a pytest fixture."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from livekit_gemini_resilient.testing import GeminiLiveServer, Say
from livekit_gemini_resilient.testing.__main__ import main
from livekit_gemini_resilient.testing.command import serve
from livekit_gemini_resilient.testing.pytest_plugin import gemini_live

from .conftest import PATHS, Dial, user

__all__ = ["gemini_live"]

RECORDING = Path(__file__).parent / "recordings" / "round.separate.yaml"


def test_compare_exits_with_zero_only_if_all_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict on each recording is printed."""
    assert main(["compare", str(RECORDING), "--profile", "2.5-native-audio"]) == 0
    assert main(["compare", str(RECORDING), "--profile", "3.1-flash-live"]) == 1
    printed = capsys.readouterr().out
    assert "round.separate.yaml: agrees" in printed
    assert "round.separate.yaml: DISAGREES" in printed


async def test_serve_says_how_to_connect() -> None:
    """With the printed certificate a client needs nothing else."""
    lines: list[str] = []
    printed = asyncio.Event()

    def say(line: str) -> None:
        lines.append(line)
        if "HttpOptions" in line:
            printed.set()

    serving = asyncio.create_task(serve(GeminiLiveServer([Say("Hi.")], repeat=True), say))
    await printed.wait()
    context = ssl.create_default_context(cafile=lines[1].split("=")[1])
    [url] = re.findall(r"https(://127\.0\.0\.1:\d+)", lines[0])
    async with connect(f"wss{url}{PATHS['gemini']}", ssl=context) as client:
        await client.close()
        # Python 3.10 takes a TLS transport for unclosed if only its peer has closed it.
        client.transport.abort()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_the_fixture_starts_servers(
    gemini_live: Callable[..., Awaitable[GeminiLiveServer]], dial: Dial
) -> None:
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
    plugin = "livekit_gemini_resilient.testing.pytest_plugin"
    result = pytester.runpytest(
        "-p", plugin, "--asyncio-mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*not played: Say(text='Never.')*"])


pytest_plugins = ["pytester"]
