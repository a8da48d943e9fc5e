"""What does one connection leave to the next?

What was told on a connection that ends, and not seen to arrive, is owed to the next one; what was
asked for there is asked for again; what it closed over is learned. A connection that is resumed
first closes the exchanges that were left open (see ``telling``). Which connection there is, and
whether another is dialed, is decided in ``link``.
"""

from __future__ import annotations

from . import evidence
from .caller import Ear
from .effects import Effect, Outcome, ReportError, ReportOutcome
from .errors import MessagesLeftOut
from .events import Connected, ConnectionLost, RestartCause, SetupBuilt
from .floor import Floor
from .link import LinkState
from .parts import Parts
from .reception import Reception
from .recovery import FRAME_INVALID, FRAME_REFUSED
from .suspects import Kind


class Succession:
    """The end of one connection and the beginning of the next.

    Args:
        parts: What outlives them.
        reception: Told what the end of a connection is the end of.
        floor: Asked which results were left to another prompt.
    """

    def __init__(self, parts: Parts, reception: Reception, floor: Floor) -> None:
        self._parts = parts
        self._reception = reception
        self._floor = floor

    def setup_built(self, event: SetupBuilt) -> None:
        """The next connection is configured from scratch."""
        self._parts.rotation.connection_ended()
        self._parts.link.settings.built(event)
        self._parts.prompts.connection_opened(announces_history=event.announces_history)
        self._parts.telling.setup_built(as_accepted=self._parts.link.settings.as_accepted)

    def connected(self, event: Connected, *, now: float) -> list[Effect]:
        """The server answered the setup: tell it first what an older one left open."""
        parts, link = self._parts, self._parts.link
        if event.connection != link.number or link.state is not LinkState.DIALING:
            return []
        from_outside = link.resumed and not link.ever_opened
        parts.telling.setup_accepted(as_accepted=link.settings.as_accepted)
        out = link.opened(now=now)
        parts.rotation.connection_opened(now=now)
        parts.telling.sign(now=now)
        parts.history.connection_opened(resumed=link.resumed)
        if parts.history.is_replaced:
            # its handle had been offered before
            self.forget(now=now)
        parts.intake.connected(event.items)
        if from_outside:
            parts.history.handle_supplied(event.items)
        settling = parts.telling.settle(link.number, now=now) if link.resumed else []
        if settling:
            link.settle()
        return out + settling

    def forget(self, *, now: float) -> None:
        """The server knows what is not part of the conversation any more: a fresh one does not."""
        self._parts.link.handle = None
        call_open, transition = self._parts.ledger.running, self._floor.in_transition
        self._parts.rotation.request(
            RestartCause.HISTORY, call_open=call_open, now=now, transition=transition
        )

    def lost(self, event: ConnectionLost, *, now: float) -> list[Effect]:
        """A connection ended, or a dial failed."""
        parts, link = self._parts, self._parts.link
        gone = link.state in (LinkState.DOWN, LinkState.ENDED)
        if event.connection != link.number or gone:
            return []
        waits = link.settings.tools_block
        out = self._reception.show(parts.turn.connection_lost(model_waits=waits), now=now)
        # transitions that were held back run all the same, in a generation that ends here as well
        out += self._reception.let_go(now=now)
        out += self._reception.show(parts.turn.connection_lost(model_waits=waits), now=now)
        self._learn_from(event, now)
        blamed, by_input = self._blame(event.code if link.is_up else None, now)
        out += blamed
        evidence.connection_closed(parts.ledger, link.number)
        parts.asking.connection_lost()
        parts.caller.detected(Ear.SERVER, speaking=False, now=now)
        parts.uplink.connection_lost(event.unsent, refused=by_input)
        parts.requests.ride_on(parts.uplink.asks)
        out += link.lost(event, now=now)
        if link.has_ended:
            out += self.given_up("the connection was lost")
        return out

    def _by_frame(self, code: int | None, now: float) -> bool:
        """Whether a close is about a frame of ours: a proxy ends idle connections with 1008."""
        recent = self._parts.suspects.any(now=now)
        return code in FRAME_INVALID or (code in FRAME_REFUSED and recent)

    def _learn_from(self, event: ConnectionLost, now: float) -> None:
        """A close for a frame of ours says that this server does not take such."""
        parts, settings = self._parts, self._parts.link.settings
        if event.code in FRAME_REFUSED and self._by_frame(event.code, now):
            if parts.link.state is LinkState.SETTLING:
                parts.telling.settling_refused()
            if settings.sent_in_place:
                parts.observed.refused_context_update()
            elif parts.link.is_up and not parts.telling.may_be_refused:
                parts.prompts.connection_refused()
        settings.sent_in_place = False

    def _blame(self, code: int | None, now: float) -> tuple[list[Effect], bool]:
        """Find out what closed the connection, if it was a frame of ours, and do without it.

        Returns:
            What follows, and whether it can only have been the caller's audio or video.
        """
        parts, invalid = self._parts, code in FRAME_INVALID
        refused = invalid or code in FRAME_REFUSED
        by_frame = self._by_frame(code, now)
        by_result = parts.telling.connection_lost(refused=by_frame, invalid=invalid)
        by_input = refused and not by_result and not parts.suspects.any(now=now)
        kind = parts.suspects.connection_lost(refused=refused and not by_result, now=now)
        if kind is not None:
            parts.observed.absolved()
        if kind is Kind.INSTRUCTIONS:
            # the setup that was accepted last has older ones
            parts.link.settings.changed()
        if kind is Kind.ACTIVITY:
            parts.uplink.give_up_activity()
        out = parts.asking.refused(kind)
        if kind is Kind.MESSAGE:
            error = MessagesLeftOut(parts.suspects.guilty(Kind.MESSAGE))
            out.append(ReportError(error=error, recoverable=True))
        return out, by_input

    def given_up(self, why: str, *, handed_over: bool = False) -> list[Effect]:
        """There will be no other connection: what becomes of all that waits for one.

        Args:
            why: What the ``generate_reply`` under way fails with.
            handed_over: The session of another agent tells the results whose replies are due.
        """
        ledger = self._parts.ledger
        out = self._parts.requests.fail(why, "start a new session")
        due = {call.call_id for call, _ in ledger.due_replies}
        left = due | self._floor.for_next_prompt if handed_over else set()
        for call_id in filter(ledger.conclude, ledger.undelivered):
            outcome = Outcome.HANDED_OVER if call_id in left else Outcome.UNDELIVERED
            out.append(ReportOutcome(call_id=call_id, outcome=outcome))
        return out
