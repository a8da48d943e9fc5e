"""The Gemini Live server: a TLS websocket server on 127.0.0.1."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol

import trustme

from .link import Link
from .profiles import Profile
from .script import Step
from .transport import WebSocket
from .verbs import Verbs

if TYPE_CHECKING:
    from google.genai.types import HttpOptions

_HOST = "127.0.0.1"


@functools.lru_cache(maxsize=1)
def _authority() -> trustme.CA:
    """Return the authority that signs for the whole process."""
    return trustme.CA()


@functools.lru_cache(maxsize=1)
def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of server and client."""
    authority = _authority()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(_HOST).configure_cert(server)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(client)
    return server, client


class GeminiLiveServer(Verbs):
    """A Gemini Live server that the unmodified google-genai SDK connects to.

    Serves the profile's API (Gemini API or Vertex AI) with a scripted model that has a memory.
    Use it as ``async with GeminiLiveServer([Say("Hello.")]) as server:``, or `start` and `aclose`.
    The records stay readable after it has closed.

    Args:
        script: what the model does, one step per inference (a call takes in what follows it), over
            all connections.
        profile: how it behaves: a name in `PROFILES`, or a profile.
        handles: ``"never"`` issues no resumption handles at all.
        pace: seconds between audio messages. 0 sends a speech at once, as tests want it;
            `CHUNK_SECONDS` is real time.
        repeat: whether the script starts over when it has been played.
        strict: whether leaving the ``async with`` block without an error calls `verify`.
        port: to listen on; 0 takes a free one.
    """

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        profile: str | Profile = "2.5-native-audio",
        handles: Literal["profile", "never"] = "profile",
        pace: float = 0.0,
        repeat: bool = False,
        strict: bool = True,
        port: int = 0,
    ) -> None:
        super().__init__(script, profile=profile, handles=handles, pace=pace, repeat=repeat)
        self._strict = strict
        self._port = port
        self._listener: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen."""
        self._listener = await asyncio.get_running_loop().create_server(
            self._new_socket, _HOST, self._port, ssl=_contexts()[0]
        )
        self._port = self._listener.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        """Stop listening and cut every connection. Idempotent; does not verify."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        for link in self._links:
            link.abort()
        for link in self._links:
            await link.socket.gone()

    async def __aenter__(self) -> GeminiLiveServer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
        if kind is None and self._strict:
            self.verify()

    @property
    def url(self) -> str:
        """``https://127.0.0.1:PORT``, for the SDK's ``base_url``."""
        return f"https://{_HOST}:{self._port}"

    def certificate(self) -> bytes:
        """Return the authority's certificate as PEM, for ``SSL_CERT_FILE``."""
        return _authority().cert_pem.bytes()

    def ssl_context(self) -> ssl.SSLContext:
        """Return a client context that trusts this server and nobody else."""
        return _contexts()[1]

    def http_options(self) -> HttpOptions:
        """Return options, new ones each time, with which a ``google.genai.Client`` connects.

        Needs google-genai.
        """
        from google.genai.types import HttpOptions

        return HttpOptions(base_url=self.url, async_client_args={"ssl": self.ssl_context()})

    def model_options(self) -> dict[str, Any]:
        """Return keyword arguments with which ``google.realtime.RealtimeModel`` connects.

        The model name among them is the profile's label; any other serves as well. Needs
        google-genai, and google-auth for Vertex.
        """
        options: dict[str, Any] = {
            "model": self.profile.label,
            "http_options": self.http_options(),
        }
        if self.profile.api == "gemini":
            return {**options, "api_key": "simulator"}
        from google.oauth2.credentials import Credentials

        return {
            **options,
            "vertexai": True,
            "project": "simulator",
            "location": "us-central1",
            "credentials": Credentials(token="simulator"),  # type: ignore[no-untyped-call]
        }

    def _new_socket(self) -> WebSocket:
        return Link(self._service, self._faults, self._links.append).socket


class GeminiLive(Protocol):
    """The type of the pytest fixture ``gemini_live``."""

    async def __call__(
        self,
        script: Iterable[Step] = (),
        *,
        profile: str | Profile = "2.5-native-audio",
        handles: Literal["profile", "never"] = "profile",
        pace: float = 0.0,
        repeat: bool = False,
        strict: bool = True,
        port: int = 0,
    ) -> GeminiLiveServer:
        """Start a server with these arguments, those of `GeminiLiveServer`.

        Call it as often as servers are needed. When the test ends each is closed, and verified if
        it is ``strict``.
        """
