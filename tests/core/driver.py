"""Drives a ``Conversation`` against the pure server, step by step, with a hand-set clock.

Stands in for the adapter and for the framework: carries out effects, keeps the chat context, runs
no tool by itself. Checks after every effect what must hold at all times.
"""

from __future__ import annotations

from itertools import count

from livekit_gemini_resilient.core.behaviour import Observed
from livekit_gemini_resilient.core.conversation import Conversation
from livekit_gemini_resilient.core.effects import (
    CloseConnection,
    Dial,
    Effect,
    EndGeneration,
    FailReply,
    OpenGeneration,
    Outcome,
    PushAudio,
    PushCall,
    PushText,
    ReportError,
    ReportOutcome,
    ReportReconnected,
    ReportSpeechStarted,
    SendContent,
    SendInput,
    SendRequest,
    SendText,
    SendToolResponse,
    Transcribe,
)
from livekit_gemini_resilient.core.errors import ResilienceError
from livekit_gemini_resilient.core.events import (
    AudienceChanged,
    Connected,
    ConnectionLost,
    ContextUpdated,
    Event,
    GenerationSkipped,
    HistoryItem,
    InputPushed,
    ItemKind,
    RestartCause,
    RestartRequested,
    SetupBuilt,
    ToolCall,
    ToolResult,
)
from livekit_gemini_resilient.options import ResilienceOptions

from .server import Reply, Server


def call(call_id: str, name: str = "lookup") -> ToolCall:
    """A call with arguments of its own."""
    return ToolCall(call_id=call_id, name=name, arguments=f'{{"q": "{call_id}"}}')


def result(call_id: str, *, reply: bool = True) -> ToolResult:
    """A result whose token is ``<id=42>``."""
    return ToolResult(
        call_id=call_id, name="lookup", output=f"<{call_id}=42>", reply_required=reply
    )


