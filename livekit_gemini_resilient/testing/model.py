"""The scripted model of one connection.

Theory of operation. An inference is a generator that sends messages and yields where it has to
wait: at a gate, for the pace, for answers. It runs synchronously up to there, so whatever a client
frame causes has been written before the next frame is read. At most one inference runs. What
cannot be taken while it runs is queued and answered by one further inference.

    idle ── input ──▶ generating ── turnComplete ──▶ idle, or the queue
                        │   ▲
                     toolCall │ every open call answered
                        ▼   │
                    awaiting answers ── every call cancelled ──▶ turnComplete
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from .dialect import Dialect, Message, Piece
from .records import Connection, Entry, IssuedCall, Reply, Trigger
from .script import CHUNK_SECONDS, Call, Calls, Say, Silence
from .service import Service


class _Wait(Protocol):
    def arm(self, go_on: Callable[[], None]) -> bool: ...


class _Answers:
    """Waits for the answers to open calls; `ScriptedModel.go_on` goes on."""

    def arm(self, go_on: Callable[[], None]) -> bool:
        return True


class _Pace:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def arm(self, go_on: Callable[[], None]) -> bool:
        asyncio.get_running_loop().call_later(self._seconds, go_on)
        return True


_Inference: TypeAlias = Iterator[_Wait]


@dataclass(slots=True)
class _Turn:
    """What has been generated in the turn, for its usage."""

    seconds: float = 0.0
    calls: int = 0
    thoughts: int = 0


class ScriptedModel:
    """Plays the script on one connection and keeps its memory.

    Args:
        service: what is shared with the other connections.
        connection: the record to keep.
        dialect: builds its messages.
        send: sends messages in one write.
    """

    def __init__(
        self,
        service: Service,
        connection: Connection,
        dialect: Dialect,
        send: Callable[..., None],
    ) -> None:
        self._service = service
        self._connection = connection
        self._send = send
        self._dialect = dialect
        self._resumable = (
            service.issues_handles and connection.setup.get("session_resumption") is not None
        )
        self._inference: _Inference | None = None
        self._queue: list[tuple[Entry | None, Trigger]] = []
        self._calls: dict[str, IssuedCall] = {}
        self._awaited: list[IssuedCall] = []
        self._reply: Reply | None = None
        self._turn = _Turn()

    @property
    def open_calls(self) -> list[IssuedCall]:
        """The calls of this connection that wait for an answer."""
        return [call for call in self._calls.values() if call.open]

    @property
    def generating(self) -> bool:
        """Whether an inference runs and does not wait for answers."""
        return self._inference is not None and not self._awaited

    def call(self, call_id: str) -> IssuedCall | None:
        """Return the call of this connection with that id."""
        return self._calls.get(call_id)

    def learn(self, *entries: Entry) -> None:
        """Add to the context, without a reaction."""
        self._connection.context.extend(entries)

    def hear(self, entry: Entry | None, trigger: Trigger) -> None:
        """Answer what the caller said or typed, now or after the turn that is running."""
        self._queue.append((entry, trigger))
        self.take_queue()

    def think(self, trigger: Trigger) -> None:
        """Run an inference, interrupting one that generates."""
        if self.generating:
            self.interrupt()
        if self._inference is None:
            self._start(trigger)

    def interrupt(self, *, turn_complete: bool = True) -> None:
        """Stop generating and say so. Open calls stay open."""
        if self._reply is not None:
            self._reply.interrupted = True
            if not self._reply.completed:
                # Where it was said: what interrupted it may have been learnt already.
                at = len(self._reply.context)
                self._connection.context.insert(at, Entry("model", self._reply.text))
        if self.generating:
            self._inference = None
        self._reply = None
        self._send(self._dialect.interrupted())
        if turn_complete:
            self._end_turn()

    def break_off(self) -> None:
        """Interrupt, if anything is being generated, and answer what was queued."""
        if self.generating:
            self.interrupt()
            self.take_queue()

    def take_queue(self) -> None:
        """Answer what was queued, if nothing runs."""
        if self._inference is None and self._queue:
            self._start(self._queue[-1][1])

    def cancel(self, calls: list[IssuedCall], *, interrupted: bool) -> None:
        """Take open calls back; with none left, and none answered, the turn ends."""
        for call in calls:
            call.cancelled = True
        if interrupted:
            self._send(self._dialect.interrupted())
        self._send(self._dialect.cancellation(calls))
        if not self._awaited or self.open_calls:
            return
        if any(call.answered for call in self._awaited):
            self.go_on()
        else:
            self._awaited = []
            self._inference = None
            self._end_turn()
            self.take_queue()

    def go_on(self) -> None:
        """Go on with the turn if its calls have been answered."""
        if not self._awaited or self.open_calls or self._inference is None:
            return
        self._awaited = []
        cadence = self._service.profile.handle_after_tool_response
        if cadence == "always" or (cadence == "asked" and self._resumable):
            self.issue_handle()
        self._advance(self._inference)

    def issue_handle(self, *, always: bool = False) -> str | None:
        """Send a handle for what the model knows, open calls left out.

        Args:
            always: also if the server issues none by itself.

        Returns:
            The handle; ``None`` if none was issued.
        """
        if not (self._service.issues_handles or always):
            return None
        handle = self._service.handles.issue(
            self._connection.conversation,
            self._connection.context,
            (call.id for call in self.open_calls),
        )
        self._send(self._dialect.handle(handle))
        return handle

    def stop(self) -> None:
        """Forget what was running: the connection is gone."""
        self._inference = None

    def _start(self, trigger: Trigger) -> None:
        queue, self._queue = self._queue, []
        self.learn(*(entry for entry, _ in queue if entry is not None))
        self._inference = self._infer(trigger)
        self._advance(self._inference)

    def _advance(self, inference: _Inference) -> None:
        """Run until the next wait that holds; an inference that was given up stays so."""
        while self._inference is inference:
            wait = next(inference, None)
            if wait is None:
                if self._inference is inference:
                    self._inference = None
                    self.take_queue()
                return
            if wait.arm(lambda: self._advance(inference)):
                return

    def _infer(self, trigger: Trigger) -> _Inference:
        step = self._service.next_step(self._connection.number, trigger)
        opens = True
        while step is not None:
            if opens and not isinstance(step, Silence):
                self._send(*self._dialect.opening())
            match step:
                case Say():
                    yield from self._speak(step, trigger)
                    return
                case Silence():
                    self._end_turn(usage=step.usage)
                    return
                case Call() | Calls():
                    self._issue(step)
                    opens = not step.then_next
                case _:
                    raise TypeError(f"{step!r} cannot be played")
            if opens:
                trigger = "tool_response"
                yield from self._await_answers()
            step = self._service.next_step(self._connection.number, trigger)

    def _await_answers(self) -> _Inference:
        self._awaited = self.open_calls
        yield _Answers()
        if self._service.profile.tool_round == "two_turns":
            self._send(*self._dialect.after_answer())
            self._end_turn()

    def _speak(self, say: Say, trigger: Trigger) -> _Inference:
        context = tuple(self._connection.context)
        reply = Reply(connection=self._connection.number, trigger=trigger, context=context)
        self._reply = reply
        self._service.replies.append(reply)
        self._count_thoughts(say.thought)
        gate, chunks = say.gate, 0
        for piece in self._dialect.speech(say):
            if gate is not None and chunks == say.gate_after:
                yield gate
                gate = None
            if piece.audio and self._service.pace:
                yield _Pace(self._service.pace)
            self._utter(piece, reply)
            chunks += piece.audio
        if gate is not None:
            yield gate
        reply.completed = True
        self.learn(Entry("model", reply.text))
        self._send(self._dialect.generation_complete())
        if say.turn_gate is not None:
            yield say.turn_gate
        self._reply = None
        self._end_turn()

    def _utter(self, piece: Piece, reply: Reply) -> None:
        reply.text += piece.text
        self._turn.seconds += CHUNK_SECONDS * piece.audio
        self._send(piece.message)

    def _issue(self, step: Call | Calls) -> None:
        self._send(*self._dialect.thought(step.thought))
        self._count_thoughts(step.thought)
        if step.say_first:
            self._send(*self._words(step.say_first))
        if step.handle_first and self._resumable:
            self.issue_handle()
        calls = [
            IssuedCall(self._dialect.new_call_id(), name, args, self._connection.number)
            for name, args in step.calls
        ]
        for call in calls:
            self._calls[call.id] = call
            self.learn(Entry("call", f"{call.name} {call.args}", call.id))
            if call.name not in self._connection.declared_tools:
                self._service.journal.breach(
                    self._connection.number, f"the script calls {call.name}, which is not declared"
                )
        self._service.calls.extend(calls)
        self._turn.calls += len(calls)
        messages = [self._dialect.tool_call(calls)]
        if step.trailing:
            messages += self._words(step.trailing)
        if step.trailing_empty:
            messages.append(self._dialect.empty_transcription())
        if step.trailing_complete:
            messages.append(self._dialect.generation_complete())
        self._send(*messages, *(self._dialect.not_resumable() if self._resumable else ()))

    def _count_thoughts(self, summary: str) -> None:
        if self._service.profile.thoughts:
            self._turn.thoughts += len(summary.split())

    def _words(self, text: str) -> list[Message]:
        """Return the messages of words beside a call, which are no reply of their own."""
        chunks = Say("").chunks
        self.learn(Entry("model", text))
        self._turn.seconds += CHUNK_SECONDS * chunks
        return [piece.message for piece in self._dialect.words(text, chunks)]

    def _end_turn(self, *, usage: bool = True) -> None:
        prompt = 1 + sum(len(entry.text.split()) for entry in self._connection.context)
        counted = self._dialect.usage(
            prompt=prompt,
            seconds=self._turn.seconds,
            calls=self._turn.calls,
            thoughts=self._turn.thoughts,
        )
        self._turn = _Turn()
        self._send(self._dialect.turn_complete(counted if usage else None))
        if self._resumable and self._service.profile.handle_after_turn and not self.open_calls:
            self.issue_handle()
