"""A worker without a LiveKit server: one simulated job in a process of the worker's own pool."""

import asyncio
import sys

from livekit.agents import AgentServer


def run(server: AgentServer) -> None:
    """Run one job until the end of standard input."""
    asyncio.run(_run(server))


async def _run(server: AgentServer) -> None:
    started = asyncio.Event()
    server.on("worker_started", started.set)
    running = asyncio.create_task(server.run(devmode=True, unregistered=True))
    starting = asyncio.create_task(started.wait())
    await asyncio.wait((running, starting), return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    await server.simulate_job("room", fake_job=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.aclose()
    await running
