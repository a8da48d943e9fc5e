"""A pytest fixture: servers that are verified and closed when the test ends.

Needs pytest-asyncio; without it the fixture does not exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

try:
    import pytest_asyncio
except ImportError:  # pragma: no cover
    pytest_asyncio = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from .server import GeminiLiveServer

if pytest_asyncio is not None:

    @pytest_asyncio.fixture
    async def gemini_live() -> AsyncIterator[Callable[..., Awaitable[GeminiLiveServer]]]:
        """Yield a coroutine function that starts a server; it takes `GeminiLiveServer`'s arguments.

        At the end of the test every server is closed, and those that are ``strict`` (the default)
        are verified.
        """
        from .server import GeminiLiveServer

        servers: list[tuple[GeminiLiveServer, bool]] = []

        async def start(*args: Any, strict: bool = True, **options: Any) -> GeminiLiveServer:
            server = GeminiLiveServer(*args, strict=strict, **options)
            servers.append((server, strict))
            await server.start()
            return server

        yield start
        for server, _ in servers:
            await server.aclose()
        for server, strict in servers:
            if strict:
                server.verify()
