"""A Gemini Live server as a pure model: what is written goes in, frames come out.

It shares no code with the core but the two vocabularies (events and effects), and judges from its
own memory: what each connection was asked, told and heard to say. A *token* such as ``<c1=42>``
stands for a result; it is found again in whatever text carries it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from livekit_gemini_resilient.core.effects import (
    Effect,
    SendContent,
    SendInput,
    SendText,
    SendToolResponse,
)
from livekit_gemini_resilient.core.events import ServerFrame, ToolCall

CUT = "client content cut a reply that the caller heard"

_NOTICE = "[system notice]"

_HISTORY = f"{_NOTICE} Earlier"

_QUOTE = re.compile(r'You had begun to answer: "[^"]*"')

_TOKEN = re.compile(r"<[^<>]+>")


def tokens(text: str) -> tuple[str, ...]:
    """The tokens in a text, each once, in order."""
    return tuple(dict.fromkeys(_TOKEN.findall(text)))


@dataclass(eq=False)
class Reply:
    """Something that the model said."""

    connection: int
    about: tuple[str, ...]
    text: str
    begun: bool = False
    done: bool = False


@dataclass
class Connection:
    """What one connection was told, and what it waits for."""

    context: list[str]
    handle: str | None
    is_up: bool = True
    waiting: dict[str, ToolCall] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    issued: set[str] = field(default_factory=set)
    written: list[Effect] = field(default_factory=list)
    unconsumed: list[str] = field(default_factory=list)
    in_history: bool = False

    @property
    def responses(self) -> list[str]:
        """Ids of the function responses that it got, in order."""
        return [
            result.call_id
            for effect in self.written
            if isinstance(effect, SendToolResponse)
            for result in effect.results
        ]

    @property
    def prompts(self) -> list[str]:
        """Texts of ours that asked it to speak."""
        return [
            _text(effect)
            for effect in self.written
            if isinstance(effect, SendText)
            or (isinstance(effect, SendContent) and effect.turn_complete)
        ]

    @property
    def text(self) -> str:
        """Its context in one string."""
        return "\n".join(self.context)


@dataclass
class _Outgoing:
    connection: int
    frame: ServerFrame
    reply: Reply | None = None


def _text(effect: SendContent | SendText) -> str:
    if isinstance(effect, SendText):
        return effect.text
    return "\n".join(str(part) for turn in effect.turns for part in turn.parts)


class Server:
    """The service and its model.

    Args:
        foreign: What follows a response to a call of an earlier connection: ``ignored``,
            ``answered`` (the model speaks to it) or ``empty`` (an empty turn).
            Or ``refused``: it closes the connection with 1007.
        blocks: The model says nothing while a call is open.
        content: When client content is taken: ``any`` time, or as ``initial`` history only; else
            it closes the connection with 1007.
    """

    def __init__(
        self, *, foreign: str = "ignored", blocks: bool = True, content: str = "any"
    ) -> None:
        self.foreign = foreign
        self.blocks = blocks
        self.content = content
        self.refusing: int | None = None
        self.mute = False
        self.is_requested = False
        self.connections: dict[int, Connection] = {}
        self.replies: list[Reply] = []
        self.faults: list[str] = []
        self._stuck: list[Reply] = []
        self._snapshots: dict[str, tuple[str, ...]] = {}
        self._outbox: deque[_Outgoing] = deque()
        self._count = 0

    # ------------------------------------------------------------ connections

    def open(self, number: int, handle: str | None, *, announces_history: bool = False) -> None:
        """A connection is set up, from a snapshot or from nothing."""
        if any(connection.is_up for connection in self.connections.values()):
            self.faults.append("dialed while the earlier connection was open")
        context = list(self._snapshots[handle]) if handle is not None else []
        self.connections[number] = Connection(
            context=context, handle=handle, in_history=announces_history
        )

    def close(self, number: int) -> None:
        """A connection ends; what was not delivered is gone."""
        if number in self.connections:
            self.connections[number].is_up = False
        self._outbox = deque(out for out in self._outbox if out.connection != number)

    @property
    def live(self) -> Connection:
        """The connection that is up, or was up last."""
        return self.connections[max(self.connections)]

    # ------------------------------------------------------------ what the server does

    def next_frame(self) -> ServerFrame | None:
        """Take the next frame on its way to the client."""
        if not self._outbox:
            return None
        out = self._outbox.popleft()
        connection = self.connections[out.connection]
        news = [c for c in out.frame.calls if c.call_id not in connection.seen]
        connection.seen.update(c.call_id for c in out.frame.calls)
        if out.frame.calls and not out.frame.calls_refused:
            # what was said before a call was said
            for reply in self.replies:
                said = reply.begun and reply.connection == out.connection
                reply.done = reply.done or (said and reply not in self._stuck)
        if out.frame.audio or (news and not out.frame.calls_refused):
            connection.unconsumed.clear()
        if out.reply is not None and out.frame.text:
            out.reply.begun = True
            connection.context.append("model: " + out.reply.text)
        if out.reply is not None and out.frame.generation_complete:
            out.reply.done = True
        return out.frame

    def send(self, number: int, reply: Reply | None = None, **fields: object) -> None:
        """Put a frame on its way."""
        frame = ServerFrame(connection=number, **fields)  # type: ignore[arg-type]
        self._outbox.append(_Outgoing(number, frame, reply))

    def hear(self, number: int, words: str, *, answer: bool = True) -> None:
        """The caller said something."""
        self.connections[number].context.append("user: " + words)
        if any(r.begun and not r.done and r.connection == number for r in self._stuck):
            self.interrupt(number)
        self._stuck.clear()
        self.send(number, user_words=words)
        if answer:
            self.speak(number, self.unsaid(number))

    def call(
        self,
        number: int,
        *calls: ToolCall,
        refused: str | None = None,
        removed: frozenset[str] = frozenset(),
    ) -> None:
        """The model calls functions, in one message; ``tool_choice="none"`` refuses them all, and
        those that were removed are refused by name."""
        connection = self.connections[number]
        for call in calls:
            connection.waiting[call.call_id] = call
            connection.issued.add(call.call_id)
        self.send(number, calls=calls, calls_refused=refused, removed_functions=removed)

    def cancel(self, number: int, *call_ids: str) -> None:
        """The model does not want these answers any more."""
        for call_id in call_ids:
            self.connections[number].waiting.pop(call_id, None)
        self.send(number, cancelled=call_ids)

    def snapshot(self, number: int) -> str:
        """Issue a handle: what was consumed so far, without open calls."""
        self._count += 1
        handle = f"handle-{self._count}"
        connection = self.connections[number]
        consumed = (line for line in connection.context if line not in connection.unconsumed)
        self._snapshots[handle] = tuple(consumed)
        self.send(number, handle=handle)
        return handle

    def speak(self, number: int, about: Iterable[str]) -> None:
        """The model speaks, as soon as it waits for nothing."""
        if self.mute or (self.blocks and self.connections[number].waiting):
            return
        self._count += 1
        about = tuple(about)
        reply = Reply(number, about, " ".join((f"s{self._count}.", *about)))
        self.replies.append(reply)
        self.send(number, reply, audio=(b"\x00\x00",), text=reply.text)
        self.send(number, reply, audio=(b"\x00\x00",))
        self.send(number, reply, generation_complete=True)
        self.send(number, reply, turn_complete=True)

    # ------------------------------------------------------------ what is written to it

    def write(self, number: int, effect: Effect) -> None:
        """The client wrote something."""
        connection = self.connections[number]
        if not connection.is_up or self.refusing == number:
            return
        if self._refuses(connection, effect):
            self.refusing = number
            return
        if isinstance(effect, SendToolResponse):
            self._respond(number, connection, effect)
        elif isinstance(effect, SendContent | SendText):
            self._content(number, connection, effect)
        elif not isinstance(effect, SendInput):
            raise AssertionError(f"{effect} is not a frame")
        connection.written.append(effect)

    def _refuses(self, connection: Connection, effect: Effect) -> bool:
        if isinstance(effect, SendContent):
            return self.content == "initial" and not connection.in_history
        if isinstance(effect, SendToolResponse) and self.foreign == "refused":
            return any(result.call_id not in connection.issued for result in effect.results)
        return False

    def _check_order(self, connection: Connection, call_id: str) -> None:
        """Without ids, a response is taken for that of the first open call of its function."""
        call = connection.waiting.get(call_id)
        if call is None or call.has_id:
            return
        first = next(c for c in connection.waiting.values() if c.name == call.name)
        if first is not call:
            self.faults.append(f"{call_id} was taken for {first.call_id}")

    def _respond(self, number: int, connection: Connection, effect: SendToolResponse) -> None:
        own = False
        for result in effect.results:
            if result.call_id in connection.responses and result.call_id not in connection.waiting:
                self.faults.append(f"{result.call_id} was answered twice on {number}")
            self._check_order(connection, result.call_id)
            if connection.waiting.pop(result.call_id, None) is not None:
                own = True
            elif result.call_id in connection.issued or self.foreign != "answered":
                continue
            connection.context.append("result: " + result.output)
        if own or self.foreign == "answered":
            self.speak(number, self.unsaid(number))
        elif self.foreign == "empty":
            self.send(number, turn_complete=True)

    def _interrupt(self, number: int, *, on_purpose: bool) -> None:
        """Client content stops whatever is being generated (documented); ``generate_reply`` may."""
        connection = self.connections[number]
        for call_id in set(connection.waiting) - connection.seen:
            del connection.waiting[call_id]
        self._outbox = deque(
            out
            for out in self._outbox
            if not out.frame.calls or all(c.call_id in connection.seen for c in out.frame.calls)
        )
        cut = [out.reply for out in self._outbox if out.connection == number and out.reply]
        if not cut:
            return
        if not on_purpose and any(reply.begun and not reply.done for reply in cut):
            self.faults.append(CUT)
        self._outbox = deque(out for out in self._outbox if out.reply not in cut)
        self.send(number, interrupted=True)
        self.send(number, turn_complete=True)

    def interrupt(self, number: int, *, ends: bool = True) -> None:
        """The caller stops the model: what it was saying is over."""
        self._outbox = deque(o for o in self._outbox if o.connection != number or not o.reply)
        self.send(number, interrupted=True)
        if ends:
            self.send(number, turn_complete=True)

    def freeze(self) -> None:
        """What the model was saying stops, and no frame says so."""
        self._stuck += [out.reply for out in self._outbox if out.reply]
        self._outbox = deque(out for out in self._outbox if not out.reply)

    def unsaid(self, number: int) -> list[str]:
        """Results that this connection knows and the model has not spoken about."""
        text = self.connections[number].text
        queued = {
            t for o in self._outbox if o.connection == number and o.reply for t in o.reply.about
        }
        return [t for t in tokens(text) if t not in queued and not self._said(t, text)]

    @staticmethod
    def _said(token: str, context: str) -> bool:
        # its own words, or those that a notice gives back to it
        own = (line for line in context.splitlines() if line.startswith(("model: ", "You: ")))
        return any(token in line for line in own)

    def _content(self, number: int, connection: Connection, effect: SendContent | SendText) -> None:
        asks = isinstance(effect, SendText) or effect.turn_complete
        if connection.in_history:
            # until its end is marked, content is history and starts no inference (documented)
            connection.in_history = False
            asks = isinstance(effect, SendText)
        if self.blocks and connection.seen.intersection(connection.waiting):
            self.faults.append("client content while a call was open")
        text = _text(effect)
        if isinstance(effect, SendText) and not tokens(text) and self.faults[-1:] == [CUT]:
            # the history went out ahead of a ``generate_reply``
            self.faults.pop()
        news = "\n".join(line for line in text.splitlines() if _HISTORY not in line)
        on_purpose = self.is_requested or (asks and not tokens(news))
        self._interrupt(number, on_purpose=on_purpose)
        if isinstance(effect, SendText):
            lines = ["user: " + effect.text]
        else:
            words = [" ".join(str(part) for part in turn.parts) for turn in effect.turns]
            lines = [f"{turn.role}: {said}" for turn, said in zip(effect.turns, words, strict=True)]
        connection.context += lines
        connection.unconsumed += lines
        if asks:
            told = news.rpartition(_NOTICE)[2] if _NOTICE in news else ""
            notice = tokens(_QUOTE.sub("", told))
            self.speak(number, dict.fromkeys((*self.unsaid(number), *notice)))
