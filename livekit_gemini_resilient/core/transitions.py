"""When does a tool run whose effect is another prompt or another agent?

Such a *transition* ends what the model is doing, so it begins where nothing is cut:

1. a call that arrives while the model speaks is held;
2. it is let go when the generation is over, when a model that waits for an answer, to this call or
   to another, has fallen quiet, when the connection is lost (the tool runs all the same, and its
   result is told on the next one), or after ``patience`` seconds;
3. a restart that is requested before its result was told takes effect as soon as the model is
   silent;
4. the result is then withheld from the connection that is about to end, so that the new prompt
   answers it; so it is while the tool's agent is being replaced by the one that it handed over to.
   Without either it is told as usual.

Held calls queue up; none takes the place of another. Other calls of the same message run at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from .events import ToolCall
from .turn_state import TurnState

_SPEAKING = (TurnState.GENERATING, TurnState.TRAILING)
"""States in which a call breaks off what is being said."""


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
        self, calls: Iterable[ToolCall], *, state: TurnState, with_speech: bool, now: float
    ) -> tuple[ToolCall, ...]:
        """Take calls as they come.

        Args:
            calls: The calls.
            state: Of the turn, before they came.
            with_speech: Speech came with them.
            now: Loop seconds.

        Returns:
            Those that may run now.
        """
        passed: list[ToolCall] = []
        speaking = with_speech or state in _SPEAKING
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

    def dropped(self) -> None:
        """The conversation is over: what is held never runs."""
        self._held.clear()

    def next_deadline(self, state: TurnState, *, model_waits: bool) -> float | None:
        """When a held call is let go, in loop seconds; ``None`` if none is held.

        Args:
            state: Of the turn.
            model_waits: The model says nothing more before it has the answer.
        """
        if not self._held:
            return None
        quiet = self._last_frame + self._quiet
        # another call has ended its generation, and the model may go on after it
        falls_quiet = model_waits or state is TurnState.AWAITING_TOOLS
        return min(self._until, quiet) if falls_quiet else self._until

    def release(self, state: TurnState, *, model_waits: bool, now: float) -> tuple[ToolCall, ...]:
        """The calls that may run now after all; for the arguments see ``next_deadline``."""
        deadline = self.next_deadline(state, model_waits=model_waits)
        may_go_on = state in (*_SPEAKING, TurnState.AWAITING_TOOLS)
        if deadline is None or (may_go_on and now < deadline):
            return ()
        released, self._held = tuple(self._held), []
        self.let_go |= {call.call_id for call in released}
        return released
