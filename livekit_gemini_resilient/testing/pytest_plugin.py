"""A pytest fixture: servers that are verified and closed when the test ends.

Needs pytest-asyncio; without it every test that asks for the fixture fails and says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

try:
    import pytest_asyncio
except ModuleNotFoundError:
    pytest_asyncio = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from . import GeminiLive, GeminiLiveServer

if pytest_asyncio is None:

    @pytest.fixture
    def gemini_live() -> NoReturn:
        """Fail, because nothing here can run a coroutine."""
        pytest.fail(
            "the fixture gemini_live needs pytest-asyncio: install pytest-asyncio",
            pytrace=False,
        )

else:

    @pytest_asyncio.fixture
    async def gemini_live() -> AsyncIterator[GeminiLive]:
        """Yield a coroutine function that starts a server; it takes `GeminiLiveServer`'s arguments.

        At the end of the test every server is closed, and those that are ``strict`` (the default)
        are verified.
        """
        from . import GeminiLiveServer

        servers: list[tuple[GeminiLiveServer, bool]] = []

        async def start(*args: Any, strict: bool = True, **options: Any) -> GeminiLiveServer:
            server = GeminiLiveServer(*args, strict=strict, **options)
            await server.start()
            servers.append((server, strict))
            return server

        yield start
        for server, _ in servers:
            await server.aclose()
        for server, strict in servers:
            if strict:
                server.verify()
