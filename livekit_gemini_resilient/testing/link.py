"""The server's end of one connection: dial, setup, faults and the ways it ends."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Callable
from typing import Any, Literal

from .dialect import Message, setup_complete
from .faults import Faults, Trap
from .intake import Intake, Reaction
from .records import Closed, Connection, IssuedCall
from .rules import check_form, check_setup, declared_behaviors, declared_tools
from .service import Service
from .transport import WebSocket
from .wire import Refused, frame_kind, read_frame

_PATHS = {
    "gemini": re.compile(
        r"(/.*)?/ws/google\.ai\.generativelanguage\.(v1|v1beta|v1alpha)\.GenerativeService"
        r"\.BidiGenerateContent(Constrained)?"
    ),
    "vertex": re.compile(
        r"(/.*)?/ws/google\.cloud\.aiplatform\.(v1|v1beta1)\.LlmBidiService/BidiGenerateContent"
    ),
}
"""Paths of the two APIs as the SDK dials them (measured); a base path may precede them."""

_INTERNAL = 1011
"""Close code for a resume while the earlier socket is open (observed)."""

_SHOWN = 160
"""Characters of a frame shown in the timeline."""


class Link:
    """One connection.

    Args:
        service: what the connections share.
        faults: what is armed.
        opened: called when the TCP connection stands.
    """

    def __init__(self, service: Service, faults: Faults, opened: Callable[[Link], None]) -> None:
        self.socket = WebSocket(self)
        self.record = Connection(number=0)
        self.intake: Intake | None = None
        """``None`` until the setup has been answered."""
        self._service = service
        self._faults = faults
        self._opened = opened
        self._pending: tuple[IssuedCall, ...] = ()
        self._timers: list[asyncio.TimerHandle] = []
        self._muted = False

    # What happens on the socket.

    def opened(self) -> None:
        """Note that the TCP connection stands."""
        self._opened(self)

    def dialed(self, path: str) -> tuple[int, str] | None:
        """Decide about the upgrade."""
        path = re.sub("/+", "/", path.split("?")[0])
        api = self._service.profile.api
        refusals = self._faults.refusals
        if refusals is not None and refusals.refuses(upgrade=True):
            self._log("refused a dial", f"HTTP {refusals.code}")
            return refusals.code, refusals.reason
        if not _PATHS[api].fullmatch(path):
            self._log("refused a dial", f"HTTP 404 {path}")
            return 404, f"this simulator serves the {api} API (see the profile), not {path}\n"
        self._service.connections.append(self.record)
        self.record.number = len(self._service.connections)
        self._log("dialed", path)
        return None

    def received(self, payload: bytes) -> None:
        """Consume a frame and react to it."""
        if self._ending:
            self._log("discarded a frame", "the connection is closing")
            return
        try:
            self._receive(read_frame(payload))
        except Refused as refusal:
            if refusal.blamed:
                self._service.journal.breach(self.record.number, refusal.why, refusal.code)
            else:
                self._log("refuses", refusal.why)
            self.close(refusal.code, refusal.reason)
        except Exception as error:
            self._service.journal.breach(self.record.number, f"the simulator failed: {error!r}")
            raise
        self._service.journal.notify()

    def close_received(self, code: int, reason: str) -> None:
        """Answer the client's close frame, unless that is held."""
        self.record.closing = True
        self._stop()

        def answer() -> None:
            self.socket.answer_close()
            self._end(code, reason, "client")

        held = self._faults.closes is not None and self._faults.closes.stop(answer)
        self._log("client closes", f"{code} {reason}".rstrip() + (" (held)" if held else ""))
        if not held:
            answer()

    def pong_held(self, let_go: Callable[[], None]) -> bool:
        """Hold a pong back if pongs are held."""
        held = self._faults.pongs is not None and self._faults.pongs.stop(let_go)
        if held:
            self._log("holds a pong")
        return held

    def lost(self) -> None:
        """Note that the socket is gone."""
        if self.record.number:
            self._end(1006, "", "client")

    # What the server does.

    def send(self, *messages: Message) -> None:
        """Send messages in one write; nothing once the connection is closing."""
        if not messages or self._ending:
            return
        self.socket.send(*(json.dumps(message).encode() for message in messages))
        for message in messages:
            self._log(f"sent {_named(message)}", _shortened(message))

    def send_raw(self, payload: bytes | str) -> None:
        """Send a message of any content."""
        raw = payload.encode() if isinstance(payload, str) else payload
        self.socket.send(raw, text=isinstance(payload, str))
        self._log("sent raw", f"{payload!r:.{_SHOWN}}")

    def close(self, code: int, reason: str) -> None:
        """Close from the server's side."""
        self.socket.close(code, reason)
        self._end(code, reason, "server")

    def mute(self) -> None:
        """Go on reading, and never react again."""
        self._muted = True
        if self.intake is not None:
            self.intake.model.stall()

    def abort(self, half_of: Message | None = None) -> None:
        """Cut TCP, possibly within a message."""
        if half_of is not None:
            self.socket.abort_within(json.dumps(half_of).encode())
        else:
            self.socket.abort()
        self._end(1006, "", "server")

    def _receive(self, frame: dict[str, Any]) -> None:
        self.record.frames.append(frame)
        self._log(f"received {frame_kind(frame)}", _shortened(frame))
        trap = self._faults.trap_for(frame)
        reaction = None if trap is not None and not trap.after else self._consume(frame)
        if trap is not None:
            self._break(trap)
        elif reaction is not None:
            reaction()

    def _consume(self, frame: dict[str, Any]) -> Reaction:
        if self._muted:
            return None
        check_form(frame)
        (kind, body), *_ = frame.items()
        if kind == "setup":
            if self.record.setup:
                raise Refused("a second setup")
            return self._set_up(body)
        if not self.record.setup:
            raise Refused(f"{kind} before the setup")
        if self.intake is None:
            self._service.journal.breach(self.record.number, f"{kind} before setupComplete")
            return None
        return self.intake.consume(kind, body)

    def _set_up(self, setup: dict[str, Any]) -> Reaction:
        self.record.setup = setup
        self.record.declared_tools = declared_tools(setup.get("tools"))
        self.record.behaviors = declared_behaviors(setup.get("tools"))
        refusals = self._faults.refusals
        if refusals is not None and refusals.refuses(upgrade=False):
            return lambda: self.close(refusals.code, refusals.reason)
        profile = self._service.profile
        check_setup(profile, setup)
        self._resume((setup.get("session_resumption") or {}).get("handle"))
        fields = setup.keys() | (setup.get("generation_config") or {}).keys()
        if unanswered := fields & profile.unanswered_setup:
            self._log("leaves the setup unanswered", ", ".join(sorted(unanswered)))
            return None
        if self._faults.dials is not None and self._faults.dials.stop(self._accept):
            self._log("holds the dial")
            return None
        return self._accept

    def _resume(self, handle: str | None) -> None:
        self.record.conversation = str(uuid.uuid4())
        if not handle:
            return
        self.record.resumed_from = handle
        handles = self._service.handles
        snapshot = handles.recall(handle)
        if snapshot is None:
            # Observed once, for a resume on 3.8; no report names the code for others.
            raise Refused("a handle that this server never issued")
        if handles.forgotten(handle) or self._service.expired(snapshot):
            raise Refused("a handle that is no longer good", blamed=False)
        for other in self._service.connections:
            if other.conversation == snapshot.conversation and other.closed is None:
                raise Refused(
                    f"resumed while connection {other.number} of the conversation is open",
                    code=_INTERNAL,
                    reason="An earlier connection of the session is still open.",
                )
        self.record.conversation = snapshot.conversation
        keeps = self._service.profile.resume_keeps_pending_call == "if_handle_after_call"
        self._pending = snapshot.pending if keeps else ()
        self.record.context = snapshot.known(keeps_pending=keeps)
        self.record.restored = len(self.record.context)
        self.record.poisoned = handles.poisoned(handle)

    def _accept(self) -> None:
        if self._ending:
            return
        self.intake = Intake(self._service, self.record, self.send)
        self.record.accepted = True
        self.send(setup_complete(self._service.profile))
        if self._service.profile.handle_after_setup:
            self.intake.model.issue_handle()
        self.intake.model.restore(self._pending)
        self._limit_lifetime()

    def _limit_lifetime(self) -> None:
        profile = self._service.profile
        if profile.connection_lifetime is None:
            return
        lead = min(profile.go_away_lead, profile.connection_lifetime)
        notice = {"goAway": {"timeLeft": f"{lead:g}s"}}
        loop = asyncio.get_running_loop()
        self._timers = [
            loop.call_later(profile.connection_lifetime - lead, self.send, notice),
            loop.call_later(profile.connection_lifetime, self.close, *profile.lifetime_close),
        ]

    # Ends.

    @property
    def _ending(self) -> bool:
        return self.record.closing or self.record.closed is not None

    def _break(self, trap: Trap) -> None:
        self._log("a trap springs", trap.kind)
        if trap.code is None:
            self.abort()
        else:
            self.close(trap.code, trap.reason)

    def _end(self, code: int, reason: str, by: Literal["client", "server"]) -> None:
        if self.record.closed is not None:
            return
        self.record.closed = Closed(code, reason, by)
        self._service.ended[self.record.conversation] = self._service.journal.now()
        self._stop()
        self._log(f"closed by the {by}", f"{code} {reason}".rstrip())

    def _stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self.intake is not None:
            self.intake.model.stop()

    def _log(self, what: str, detail: str = "") -> None:
        self._service.journal.log(self.record.number or None, what, detail)


def _shortened(message: Message) -> str:
    text = json.dumps(message, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _named(message: Message) -> str:
    """Name a server message by its keys, as in ``serverContent.turnComplete``."""
    content = message.get("serverContent")
    if content is None:
        return "+".join(message)
    names = "+".join("audio" if _is_audio(content, key) else key for key in content)
    return f"serverContent.{names}" if names else "serverContent (empty)"


def _is_audio(content: Message, key: str) -> bool:
    return key == "modelTurn" and any("inlineData" in part for part in content[key]["parts"])
