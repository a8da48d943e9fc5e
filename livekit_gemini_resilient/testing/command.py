"""``python -m livekit_gemini_resilient.testing``: the simulator as a command."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from .compare import compare
from .play import RecordingServer
from .profiles import PROFILES, profile_named
from .recording import load
from .script import CHUNK_SECONDS, Say
from .server import GeminiLiveServer

_SCRIPT = [
    Say("Hello, this is the simulator.", audio_seconds=1.6),
    Say("I have heard you, and this is all I can say.", audio_seconds=2.4),
]


async def serve(server: GeminiLiveServer, say: Callable[[str], None] = print) -> None:
    """Run a server until cancelled, and say how to connect."""
    with tempfile.NamedTemporaryFile(prefix="simulator-", suffix=".pem") as certificate:
        certificate.write(server.certificate())
        certificate.flush()
        async with server:
            say(f"{server.url} speaks like {server.profile.label}. To connect:")
            say(f"  SSL_CERT_FILE={certificate.name}")
            say(f"  genai.Client(..., http_options=HttpOptions(base_url={server.url!r}))")
            await asyncio.Event().wait()


async def compare_all(paths: Sequence[Path], profile: str) -> int:
    """Compare each recording with the profile, print the results, and return the exit code."""
    comparisons = [await compare(path, profile_named(profile)) for path in paths]
    for comparison in comparisons:
        print(comparison)
    return 0 if all(comparison.agrees for comparison in comparisons) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m livekit_gemini_resilient.testing")
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve", help="run a server with a simple endless script")
    comparing = commands.add_parser("compare", help="hold a profile against recordings")
    comparing.add_argument("recording", type=Path, nargs="+")
    playing = commands.add_parser("play", help="serve the server's side of a recording")
    playing.add_argument("recording", type=Path)
    for command in (serving, playing):
        command.add_argument("--port", type=int, default=0, help="0 takes a free one")
    for command in (serving, comparing, playing):
        command.add_argument(
            "--profile",
            choices=PROFILES,
            default=next(iter(PROFILES)),
            help="how the server behaves; a recording does not say which family it is of",
        )
    chosen = parser.parse_args(arguments)
    if chosen.command == "compare":
        return asyncio.run(compare_all(chosen.recording, chosen.profile))
    if chosen.command == "play":
        server: GeminiLiveServer = RecordingServer(
            load(chosen.recording), profile=chosen.profile, port=chosen.port
        )
    else:
        server = GeminiLiveServer(
            _SCRIPT, profile=chosen.profile, port=chosen.port, pace=CHUNK_SECONDS, repeat=True
        )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(server))
    return 0


if __name__ == "__main__":
    sys.exit(main())
