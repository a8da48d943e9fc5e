"""The simulator as a command."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from livekit.plugins.google.realtime import RealtimeModel
from websockets.asyncio.client import connect

from livekit_gemini_resilient.testing import GeminiLiveServer, Say
from livekit_gemini_resilient.testing.__main__ import main
from livekit_gemini_resilient.testing.command import serve

from .conftest import PATHS

RECORDING = Path(__file__).parent / "recordings" / "round.separate.yaml"


def test_compare_exits_with_zero_only_if_all_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict on each recording is printed."""
    assert main(["compare", str(RECORDING), "--profile", "2.5-native-audio"]) == 0
    assert main(["compare", str(RECORDING), "--profile", "3.1-flash-live"]) == 1
    printed = capsys.readouterr().out
    assert "round.separate.yaml: agrees" in printed
    assert "round.separate.yaml: DISAGREES" in printed


def test_compare_takes_a_file_that_is_no_recording_for_bad_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line says what is wrong; the recordings ahead of it have been compared."""
    assert main(["compare", str(RECORDING), "nope.yaml"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "round.separate.yaml: agrees\n"
    assert printed.err == "nope.yaml: no such file\n"
    assert main(["compare", __file__]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{__file__}: not a recording (expected YAML")


def test_play_takes_a_file_that_is_no_recording_for_bad_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is served."""
    assert main(["play", "nope.yaml"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "nope.yaml: no such file\n")


@pytest.mark.parametrize("command", [["serve"], ["play", str(RECORDING)]], ids=["serve", "play"])
def test_a_port_in_use_is_bad_usage(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One line says which, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main([*command, "--port", str(port)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"port {port} is in use; choose another, or 0 for a free one\n"


@pytest.mark.parametrize("port", ["65536", "-1", "https"])
def test_what_is_no_port_is_bad_usage(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The error says what one is."""
    with pytest.raises(SystemExit) as exited:
        main(["serve", f"--port={port}"])
    assert exited.value.code == 2
    assert f"'{port}': expected a number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--call", "look", "--arguments", "[1]"], "'[1]': expected a JSON object"),
        (["--call", "look", "--arguments", "{"], "'{': expected a JSON object"),
        (["--arguments", "{}"], "only with --call"),
    ],
)
def test_arguments_that_no_call_can_have_are_bad_usage(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says what is expected."""
    with pytest.raises(SystemExit) as exited:
        main(["serve", *arguments])
    assert exited.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "compare", "play"])
def test_help_describes_arguments_exit_statuses_and_the_default_profile(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that the command can be told, and all that it tells."""
    with pytest.raises(SystemExit) as exited:
        main([command, "--help"])
    assert exited.value.code == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "(default: 2.5-native-audio)" in words
    assert re.search("Exits with 0 .* with 2 on bad usage", words)
    assert ("recording YAML file with a list 'interactions'" in words) is (command != "serve")


async def serving(server: GeminiLiveServer) -> tuple[asyncio.Task[None], list[str]]:
    """Serve until the task is cancelled; returns it and what was printed."""
    lines: list[str] = []
    printed = asyncio.Event()

    def say(line: str) -> None:
        lines.append(line)
        if line.startswith("genai.Client"):
            printed.set()

    task = asyncio.create_task(serve(server, say))
    await printed.wait()
    return task, lines


def printed_certificate(lines: list[str]) -> Path:
    """The path that stands in the printed environment."""
    return Path(re.findall(r"SSL_CERT_FILE=(\S+)", "\n".join(lines))[0])


async def test_serve_says_how_to_connect() -> None:
    """With the printed certificate a client needs nothing else."""
    task, lines = await serving(GeminiLiveServer([Say("Hi.")], repeat=True))
    context = ssl.create_default_context(cafile=printed_certificate(lines))
    [url] = re.findall(r"https(://127\.0\.0\.1:\d+)", lines[0])
    async with connect(f"wss{url}{PATHS['gemini']}", ssl=context) as client:
        await client.close()
        # Python 3.10 takes a TLS transport for unclosed if only its peer has closed it.
        client.transport.abort()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not printed_certificate(lines).exists()


async def test_the_model_that_serve_prints_talks_to_it(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expression and the environment, as they are printed, are all that an agent needs."""
    server = GeminiLiveServer([Say("Hi.")], profile=profile, strict=False)
    task, lines = await serving(server)
    head = lines.index("and start it, trusting this server and no other, with")
    *variables, _, _ = lines[head + 1].split()
    for variable in variables:
        monkeypatch.setenv(*variable.split("="))
    names: dict[str, Any] = {"RealtimeModel": RealtimeModel}
    *imports, construction = (line.strip() for line in lines[2:head])
    exec("\n".join(imports), names)
    model: RealtimeModel = eval(construction, names)
    session = model.session()
    await server.connected()
    await server.caller_says("hello")
    assert (await server.replied()).text == "Hi."
    await session.aclose()
    await model.aclose()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_a_signal_ends_the_server_and_removes_its_certificate(number: signal.Signals) -> None:
    """What is printed arrives at once, although it goes into a pipe."""
    with subprocess.Popen(
        # google.api_core announces the end of life of the Python it runs on
        [
            *(sys.executable, "-W", "ignore::FutureWarning"),
            *("-m", "livekit_gemini_resilient.testing", "serve"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(6)]
        certificate = printed_certificate(lines)
        assert certificate.exists()
        process.send_signal(number)
        assert process.wait(timeout=180) == 0
        assert "Traceback" not in process.stdout.read()
    assert "Ctrl-C ends it" in lines[0]
    assert not certificate.exists()
