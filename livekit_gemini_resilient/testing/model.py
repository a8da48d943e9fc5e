"""The scripted model of one connection.

Theory of operation. An inference is a generator that sends messages and yields where it has to
wait: at a gate, for the pace, for answers. It runs synchronously up to there, so whatever a client
frame causes has been written before the next frame is read. At most one inference runs. What
cannot be taken while it runs is queued and answered by one further inference; a response to a
non-blocking call by one of its own.

    idle ── input ──▶ generating ── turnComplete ──▶ idle, or the queue
                        │   ▲
            blocking call │ every blocking call answered
                        ▼   │
                    awaiting answers ── every call cancelled ──▶ turnComplete
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .calls import ConnectionCalls
from .dialect import Dialect, Message, Piece
from .records import Connection, Entry, IssuedCall, Reply, Trigger
from .script import Call, Calls, Say, Silence
from .service import Service
from .turn import Answers, Inference, Pace, Turn


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
        self._inference: Inference | None = None
        self._queue: list[tuple[Entry | None, Trigger]] = []
        self.calls = ConnectionCalls(service, connection, dialect.new_call_id)
        """The calls of this connection."""
        self.listens = False
        """Whether the model keeps silent because the caller speaks."""
        self._awaited: list[IssuedCall] = []
        self._reply: Reply | None = None
        self._turn = self._new_turn()

    @property
    def generating(self) -> bool:
        """Whether an inference runs and does not wait for answers."""
        return self._inference is not None and not self._awaited

    @property
    def swallows(self) -> bool:
        """Whether what is heard is lost: an exchange with an earlier connection is not closed."""
        return self._service.profile.foreign_response == "swallow" and bool(self.calls.lost)

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
            heard = [entry for entry, other in self._queue if other != "tool_response"]
            self._queue = [item for item in self._queue if item[1] == "tool_response"]
            self._start(trigger, heard)

    def respond(self, *, interrupts: bool) -> None:
        """Run an inference about a response to a call that is not awaited.

        Args:
            interrupts: whether it cuts in on one that generates; otherwise it waits until the
                model is idle.
        """
        if interrupts and self.generating:
            self.interrupt()
        self._queue.insert(0 if interrupts else len(self._queue), (None, "tool_response"))
        self.take_queue()

    def end_silently(self) -> None:
        """Complete a turn without content, if nothing runs."""
        if self._inference is None:
            self._end_turn()

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
        if self._inference is not None or self.listens or not self._queue:
            return
        taken = [self._queue.pop(0)]
        while self._queue and "tool_response" not in (taken[0][1], self._queue[0][1]):
            taken.append(self._queue.pop(0))
        self._start(taken[-1][1], [entry for entry, _ in taken])

    def cancel(self, calls: list[IssuedCall], *, interrupted: bool) -> None:
        """Take open calls back; with none left, and none answered, the turn ends."""
        for call in calls:
            call.cancelled = True
        if interrupted:
            self._send(self._dialect.interrupted())
        self._send(self._dialect.cancellation(calls))
        if not self._awaited or self.calls.blocking:
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
        if not self._awaited or self.calls.blocking or self._inference is None:
            return
        self._awaited = []
        cadence = self._service.profile.handle_after_tool_response
        if cadence == "always" or (cadence == "asked" and self._resumable):
            self.issue_handle()
        self._advance(self._inference)

    def issue_handle(self, *, always: bool = False) -> str | None:
        """Send a handle for what the model knows.

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
            self.calls.open,
            self._service.journal.now(),
        )
        self._connection.handles.append(handle)
        self._send(self._dialect.handle(handle))
        return handle

    def restore(self, pending: Iterable[IssuedCall]) -> None:
        """Wait for the answers to calls of an earlier connection."""
        self.calls.restore(pending)
        if self.calls.blocking:
            self._inference = self._infer("tool_response", awaits=True)
            self._advance(self._inference)

    def stall(self) -> None:
        """Stop in mid-sentence, without a word about it. The next input is answered."""
        if self._reply is not None and not self._reply.completed:
            self.learn(Entry("model", self._reply.text))
        self._inference, self._reply, self._awaited = None, None, []
        self._turn = self._new_turn()

    def stop(self) -> None:
        """Forget what was running: the connection is gone."""
        self._inference = None
        self.calls.lose()

    def _start(self, trigger: Trigger, heard: Iterable[Entry | None]) -> None:
        self.learn(*(entry for entry in heard if entry is not None))
        if self._connection.poisoned:
            return
        self._inference = self._infer(trigger)
        self._advance(self._inference)

    def _advance(self, inference: Inference) -> None:
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

    def _infer(self, trigger: Trigger, *, awaits: bool = False) -> Inference:
        if awaits:
            yield from self._await_answers()
        opens = True
        while (step := self._service.next_step(self._connection.number, trigger)) is not None:
            if opens and not isinstance(step, Silence):
                self._send(*self._dialect.opening())
            match step:
                case Say():
                    yield from self._speak(step, trigger)
                    if not step.in_progress:
                        return
                case Silence():
                    self._end_turn(usage=step.usage)
                    return
                case Call() | Calls():
                    self._issue(step)
                    if step.then_next:
                        opens = False
                    elif self.calls.blocking:
                        trigger, opens = "tool_response", True
                        yield from self._await_answers()
                    elif step.goes_on:
                        opens = False
                    else:
                        self._end_calling(step)
                        return
                case _:
                    raise TypeError(f"{step!r} cannot be played")

    def _await_answers(self) -> Inference:
        self._awaited = self.calls.blocking
        yield Answers()
        if self._service.profile.tool_round == "two_turns":
            self._send(*self._dialect.after_answer())
            self._end_turn()

    def _end_calling(self, step: Call | Calls) -> None:
        """End a turn that has issued nothing to wait for."""
        if not step.trailing_complete:
            self._send(self._dialect.generation_complete())
        self._end_turn()

    def _speak(self, say: Say, trigger: Trigger) -> Inference:
        context = tuple(self._connection.context)
        reply = Reply(connection=self._connection.number, trigger=trigger, context=context)
        self._reply = reply
        self._service.replies.append(reply)
        self._turn.think(say.thought)
        gate, chunks = say.gate, 0
        for piece in self._dialect.speech(say):
            if gate is not None and chunks == say.gate_after:
                yield gate
                gate = None
            if piece.audio and self._service.pace:
                yield Pace(self._service.pace)
            self._utter(piece, reply)
            chunks += piece.audio
            if piece.audio and chunks == 1:
                self._issue_mid_answer()
        if gate is not None:
            yield gate
        reply.completed = True
        self.learn(Entry("model", reply.text))
        self._send(self._dialect.generation_complete())
        if say.turn_gate is not None:
            yield say.turn_gate
        self._reply = None
        self._end_turn(in_progress=say.in_progress)

    def _utter(self, piece: Piece, reply: Reply) -> None:
        reply.text += piece.text
        self._turn.speak(piece.audio)
        self._send(*self._dialect.blank(), piece.message)

    def _issue(self, step: Call | Calls) -> None:
        self._send(*self._dialect.thought(step.thought))
        self._turn.think(step.thought)
        if step.say_first:
            self._send(*self._words(step.say_first))
        if step.handle_first and self._resumable:
            self.issue_handle()
        calls = self.calls.issue(step.calls)
        self._turn.call(len(calls))
        messages = self._dialect.deliveries(calls, step.delivery)
        if step.trailing:
            messages += self._words(step.trailing)
        if step.trailing_empty:
            messages.append(self._dialect.empty_transcription())
        if step.trailing_complete:
            messages.append(self._dialect.generation_complete())
        self._send(*messages, *(self._dialect.not_resumable() if self._resumable else ()))
        self._issue_mid_answer()

    def _issue_mid_answer(self) -> None:
        if self._resumable and self._service.profile.handle_mid_answer:
            self.issue_handle()

    def _words(self, text: str) -> list[Message]:
        """Return the messages of words beside a call, which are no reply of their own."""
        chunks = Say("").chunks
        self.learn(Entry("model", text))
        self._turn.speak(chunks)
        return [piece.message for piece in self._dialect.words(text, chunks)]

    def _new_turn(self) -> Turn:
        return Turn(self._dialect)

    def _end_turn(self, *, usage: bool = True, in_progress: bool = False) -> None:
        counted = self._turn.usage(self._connection.context) if usage else None
        self._turn = self._new_turn()
        busy = in_progress or bool(self.calls.open)
        self._send(self._dialect.turn_complete(counted, in_progress=busy))
        profile = self._service.profile
        if (
            self._resumable
            and profile.handle_after_turn
            and (not busy or profile.handle_mid_answer)
        ):
            self.issue_handle()
