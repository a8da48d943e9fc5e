"""``install()`` in the processes that LiveKit's worker makes for its jobs.

The agent file is written for the plugin, and is the same in every test but for two lines. It runs
as a script, and its jobs in processes of the worker's pool, which import the script afresh.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .stack import ANSWER, PLUGIN, answers

FILES = Path(__file__).parent / "worker"
README = (Path(__file__).parents[1] / "README.md").read_text()
TWO_LINES = "from livekit_gemini_resilient import install\n\ninstall()\n"
RESULT = "foggy in the process job_proc"
SCRIPT = [Call("get_weather", {"city": "London"}), Say(ANSWER)]


@contextlib.asynccontextmanager
async def worker(
    server: GeminiLiveServer, folder: Path, first_lines: str, start_method: str
) -> AsyncIterator[None]:
    """A worker that runs one job against the simulator, and ends well.

    Raises:
        RuntimeError: The job did not connect: not what a test that expects a fault expects.
    """
    shutil.copy(FILES / "one_job.py", folder)
    (folder / "agent.py").write_text(first_lines + (FILES / "agent.py").read_text())
    (folder / "authority.pem").write_bytes(server.certificate())
    accounts = ("LIVEKIT_URL", "LIVEKIT_API_", "GOOGLE_")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(accounts)}
    environment = {
        "SSL_CERT_FILE": str(folder / "authority.pem"),
        "GOOGLE_API_KEY": "any",
        "GEMINI_URL": server.url,
        "START_METHOD": start_method,
    }
    with (folder / "output").open("w+") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "agent.py",
            cwd=folder,
            env={**inherited, **environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=output,
        )
        assert process.stdin is not None
        try:
            # busy cores take their time to start three processes
            coming = asyncio.create_task(server.until(lambda: server.current, "the job", 120))
            ended = asyncio.create_task(process.wait())
            await asyncio.wait((coming, ended), return_when=asyncio.FIRST_COMPLETED)
            coming.cancel()
            if server.current is None:
                raise RuntimeError((folder / "output").read_text())
            yield
        finally:
            process.stdin.close()
            status = await asyncio.wait_for(ended, 60)
        if status != 0:
            raise RuntimeError((folder / "output").read_text())


@pytest.mark.parametrize(
    ("start_method", "first_lines"),
    [
        pytest.param("forkserver", TWO_LINES, id="ours-forkserver"),
        pytest.param("spawn", TWO_LINES, id="ours-spawn"),
        pytest.param(
            "forkserver",
            "",
            id="plain-forkserver",
            marks=pytest.mark.xfail(
                strict=True, raises=AssertionError, reason=f"{PLUGIN} has the fault"
            ),
        ),
    ],
)
async def test_an_agent_for_the_plugin_answers_across_update_tools_in_a_process_of_a_worker(
    start_method: str, first_lines: str, tmp_path: Path
) -> None:
    """The two lines of the README, on top of the agent file, are all that it takes."""
    async with (
        GeminiLiveServer(SCRIPT, strict=bool(first_lines)) as server,
        worker(server, tmp_path, first_lines, start_method),
    ):
        await server.caller_says("What is the weather in London?")
        patience = 30 if first_lines else 3
        await server.until(lambda: answers(server), "the answer", patience)
        (answer,) = answers(server)
        assert answer.knew(RESULT)
        assert answer.connection == 2
        assert server.current is not None
        assert set(server.current.declared_tools) == {"get_weather", "book_table"}


def test_the_readme_shows_these_two_lines() -> None:
    """What was tested is what users paste."""
    assert f"```python\n{TWO_LINES}" in README
