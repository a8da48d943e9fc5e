"""What all connections of one server share: the script, and the records of what happened."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from .handles import Handles, Snapshot
from .journal import Journal
from .profiles import Profile
from .records import Connection, IssuedCall, Reply, ToolResponse, Trigger
from .script import Step, shown


@dataclass(slots=True, kw_only=True)
class Service:
    """The simulated service behind the sockets."""

    profile: Profile
    script: list[Step]
    repeat: bool
    issues_handles: bool
    pace: float
    """Seconds between audio messages; 0 sends them at once."""

    journal: Journal
    handles: Handles = field(default_factory=Handles)
    connections: list[Connection] = field(default_factory=list)
    calls: list[IssuedCall] = field(default_factory=list)
    tool_responses: list[ToolResponse] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    lost: dict[str, list[IssuedCall]] = field(default_factory=dict)
    """By conversation: the calls that were open when one of its connections ended."""

    ended: dict[str, float] = field(default_factory=dict)
    """By conversation: when its latest connection ended, in seconds since the server started."""

    remaining: deque[Step] = field(init=False)

    def __post_init__(self) -> None:
        self.remaining = deque(self.script)

    def expired(self, snapshot: Snapshot) -> bool:
        """Return whether a handle has outlived its time."""
        since = max(snapshot.issued, self.ended.get(snapshot.conversation, 0.0))
        return self.journal.now() - since >= self.profile.handle_ttl

    def next_step(self, connection: int, trigger: Trigger) -> Step | None:
        """Take the next step off the script; ``None``, and a breach, if there is none."""
        if not self.remaining and self.repeat:
            self.remaining.extend(self.script)
        if not self.remaining:
            self.journal.breach(connection, f"nothing left in the script: got {trigger}")
            return None
        step = self.remaining.popleft()
        self.journal.log(connection, "plays", f"{shown(step):.120}")
        return step
