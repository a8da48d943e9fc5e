"""The commands ``serve``, ``compare`` and ``play``."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .compare import compare
from .play import RecordingServer
from .profiles import PROFILES, profile_named
from .recording import RecordingError, load
from .script import CHUNK_SECONDS, Call, Say
from .server import GeminiLiveServer

_GREETING = Say("Hello, this is the simulator.", audio_seconds=1.6)

_ANSWER = Say("I have heard you, and this is all I can say.", audio_seconds=2.4)

_PORT_ERRORS = {errno.EADDRINUSE: "is in use", errno.EACCES: "is reserved"}

_RECORDING = (
    "YAML file with a list 'interactions'; each has a 'direction', sent (by the client) or "
    "received, and the frame under 'data'"
)

_SERVER_STATUS = (
    "Exits with 0 when ended by Ctrl-C or SIGTERM, with 2 on bad usage, such as a port in use."
)

_COMPARE_STATUS = (
    "Exits with 0 if every recording agrees, with 1 if one does not, and with 2 on bad usage, such "
    "as a file that is no recording."
)


def _say(line: str) -> None:
    # At once, also into a file or a pipe: the server runs until it is ended.
    print(line, flush=True)


async def serve(server: GeminiLiveServer, say: Callable[[str], None] = _say) -> None:
    """Run a server until cancelled, and say how to connect."""
    async with server:
        with tempfile.NamedTemporaryFile(prefix="simulator-", suffix=".pem") as certificate:
            certificate.write(server.certificate())
            certificate.flush()
            for line in connecting(server, certificate.name):
                say(line)
            await asyncio.Event().wait()


def connecting(server: GeminiLiveServer, certificate: str) -> list[str]:
    """Return the lines that tell how an agent in another process connects.

    Args:
        server: that listens.
        certificate: path of its authority's certificate.
    """
    options = f'http_options=HttpOptions(base_url="{server.url}")'
    environment = f"SSL_CERT_FILE={certificate}"
    if server.profile.api == "gemini":
        arguments, environment = options, f"{environment} GOOGLE_API_KEY=any"
        imports = ["from google.genai.types import HttpOptions"]
    else:
        arguments = (
            'vertexai=True, project="any", location="us-central1", '
            f'credentials=Credentials(token="any"), {options}'
        )
        imports = [
            "from google.genai.types import HttpOptions",
            "from google.oauth2.credentials import Credentials",
        ]
    return [
        f"{server.url} speaks like {server.profile.label}. Ctrl-C ends it.",
        "To connect an agent of another process, construct its model as",
        *(f"  {line}" for line in imports),
        f"  RealtimeModel({arguments})",
        "and start it, trusting this server and no other, with",
        f"  {environment} python agent.py",
        "genai.Client takes the same arguments.",
    ]


async def compare_all(paths: Sequence[Path], profile: str) -> int:
    """Compare each recording with the profile, print the results, and return the exit status."""
    agreed = True
    for path in paths:
        comparison = await compare(path, profile_named(profile))
        print(comparison)
        agreed = agreed and comparison.agrees
    return 0 if agreed else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0 for success, 1 for failure, 2 for bad usage."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.command == "serve" and chosen.arguments is not None and chosen.call is None:
        parser.error("argument --arguments: only with --call")
    try:
        if chosen.command == "compare":
            return asyncio.run(compare_all(chosen.recording, chosen.profile))
        return _run(_server(chosen), chosen.port)
    except RecordingError as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m livekit_gemini_resilient.testing",
        description="A simulated Gemini Live server: no key, no network.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    serving, comparing, playing = (
        commands.add_parser(name, help=summary, description=f"{purpose} {status}")
        for name, summary, purpose, status in (
            (
                "serve",
                "run a server with a simple endless script",
                "Runs a server that says one of two sentences to whatever it hears, at the pace of "
                "speech, and tells how to connect. With --call it calls a tool before the second.",
                _SERVER_STATUS,
            ),
            (
                "compare",
                "hold a profile against recordings",
                "Replays the client's side of recordings against a profile, and compares the shape "
                "of the answers with what was recorded.",
                _COMPARE_STATUS,
            ),
            (
                "play",
                "serve the server's side of a recording",
                "Runs a server that answers the frames of a client with those of a recording, and "
                "tells how to connect.",
                _SERVER_STATUS,
            ),
        )
    )
    comparing.add_argument("recording", type=Path, nargs="+", help=_RECORDING)
    playing.add_argument("recording", type=Path, help=_RECORDING)
    serving.add_argument("--call", metavar="NAME", help="a tool of the agent to call")
    serving.add_argument(
        "--arguments",
        type=_arguments,
        metavar="JSON",
        help="its arguments, a JSON object (default: none)",
    )
    for command in (serving, playing):
        command.add_argument(
            "--port", type=_port, default=0, help="to listen on; 0, the default, takes a free one"
        )
    for command in (serving, comparing, playing):
        command.add_argument(
            "--profile",
            choices=PROFILES,
            default=next(iter(PROFILES)),
            metavar="NAME",
            help="how the server behaves, as no recording says which family it is of: "
            f"{', '.join(PROFILES)} (default: %(default)s)",
        )
    return parser


def _arguments(text: str) -> dict[str, Any]:
    with contextlib.suppress(json.JSONDecodeError):
        arguments = json.loads(text)
        if isinstance(arguments, dict):
            return arguments
    raise argparse.ArgumentTypeError(f"{text!r}: expected a JSON object")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 0 to 65535")
    return int(text)


def _server(chosen: argparse.Namespace) -> GeminiLiveServer:
    if chosen.command == "play":
        exchanges = load(chosen.recording)
        return RecordingServer(exchanges, profile=chosen.profile, port=chosen.port)
    call = [Call(chosen.call, chosen.arguments or {})] if chosen.call else []
    script = [_GREETING, *call, _ANSWER]
    return GeminiLiveServer(
        script, profile=chosen.profile, port=chosen.port, pace=CHUNK_SECONDS, repeat=True
    )


def _run(server: GeminiLiveServer, port: int) -> int:
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve_until_signalled(server))
    except OSError as error:
        if error.errno not in _PORT_ERRORS:
            raise
        what = _PORT_ERRORS[error.errno]
        print(f"port {port} {what}; choose another, or 0 for a free one", file=sys.stderr)
        return 2
    return 0


async def _serve_until_signalled(server: GeminiLiveServer) -> None:
    serving = asyncio.ensure_future(serve(server))
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows has no such handlers; Ctrl-C is an exception there.
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serving
