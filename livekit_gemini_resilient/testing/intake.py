"""What an accepted connection does with each frame after the setup.

A frame is first consumed (checked, recorded, learnt); what follows from it is returned as a
reaction, so that a trap can break the connection between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .dialect import Dialect, Message
from .model import ScriptedModel
from .records import Connection, Entry
from .responses import Responses
from .rules import (
    check_content,
    check_realtime,
    check_tools,
    declared_behaviors,
    declared_tools,
)
from .service import Service
from .wire import Refused, content_text

Reaction: TypeAlias = Callable[[], None] | None


class Intake:
    """Feeds the frames of one connection to its model.

    Args:
        service: what the connections share.
        record: the connection, its setup accepted.
        send: sends messages in one write.
    """

    def __init__(self, service: Service, record: Connection, send: Callable[..., None]) -> None:
        setup = record.setup
        realtime = setup.get("realtime_input_config") or {}
        detection = realtime.get("automatic_activity_detection") or {}
        history = setup.get("history_config") or {}
        modalities = (setup.get("generation_config") or {}).get("response_modalities") or []
        dialect = Dialect(
            service.profile,
            transcribes=setup.get("output_audio_transcription") is not None,
            writes=modalities == ["TEXT"],
        )
        self.model = ScriptedModel(service, record, dialect, send)
        self._responses = Responses(service, record, self.model)
        self._service = service
        self._record = record
        self._dialect = dialect
        self._send = send
        self._initial_history = bool(history.get("initial_history_in_client_content"))
        self._manual = bool(detection.get("disabled"))
        self._barge_in = realtime.get("activity_handling") != "NO_INTERRUPTION"
        self._transcribes_input = setup.get("input_audio_transcription") is not None
        self._active = False
        self._said: list[Entry] = []

    def consume(self, kind: str, body: dict[str, Any]) -> Reaction:
        """Take a frame in.

        Returns:
            What follows from it; ``None`` if nothing does.

        Raises:
            Refused: the service would close the connection.
        """
        if kind == "client_content":
            return self._take_content(body)
        if kind == "realtime_input":
            return self._take_realtime(body)
        if kind == "tool_response":
            return self._responses.take(body.get("function_responses") or [])
        taken = self._service.profile.context_update
        if taken != "taken":
            raise Refused("contextUpdate", code=taken, blamed=False)
        if "tools" in body:
            self._declare((body["tools"] or {}).get("tools"))
        return None

    def caller_says(self, text: str, *, infer: bool) -> None:
        """The caller speaks; see `GeminiLiveServer.caller_says`."""
        if not self._manual:
            self._send(*self._dialect.voice_activity("START"))
        if self.model.generating and self._barge_in:
            self.model.interrupt()
        self._end_waiting()
        self._initial_history = False
        if self._transcribes_input:
            self._transcribe(text)
        if self._manual:
            self._said.append(Entry("user", text))
            return
        self._send(*self._dialect.voice_activity("END"))
        if self._swallowed("the caller's words"):
            return
        if infer:
            self.model.hear(Entry("user", text), "caller")
        else:
            self.model.learn(Entry("user", text))

    def _take_content(self, content: dict[str, Any]) -> Reaction:
        check_content(self._service.profile, content, initial_history=self._initial_history)
        if self._swallowed("client_content"):
            return None
        if self.model.calls.blocking:
            # Observed: content is not accepted while a call is pending.
            self._breach("client_content while a call is open: the service does not take it")
            return None
        complete = bool(content.get("turn_complete"))
        self.model.learn(*(_entry(turn) for turn in content.get("turns") or []))
        if self._initial_history:
            # Documented: history until turn_complete, which starts no inference.
            self._initial_history = not complete
            return None
        if complete:
            return lambda: self.model.think("client_content")
        return self.model.break_off

    def _take_realtime(self, realtime: dict[str, Any]) -> Reaction:
        check_realtime(self._service.profile, realtime, manual=self._manual)
        during_call = self._service.profile.input_during_call
        if during_call != "taken" and self.model.calls.blocking:
            raise Refused("realtime input while a call is open", code=during_call, blamed=False)
        if "text" in realtime:
            return lambda: self._take_text(realtime["text"])
        if "activity_start" in realtime:
            self._active = True
            self.model.listens = self._service.profile.responses_wait_for_caller
            return self._barge if self._barge_in else None
        if "activity_end" in realtime:
            return self._end_activity()
        return None

    def _barge(self) -> None:
        self._end_waiting()
        self.model.break_off()

    def _take_text(self, text: str) -> None:
        self._end_waiting()
        self._initial_history = False
        if self._service.profile.echoes_realtime_text:
            self._transcribe(text)
        if self._swallowed("realtime text"):
            return
        if self._service.profile.realtime_text == "answered":
            self.model.hear(Entry("user", text), "realtime_text")
        else:
            self.model.learn(Entry("user", text))

    def _end_activity(self) -> Reaction:
        if not self._active:
            self._breach("activityEnd without activityStart")
            return None
        self._active = self.model.listens = False
        self._initial_history = False
        said, self._said = self._said, []
        words = Entry("user", " ".join(entry.text for entry in said)) if said else None
        if self._swallowed("the caller's words"):
            return None

        def answer() -> None:
            self._end_waiting()
            self.model.hear(words, "activity_end")

        return answer

    def _declare(self, tools: list[dict[str, Any]] | None) -> None:
        check_tools(self._service.profile, tools)
        self._record.declared_tools = declared_tools(tools)
        self._record.behaviors = declared_behaviors(tools)

    def _end_waiting(self) -> None:
        """Cancel the calls that new input ends, where the family does so."""
        blocking = self.model.calls.blocking
        if blocking and self._service.profile.cancels_on_input:
            self.model.cancel(blocking, interrupted=False)

    def _swallowed(self, what: str) -> bool:
        """Return whether what has come in is lost, and say so."""
        if self.model.swallows:
            self._log(f"swallowed {what}", "a call of an earlier connection was not closed")
        return self.model.swallows

    def _transcribe(self, text: str) -> None:
        for message in self._dialect.heard(text):
            self._send(message)

    def _log(self, what: str, detail: str) -> None:
        self._service.journal.log(self._record.number, what, detail)

    def _breach(self, what: str) -> None:
        self._service.journal.breach(self._record.number, what)


def _entry(turn: Message) -> Entry:
    role = turn.get("role", "user")
    return Entry(role if role in ("model", "system") else "user", content_text(turn))
