"""What does one frame of the server change?

A frame is stripped before the turn tracker reads it: of calls that were made before, may not run
or are held back, and of an echo of our own words. What the tracker reports of the rest is told to
those who wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from . import wording
from .caller import Ear
from .effects import Effect, ReportUsage
from .events import ServerFrame, ToolCall, ToolResult
from .link import LinkState
from .parts import Parts
from .reports import Report, Started, TurnEnded


class Reception:
    """Takes what the server says.

    Args:
        parts: What is changed by it.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def frame(self, frame: ServerFrame, *, now: float) -> list[Effect]:
        """Take a frame; one of an earlier connection changes nothing."""
        parts = self._parts
        if frame.connection != parts.link.number or not parts.link.is_up:
            return []
        if frame.is_sign_of_life:
            # anything else comes by itself, as a handle was recorded to do straight after the
            # setup: it may have crossed what was written last, and does not show that it was taken
            parts.telling.frame_received(now=now)
            parts.transitions.frame_received(now=now)
            parts.prompts.frame_received()
            parts.suspects.frame_received()
            parts.link.settings.frame_received()
        out = self.show(parts.turn.receive(self._stripped(frame, now), now=now), now=now)
        if frame.caller_speaks is not None:
            parts.caller.detected(Ear.SERVER, speaking=frame.caller_speaks, now=now)
        parts.ledger.in_order(frame.calls)
        self._cancelled(frame)
        if frame.handle is not None and not parts.history.is_replaced:
            parts.link.handle = frame.handle
            parts.history.handle_received()
        if frame.time_left is not None:
            parts.rotation.go_away(frame.time_left, now=now)
        if frame.usage is not None:
            out.append(ReportUsage(usage=frame.usage))
        return out

    def _stripped(self, frame: ServerFrame, now: float) -> ServerFrame:
        """What of a frame the model says anew, and may."""
        parts = self._parts
        # a call that is delivered or issued again is no sign of the model
        new_input = parts.speech.asked_on == parts.link.number or bool(frame.user_words)
        new = [
            call
            for call in frame.calls
            if not parts.ledger.rejoin(call, parts.link.number, new_input=new_input)
        ]
        calls = parts.transitions.arrived(
            (call for call in new if not self._refused(call, frame)),
            state=parts.turn.state,
            with_speech=bool(frame.audio or frame.text),
            now=now,
        )
        if calls != frame.calls:
            parts.asking.call_came()
        echo = bool(frame.user_words) and parts.prompts.is_echo(frame.user_words)
        return replace(frame, calls=calls, user_words="" if echo else frame.user_words)

    def _refused(self, call: ToolCall, frame: ServerFrame) -> bool:
        """Whether a call may not run; it is answered so."""
        why = frame.calls_refused
        if why is None and call.name in frame.removed_functions:
            why = wording.removed(call.name)
        if why is None:
            return False
        if self._parts.ledger.issue(call, self._parts.link.number):
            self._parts.ledger.produce(
                ToolResult(call_id=call.call_id, name=call.name, output=why, is_error=True)
            )
        return True

    def _cancelled(self, frame: ServerFrame) -> None:
        parts = self._parts
        unnamed = parts.ledger.unnamed(parts.link.number) if frame.cancels_unnamed else ()
        parts.transitions.cancelled(frame.cancelled, unnamed=frame.cancels_unnamed)
        parts.ledger.cancel((*frame.cancelled, *unnamed))

    def let_go(self, *, now: float) -> list[Effect]:
        """Have the transitions run that were held back while the model spoke."""
        parts = self._parts
        waits = parts.link.settings.tools_block
        calls = parts.transitions.release(parts.turn.state, model_waits=waits, now=now)
        if not calls:
            return []
        frame = ServerFrame(connection=parts.link.number, calls=calls)
        return self.show(parts.turn.receive(frame, now=now), now=now)

    def show(self, happened: Iterable[Report], *, now: float) -> list[Effect]:
        """Tell all who wait for it what the turn tracker reports."""
        parts = self._parts
        seen = list(happened)
        settling = parts.link.state is LinkState.SETTLING
        out = parts.speech.show(seen, connection=parts.link.number, settling=settling)
        for report in seen:
            out += parts.asking.show(
                report,
                spoken=parts.speech.spoken,
                elsewhere=parts.ledger.reply_due or parts.uplink.activity_open,
                now=now,
            )
            if isinstance(report, Started):
                parts.caller.answered()
                parts.suspects.model_spoke()
            match report:
                case Started() if settling and parts.speech.answers_caller:
                    parts.telling.settled_in_vain()
                case Started() if settling:
                    # the settled response is being answered: that is the reply
                    parts.link.settled()
                case TurnEnded(empty=True) if settling:
                    parts.telling.settled_in_vain()
                case TurnEnded(empty=False):
                    parts.link.progressed()
        return out
