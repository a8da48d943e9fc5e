"""When does a tool run whose effect is another prompt or another agent?

Such a *transition* ends what the model is doing, so it begins where nothing is cut:

1. a call that arrives while the model speaks is held;
2. it is let go when the generation is over, when a model that waits for the answer has fallen
   quiet, when the connection is lost (the tool runs all the same, and its result is told on the
   next one), or after ``patience`` seconds;
3. a restart that is requested while the tool runs takes effect as soon as the model is silent;
4. the result is then withheld from the connection that is about to end, so that the new prompt
   answers it. Without a restart it is told as usual.

Held calls queue up; none takes the place of another.
"""

from __future__ import annotations

from collections.abc import Iterable

from .events import ToolCall


class Transitions:
    """The calls of transition tools.

    Args:
        names: The tools; ``None`` for all.
        quiet: Seconds without a frame after which a model that waits has finished speaking.
        patience: Seconds for which a call is held at most.
    """

    def __init__(self, *, names: frozenset[str] | None, quiet: float, patience: float) -> None:
        self._names = names
        self._quiet = quiet
        self._patience = patience
        self._held: list[ToolCall] = []
        self._until = 0.0
        self._last_frame = 0.0
        self.let_go: set[str] = set()
        """Ids of the calls that were not held, or are not any more."""

    @property
    def holding(self) -> bool:
        """Whether a call is held, for whose answer the server waits."""
        return bool(self._held)

    def frame_received(self, *, now: float) -> None:
        """The server said something."""
        self._last_frame = now

    def arrived(
        self, calls: Iterable[ToolCall], *, speaking: bool, now: float
    ) -> tuple[ToolCall, ...]:
        """Take calls as they come.

        Args:
            calls: The calls.
            speaking: The model is in the middle of a generation.
            now: Loop seconds.

        Returns:
            Those that may run now.
        """
        passed: list[ToolCall] = []
        for call in calls:
            if self._names is not None and call.name not in self._names:
                passed.append(call)
            elif any(held.call_id == call.call_id for held in self._held):
                continue
            elif speaking or self._held:
                self._until = self._until if self._held else now + self._patience
                self._held.append(call)
            else:
                self.let_go.add(call.call_id)
                passed.append(call)
        return tuple(passed)

    def cancelled(self, ids: Iterable[str], *, unnamed: bool) -> None:
        """The server wants no answer any more: what is held need not run."""
        gone = set(ids)
        self._held = [c for c in self._held if c.call_id not in gone and (c.has_id or not unnamed)]

    def next_deadline(self, *, model_waits: bool) -> float | None:
        """When a held call is let go, in loop seconds; ``None`` if none is held.

        Args:
            model_waits: The model says nothing more before it has the answer.
        """
        if not self._held:
            return None
        quiet = self._last_frame + self._quiet
        return min(self._until, quiet) if model_waits else self._until

    def release(self, *, speaking: bool, model_waits: bool, now: float) -> tuple[ToolCall, ...]:
        """The calls that may run now after all."""
        deadline = self.next_deadline(model_waits=model_waits)
        if deadline is None or (speaking and now < deadline):
            return ()
        released, self._held = tuple(self._held), []
        self.let_go |= {call.call_id for call in released}
        return released
