"""An agent file for the google plugin. ``test_worker`` runs a copy of it, with two lines on top."""

import multiprocessing
import os

from google.genai.types import HttpOptions
from livekit.agents import Agent, AgentServer, AgentSession, JobContext, function_tool
from livekit.plugins import google
from one_job import run  # stands here for livekit.agents.cli, which needs a LiveKit server


@function_tool
async def book_table(day: str) -> str:
    """Book a table.

    Args:
        day: The day.
    """
    return f"booked for {day}"


class Forecaster(Agent):
    """Learns to book tables when it is asked for the weather."""

    def __init__(self) -> None:
        super().__init__(instructions="Be brief.")

    @function_tool
    async def get_weather(self, city: str) -> str:
        """Look up the weather.

        Args:
            city: The city.
        """
        await self.update_tools([*self.tools, book_table])
        return f"foggy in the process {multiprocessing.current_process().name}"


server = AgentServer(
    multiprocessing_context=os.environ["START_METHOD"], initialize_process_timeout=60
)


@server.rtc_session()
async def answer_the_call(ctx: JobContext) -> None:
    """One call."""
    options = HttpOptions(base_url=os.environ["GEMINI_URL"])
    session = AgentSession(llm=google.realtime.RealtimeModel(http_options=options))
    await session.start(agent=Forecaster(), room=ctx.room)


if __name__ == "__main__":
    run(server)
