"""What a function response meets.

Each response is judged by itself and recorded with its verdict; what follows from the frame
follows once, from all its responses together (inferred).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from .model import ScriptedModel
from .records import Connection, Entry, IssuedCall, ToolResponse
from .rules import check_responses
from .service import Service
from .wire import Refused, plain_text

_FAILED = "the call failed"
"""What the model takes a response without a name for, where the profile says so."""

_Verdict: TypeAlias = Literal["accepted", "ignored", "duplicate", "adopted", "settled"]


class _Effect(enum.Enum):
    """What follows from a response, besides that a turn goes on whose last call it answers."""

    NOTHING = enum.auto()
    """Nothing."""

    INFERENCE = enum.auto()
    """An inference when the model is idle."""

    INTERRUPTION = enum.auto()
    """An inference at once."""

    END_OF_TURN = enum.auto()
    """A turn without content."""


class Responses:
    """Takes the function responses of one connection.

    Args:
        service: what the connections share.
        record: the connection.
        model: its model.
    """

    def __init__(self, service: Service, record: Connection, model: ScriptedModel) -> None:
        self._service = service
        self._record = record
        self._model = model

    def take(self, responses: list[dict[str, Any]]) -> Callable[[], None]:
        """Take the responses of one frame in.

        Returns:
            What follows from them.

        Raises:
            Refused: the service would close the connection.
        """
        check_responses(self._service.profile, responses)
        effects = {self._judge(response) for response in responses}

        def react() -> None:
            self._model.go_on()
            if effects & {_Effect.INFERENCE, _Effect.INTERRUPTION}:
                self._model.respond(interrupts=_Effect.INTERRUPTION in effects)
            elif _Effect.END_OF_TURN in effects:
                self._model.end_silently()

        return react

    def _judge(self, response: dict[str, Any]) -> _Effect:
        call_id, name = response.get("id") or "", response.get("name") or ""
        call = self._model.calls.find(call_id, name)
        lost = self._model.calls.find_lost(call_id, name)
        result = response.get("response")
        within = result.get("scheduling") if isinstance(result, dict) else None
        told = ToolResponse(
            self._record.number,
            call_id,
            name,
            result,
            self._foreign_verdict(lost) if call is None else _verdict(call),
            str(response.get("scheduling") or within or ""),
            bool(response.get("will_continue")),
        )
        if told.verdict not in ("accepted", "duplicate") and self._answered(call_id):
            # nobody has reported what it meets; a client that counts on it being ignored is wrong
            self._breach(f"a second response to {name} ({call_id})")
        self._record.tool_responses.append(told)
        self._service.tool_responses.append(told)
        if call is None:
            return self._take_foreign(told, lost)
        if told.verdict == "accepted":
            return self._accept(call, told)
        self._log(f"took no notice of the response to {name}", told.verdict)
        if told.verdict == "duplicate":
            self._breach(f"a second response to {name} ({told.id})")
            if self._service.profile.duplicate_response != "ignore":
                code = self._service.profile.duplicate_response
                raise Refused("a second response", code=code)
        return _Effect.NOTHING

    def _answered(self, call_id: str) -> bool:
        """Return whether this connection has got a whole response with that id."""
        earlier = self._record.tool_responses
        return any(r.id == call_id and not r.will_continue for r in earlier if r.id)

    def _accept(self, call: IssuedCall, told: ToolResponse) -> _Effect:
        profile = self._service.profile
        if told.name != call.name:
            self._breach(f"a response to {call.name} that names {told.name!r}")
        failed = not told.name and profile.nameless_response == "failed"
        call.answered = call.blocking or not told.will_continue
        text = _FAILED if failed else plain_text(told.response)
        self._model.learn(Entry("result", text, call.key))
        scheduling = told.scheduling if profile.scheduling == "honoured" else ""
        if call.blocking or scheduling == "SILENT":
            return _Effect.NOTHING
        return _Effect.INTERRUPTION if scheduling == "INTERRUPT" else _Effect.INFERENCE

    def _foreign_verdict(self, lost: IssuedCall | None) -> _Verdict:
        match self._service.profile.foreign_response:
            case "answer":
                return "adopted"
            case "empty_turn":
                return "settled"
            case "swallow" if lost is not None:
                return "settled"
        return "ignored"

    def _take_foreign(self, told: ToolResponse, lost: IssuedCall | None) -> _Effect:
        treatment = self._service.profile.foreign_response
        if told.verdict == "adopted":
            self._model.learn(Entry("result", plain_text(told.response), told.id))
            return _Effect.INFERENCE
        self._log(f"took no notice of the response to {told.name}", told.verdict)
        if isinstance(treatment, int):
            raise Refused("a response to no call of this connection", code=treatment)
        if lost is not None:
            self._model.calls.lost.remove(lost)
        ends = told.verdict == "settled" and not self._model.swallows
        return _Effect.END_OF_TURN if ends else _Effect.NOTHING

    def _log(self, what: str, detail: str) -> None:
        self._service.journal.log(self._record.number, what, detail)

    def _breach(self, what: str) -> None:
        self._service.journal.breach(self._record.number, what)


def _verdict(call: IssuedCall) -> _Verdict:
    if call.cancelled:
        return "ignored"
    return "duplicate" if call.answered else "accepted"
