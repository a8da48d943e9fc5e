"""What a test can ask the server, wait for, and hold against the client."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from .faults import Faults
from .journal import Journal
from .link import Link
from .profiles import Profile, profile_named
from .records import (
    Breach,
    Connection,
    IssuedCall,
    Reply,
    TimelineEvent,
    ToolResponse,
    times_in,
)
from .script import Step, checked, shown
from .service import Service

_T = TypeVar("_T")


class Judge:
    """Keeps the records of a server and judges by them.

    Args:
        script: what the model does, one step after the other, over all connections.
        profile: how it behaves: a name in `PROFILES`, or a profile.
        handles: ``"never"`` issues no resumption handles at all.
        pace: seconds between audio messages. 0 sends a speech at once, as tests want it;
            `CHUNK_SECONDS` is real time.
        repeat: whether the script starts over when it has been played.
    """

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        profile: str | Profile = "2.5-native-audio",
        handles: Literal["profile", "never"] = "profile",
        pace: float = 0.0,
        repeat: bool = False,
    ) -> None:
        self._journal = Journal(time.monotonic)
        self._service = Service(
            profile=profile_named(profile),
            script=checked(script),
            repeat=repeat,
            issues_handles=handles == "profile",
            pace=pace,
            journal=self._journal,
        )
        self._faults = Faults()
        self._links: list[Link] = []

    @property
    def profile(self) -> Profile:
        """The profile it plays."""
        return self._service.profile

    @property
    def connections(self) -> list[Connection]:
        """Every websocket opened, in order; refused ones too, unless refused by HTTP status."""
        return self._service.connections

    @property
    def current(self) -> Connection | None:
        """The latest connection that is open and whose setup was answered."""
        return next((c for c in reversed(self.connections) if c.open), None)

    @property
    def calls(self) -> list[IssuedCall]:
        """Every function call issued."""
        return self._service.calls

    @property
    def tool_responses(self) -> list[ToolResponse]:
        """Every function response received, with its verdict."""
        return self._service.tool_responses

    @property
    def replies(self) -> list[Reply]:
        """Every speech of a `Say` step, in the order they began."""
        return self._service.replies

    @property
    def breaches(self) -> list[Breach]:
        """What the client or the script should not have done, refused frames included."""
        return self._journal.breaches

    @property
    def remaining(self) -> list[Step]:
        """The steps not played yet."""
        return list(self._service.remaining)

    def go_on_with(self, script: Iterable[Step]) -> None:
        """Replace what is left of the script, for calls whose course is not known beforehand.

        Args:
            script: what the model does from now on.

        Raises:
            TypeError: the script, or something in it, is no step.
        """
        self._service.remaining = deque(checked(script))

    @property
    def timeline(self) -> list[TimelineEvent]:
        """Everything that happened."""
        return self._journal.timeline

    def knows(self, text: str) -> bool:
        """Return whether the current conversation holds ``text``, in a result or from the user."""
        return self.times_told(text) > 0

    def times_told(self, text: str) -> int:
        """Return how many results and user entries of the current conversation hold ``text``; what
        a handle restored counts.

        The current conversation is that of `current`, or of the last connection accepted.
        """
        accepted = [c for c in self.connections if c.accepted]
        latest = self.current or (accepted[-1] if accepted else None)
        return times_in(latest.context, text) if latest is not None else 0

    async def until(self, predicate: Callable[[], _T], what: str, timeout: float = 10.0) -> _T:
        """Return the first true value of ``predicate``.

        It is looked at now and then after every event on the server, at once: a state that holds
        for one event only is seen.

        Args:
            predicate: called without arguments; what it raises is raised here.
            what: what is waited for, for the error.
            timeout: seconds.

        Raises:
            AssertionError: it did not become true in time; shows the timeline.
        """
        return await self._journal.until(predicate, what, timeout)

    async def connected(self, number: int = 1, timeout: float = 10.0) -> Connection:
        """Return the ``number``-th accepted connection once it is there, whether or not it is
        still open."""

        def accepted() -> list[Connection]:
            return [c for c in self.connections if c.accepted][number - 1 : number]

        return (await self.until(accepted, f"accepted connection {number}", timeout))[0]

    async def called(self, name: str, number: int = 1, timeout: float = 10.0) -> IssuedCall:
        """Return the ``number``-th call of that function once it has been issued."""

        def issued() -> list[IssuedCall]:
            return [call for call in self.calls if call.name == name][number - 1 : number]

        return (await self.until(issued, f"call {number} of {name}", timeout))[0]

    async def replied(self, number: int = 1, timeout: float = 10.0) -> Reply:
        """Return the ``number``-th completed reply once it has been completed."""

        def completed() -> list[Reply]:
            return [reply for reply in self.replies if reply.completed][number - 1 : number]

        return (await self.until(completed, f"completed reply {number}", timeout))[0]

    def forgive(self, text: str) -> list[Breach]:
        """Take the breaches that contain ``text`` off the list, because the test wants them.

        Raises:
            AssertionError: there are none.
        """
        forgiven = [breach for breach in self.breaches if text in breach.what]
        if not forgiven:
            raise AssertionError(self._journal.story(f"no breach contains {text!r}"))
        self.breaches[:] = [breach for breach in self.breaches if breach not in forgiven]
        return forgiven

    def verify(self) -> None:
        """Check that the script was played, every trap has sprung and nobody misbehaved.

        Raises:
            AssertionError: names each step not played, each trap still armed, and each breach.
        """
        faults = [
            f"not played: {shown(step)}" for step in self.remaining if not self._service.repeat
        ]
        faults += [f"never sprung: drop_on({t.kind!r})" for t in self._faults.traps if t.pending]
        for breach in self.breaches:
            refused = f" (refused with {breach.code})" if breach.code else ""
            faults.append(f"connection {breach.connection}: {breach.what}{refused}")
        if faults:
            headline = "\n".join(["the simulator objects:", *(f"  - {fault}" for fault in faults)])
            raise AssertionError(self._journal.story(headline))
