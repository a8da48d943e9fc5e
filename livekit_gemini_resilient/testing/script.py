"""What the model will do: the steps of a script, and gates that stop it in mid-sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal

CHUNK_SECONDS = 0.04
"""Length of one audio message in seconds. A choice; the service's chunks vary."""


class Gate:
    """A place where the model stops until the test lets it go on. Serves one step."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened = False
        self._go_on: Callable[[], None] | None = None

    async def reached(self, timeout: float = 10.0) -> None:
        """Return once the model stands at the gate (or has passed it).

        Args:
            timeout: seconds.

        Raises:
            AssertionError: the model did not come this far in time.
        """
        try:
            await asyncio.wait_for(self._reached.wait(), timeout)
        except asyncio.TimeoutError:
            raise AssertionError(f"the model did not reach the gate within {timeout} s") from None

    def open(self) -> None:
        """Let the model go on, now or when it arrives."""
        self._opened = True
        go_on, self._go_on = self._go_on, None
        if go_on is not None:
            go_on()

    def arm(self, go_on: Callable[[], None]) -> bool:
        """Say that the model has arrived; used by the simulator.

        Returns:
            Whether it has to wait. If so, ``go_on`` is called when the gate opens.
        """
        self._reached.set()
        if not self._opened:
            self._go_on = go_on
        return not self._opened


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a script: `Say`, `Call`, `Calls` or `Silence`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SayOptions(Step):
    audio_seconds: float = 0.2
    """Seconds of audio, in whole chunks of `CHUNK_SECONDS`; 0 for a transcript without audio
    (recorded once on 3.1)."""

    thought: str = ""
    """Thought summary sent ahead of the speech, on families that send one (recorded on 2.5)."""

    gate: Gate | None = None
    """Where the speech stops."""

    gate_after: int = 1
    """Audio chunks sent before the gate. 0 stops before anything is said; the number of all chunks
    stops before ``generationComplete``."""

    in_progress: bool = False
    """The request is not done: the next step follows in a turn of its own, unasked, and this turn's
    ``turnComplete`` says ``IN_PROGRESS`` where the family tells (documented for extended
    thinking)."""

    turn_gate: Gate | None = None
    """Stops between ``generationComplete`` and ``turnComplete``: the service delays the latter
    until it presumes the audio to have been played (documented)."""


@dataclass(frozen=True, slots=True)
class Say(_SayOptions):
    """Speak, and end the turn."""

    text: str
    """The words, sent as output transcription if the setup asked for one."""

    def __post_init__(self) -> None:
        if self.gate is not None and self.gate_after > self.chunks:
            raise ValueError(
                f"the gate is after chunk {self.gate_after} of a speech of {self.chunks}"
            )

    @property
    def chunks(self) -> int:
        """Number of audio messages."""
        return round(self.audio_seconds / CHUNK_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallOptions(Step):
    thought: str = ""
    """Thought summary sent first, on families that send one (recorded on 2.5)."""

    say_first: str = ""
    """Words spoken in the same turn ahead of the call."""

    trailing: str = ""
    """Words whose audio and transcript follow the ``toolCall`` in the same TCP write (observed:
    content trails calls on native audio and on Vertex)."""

    trailing_empty: bool = False
    """An empty ``outputTranscription`` follows the ``toolCall`` (observed on some models)."""

    trailing_complete: bool = False
    """A ``generationComplete`` follows the ``toolCall`` (observed on some models)."""

    handle_first: bool = False
    """A handle goes out just before the call. It covers all that was said, and not the call."""

    then_next: bool = False
    """Play the next step, which must be another call, without waiting for the answer."""

    goes_on: bool = False
    """Play the next step in the same turn, if no blocking call is open (observed on 2.5: the model
    speaks while a non-blocking tool runs). Otherwise a non-blocking call ends its turn, and the
    next step is played when it has been answered. Without effect on a blocking call."""

    delivery: Literal["once", "twice", "two_shapes"] = "once"
    """How the message is delivered: once; twice alike; or first as ``functionCall`` parts of a
    ``modelTurn`` and then as ``toolCall``, under the same ids (observed, model not named)."""


@dataclass(frozen=True, slots=True)
class Call(_CallOptions):
    """Issue one function call, and wait for its answer if it is blocking."""

    name: str
    """The function."""

    args: dict[str, Any] = field(default_factory=dict)
    """Its arguments."""

    again: bool = field(default=False, kw_only=True)
    """Issue the latest call of that function again: its arguments, another id. Models do so after a
    resume that forgot the call (inferred), and also before the answer (observed)."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls in the message."""
        return (self,)


@dataclass(frozen=True, slots=True)
class Calls(_CallOptions):
    """Issue several function calls in one message, and wait for the answers to blocking ones."""

    batch: list[Call]
    """The calls. Their options are ignored in favour of those of the batch."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls in the message."""
        return tuple(self.batch)


@dataclass(frozen=True, slots=True)
class Silence(Step):
    """End the turn without a word (observed: empty turns occur on 2.5 and 3.1)."""

    usage: bool = True
    """Whether ``turnComplete`` comes with ``usageMetadata``."""


def shown(step: Step) -> str:
    """Return the step as its author may have written it: defaults left out."""
    given = {f.name: getattr(step, f.name) for f in fields(step)}
    defaults = {
        f.name: f.default_factory() if f.default_factory is not MISSING else f.default
        for f in fields(step)
    }
    changed = [f"{name}={value!r}" for name, value in given.items() if value != defaults[name]]
    return f"{type(step).__name__}({', '.join(changed)})"


def checked(script: Iterable[Step]) -> list[Step]:
    """Return the script as a list.

    Raises:
        TypeError: the script, or something in it, is no step.
        ValueError: ``then_next`` is not followed by a call, or ``in_progress`` by nothing.
    """
    if isinstance(script, (str, Step)):
        raise TypeError(f"script={script!r}: expected a list of steps such as [Say('Hello.')]")
    steps = list(script)
    for number, step in enumerate(steps):
        if not isinstance(step, (Say, Call, Calls, Silence)):
            raise TypeError(f"script[{number}]={step!r}: expected a step such as Say('Hello.')")
    for step, following in zip(steps, [*steps, None][1:], strict=True):
        then_next = isinstance(step, (Call, Calls)) and step.then_next
        if then_next and not isinstance(following, (Call, Calls)):
            raise ValueError(f"then_next needs another call after {shown(step)}")
        if isinstance(step, Say) and step.in_progress and following is None:
            raise ValueError(f"in_progress needs another step after {shown(step)}")
    return steps