class Driver:
    """One conversation, its server and its framework.

    Args:
        options: Options of the conversation.
        foreign: See ``Server``.
        content: See ``Server``.
        tools_block: What the setups declare, and the model does.
        handle: See ``Conversation``.
        max_retry: See ``Conversation``.
        may_stay_silent: See ``Conversation``.
        final_at_reply: See ``Speech``.
        observed: See ``Conversation``.
    """

    def __init__(
        self,
        options: ResilienceOptions | None = None,
        *,
        foreign: str = "ignored",
        content: str = "any",
        tools_block: bool = True,
        handle: str | None = None,
        max_retry: int = 3,
        may_stay_silent: bool = False,
        final_at_reply: bool = False,
        observed: Observed | None = None,
    ) -> None:
        ids = count(1)
        self.options = options or ResilienceOptions()
        self.conversation = Conversation(
            self.options,
            new_id=lambda prefix: f"{prefix}{next(ids)}",
            random=lambda: 0.5,
            handle=handle,
            max_retry=max_retry,
            may_stay_silent=may_stay_silent,
            final_at_reply=final_at_reply,
            observed=observed,
        )
        self.server = Server(foreign=foreign, blocks=tools_block, content=content)
        self.now = 0.0
        self.items: list[HistoryItem] = []
        self.dial: Dial | None = None
        self.up: int | None = None
        self.closing: int | None = None
        self.dials = 0
        self.reconnects: list[ReportReconnected] = []
        self.called: list[ToolCall] = []
        self.outcomes: list[tuple[str, Outcome]] = []
        self.errors: list[tuple[ResilienceError, bool]] = []
        self.failed: list[int] = []
        self.answered: list[int] = []
        self.ended: list[tuple[str, bool]] = []
        self.speech_starts = 0
        self.listening = True
        self._announces = False
        self.skipped: set[int] = set()
        self._skipping: list[int] = []
        self.written: list[Effect] = []
        self._open: tuple[int, str] | None = None
        self._spoken = ""
        self._carry_out(self.conversation.start())

    # ------------------------------------------------------------ the adapter

    def feed(self, event: Event) -> list[Effect]:
        """Something happened."""
        return self._carry_out(self.conversation.receive(event, now=self.now))

    def _carry_out(self, effects: list[Effect]) -> list[Effect]:
        for effect in effects:
            self._run(effect)
        while self._skipping:
            self.feed(GenerationSkipped(generation=self._skipping.pop()))
        refusing, self.server.refusing = self.server.refusing, None
        if refusing is not None and refusing == self.up:
            self.lose(1007)
        return effects

    def _run(self, effect: Effect) -> None:
        match effect:
            case SendToolResponse() | SendContent() | SendText() | SendInput():
                assert self.up is not None, f"{effect} was written to no connection"
                self.written.append(effect)
                self.server.write(self.up, effect)
            case SendRequest(frame=frame):
                self.server.is_requested = True
                self._run(frame)
                self.server.is_requested = False
            case Dial():
                assert self.up is None, "dialed while a connection was up"
                assert self.closing is None, "dialed while a connection was closing"
                self.dial = effect
                self.dials += 1
            case CloseConnection(connection=number):
                assert self.up == number, "closed a connection that was not up"
                self.up, self.closing = None, number
            case OpenGeneration(generation=number, response_id=response_id, request=request):
                assert self._open is None, "two generations open"
                self._open, self._spoken = (number, response_id), ""
                if request is not None:
                    self.answered.append(request)
                elif not self.listening:
                    self._skipping.append(number)
                    self.skipped.add(number)
            case PushAudio(generation=number) | PushCall(generation=number):
                assert self._open is not None
                assert self._open[0] == number
                if isinstance(effect, PushCall) and number not in self.skipped:
                    self.called.append(effect.call)
                    item = HistoryItem(
                        item_id="call-" + effect.call.call_id, kind=ItemKind.CALL, call=effect.call
                    )
                    self.items.append(item)
            case PushText(generation=number, text=text):
                assert self._open is not None
                assert self._open[0] == number
                self._spoken += text
            case EndGeneration(generation=number, interrupted=interrupted):
                assert self._open is not None
                assert self._open[0] == number
                if self._spoken:
                    self._message(self._open[1], "model", self._spoken)
                self.ended.append((self._spoken, interrupted))
                self._open = None
            case Transcribe(item_id=item_id, text=text, is_final=True):
                self._message(item_id, "user", text)
            case ReportOutcome(call_id=call_id, outcome=outcome):
                self.outcomes.append((call_id, outcome))
            case ReportError(error=error, recoverable=recoverable):
                self.errors.append((error, recoverable))
            case ReportReconnected():
                self.reconnects.append(effect)
            case FailReply(request=request):
                self.failed.append(request)
            case ReportSpeechStarted():
                self.speech_starts += 1

    def _message(self, item_id: str, role: str, text: str) -> None:
        item = HistoryItem(item_id=item_id, kind=ItemKind.MESSAGE, role=role, parts=(text,))
        for index, old in enumerate(self.items):
            if old.item_id == item_id:
                self.items[index] = item
                return
        self.items.append(item)

    # ------------------------------------------------------------ connections

    def connect(self) -> None:
        """The dial that is waiting succeeds."""
        dial = self._dialing()
        self._set_up(dial)
        self.opens(dial)

    def build_setup(self) -> Dial:
        """The dial that is waiting has made its setup message and goes on."""
        dial = self._dialing()
        self._set_up(dial)
        return dial

    def _set_up(self, dial: Dial) -> None:
        self._announces = self.conversation.announces_history
        self.feed(
            SetupBuilt(
                connection=dial.connection,
                tools_block=self.server.blocks,
                announces_history=self._announces,
            )
        )

    def opens(self, dial: Dial) -> None:
        """The server answers a setup."""
        self.server.open(dial.connection, dial.handle, announces_history=self._announces)
        self.up = dial.connection
        self.feed(Connected(connection=dial.connection, items=tuple(self.items)))

    def fail_dial(self, code: int | None = None) -> None:
        """The dial that is waiting fails."""
        dial = self._dialing()
        self._set_up(dial)
        self.feed(ConnectionLost(connection=dial.connection, code=code))

    def _dialing(self) -> Dial:
        assert self.dial is not None, "nothing is being dialed"
        dial, self.dial = self.dial, None
        self.now += dial.delay
        return dial

    def finish_close(self) -> None:
        """The closing handshake is over."""
        assert self.closing is not None, "nothing is being closed"
        number, self.closing = self.closing, None
        self.server.close(number)
        self.feed(ConnectionLost(connection=number))

    def lose(
        self, code: int | None = 1011, *, unsent: tuple[InputPushed, ...] = ()
    ) -> list[Effect]:
        """The connection drops, before some input was written."""
        assert self.up is not None
        number, self.up = self.up, None
        self.server.close(number)
        return self.feed(ConnectionLost(connection=number, code=code, unsent=unsent))

    # ------------------------------------------------------------ time and delivery

    def deliver(self, frames: int | None = None) -> None:
        """Deliver what the server has on its way, or some frames of it; a closing socket is not
        read any more."""
        while self.up is not None and (frames is None or frames > 0):
            frame = self.server.next_frame()
            if frame is None:
                return
            self.feed(frame)
            frames = None if frames is None else frames - 1

    def advance(self) -> bool:
        """Let the next deadline pass; ``False`` if there is none."""
        deadline = self.conversation.next_deadline
        if deadline is None:
            return False
        self.now = max(self.now, deadline)
        self._carry_out(self.conversation.advance(now=self.now))
        return True

    def elapse(self, seconds: float) -> None:
        """Time passes, deadlines fire; nothing else happens."""
        until = self.now + seconds
        for _ in range(50):
            deadline = self.conversation.next_deadline
            if deadline is None or deadline > until:
                self.now = until
                return
            self.advance()
        raise AssertionError("the conversation keeps waking up")

    def settle(self) -> None:
        """Everything that is under way comes to its end, timers included."""
        for _ in range(100):
            self.deliver()
            if self.closing is not None:
                self.finish_close()
            elif self.dial is not None:
                self.connect()
            elif not self.advance():
                return
        raise AssertionError("the conversation does not come to rest")

    # ------------------------------------------------------------ the framework

    def request_restart(self, cause: RestartCause, *, unusable: str | None = None) -> None:
        """A setting changed."""
        self.feed(RestartRequested(cause=cause, unusable=unusable))

    def returns(self, *results: ToolResult) -> None:
        """Tools return, in one context update."""
        for value in results:
            self.items.append(
                HistoryItem(item_id="output-" + value.call_id, kind=ItemKind.OUTPUT, result=value)
            )
        self.feed(ContextUpdated(items=tuple(self.items), leaving=not self.listening))

    def adds(self, item_id: str, role: str, text: str) -> None:
        """The framework adds a message."""
        self._message(item_id, role, text)
        self.feed(ContextUpdated(items=tuple(self.items)))

    def leaves(self) -> None:
        """The agent is being replaced: it takes no generation any more."""
        self.listening = False

    def enters(self) -> None:
        """The next agent listens, and hands over its context."""
        self.listening = True
        self.feed(AudienceChanged())
        self.feed(ContextUpdated(items=tuple(self.items)))

    # ------------------------------------------------------------ what came of it

    def replies(self, token: str) -> list[Reply]:
        """Completed replies about a result."""
        return [r for r in self.server.replies if r.done and token in r.about]

    def outcome(self, call_id: str) -> list[Outcome]:
        """What was reported of a result."""
        return [outcome for known, outcome in self.outcomes if known == call_id]
