"""What does one connection leave to the next?

What was told on a connection that ends, and not seen to arrive, is owed to the next one; what was
asked for there is asked for again; what it closed over is learned. A connection that is resumed
first closes the exchanges that were left open (see ``telling``). Which connection there is, and
whether another is dialed, is decided in ``link``.
"""

from __future__ import annotations

from . import evidence
from .effects import Effect, Outcome, ReportOutcome
from .events import Connected, ConnectionLost, RestartCause, SetupBuilt
from .link import LinkState
from .parts import Parts
from .reception import Reception
from .recovery import FRAME_REFUSED

_INVALID = 1007
"""Close code by which the service refuses the bytes of a frame (observed)."""


class Succession:
    """The end of one connection and the beginning of the next.

    Args:
        parts: What outlives them.
        reception: Told what the end of a connection is the end of.
    """

    def __init__(self, parts: Parts, reception: Reception) -> None:
        self._parts = parts
        self._reception = reception

    def setup_built(self, event: SetupBuilt) -> None:
        """The next connection is configured from scratch."""
        self._parts.rotation.connection_ended()
        self._parts.link.settings.built(event)
        self._parts.prompts.connection_opened(announces_history=event.announces_history)
        self._parts.telling.instructions = None

    def connected(self, event: Connected, *, now: float) -> list[Effect]:
        """The server answered the setup: tell it first what an older one left open."""
        parts, link = self._parts, self._parts.link
        if event.connection != link.number or link.state is not LinkState.DIALING:
            return []
        from_outside = link.resumed and not link.ever_opened
        out = link.opened(now=now)
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
        call_open = self._parts.ledger.running
        self._parts.rotation.request(RestartCause.HISTORY, call_open=call_open, now=now)

    def lost(self, event: ConnectionLost, *, now: float) -> list[Effect]:
        """A connection ended, or a dial failed."""
        parts, link = self._parts, self._parts.link
        gone = link.state in (LinkState.DOWN, LinkState.ENDED)
        if event.connection != link.number or gone:
            return []
        out = self._reception.let_go(speaking=False, now=now)
        out += self._reception.show(
            parts.turn.connection_lost(model_waits=parts.link.settings.tools_block), now=now
        )
        self._learn_from(event)
        parts.telling.connection_lost(invalid=event.code == _INVALID and link.is_up)
        evidence.connection_closed(parts.ledger, link.number)
        parts.asking.connection_lost()
        parts.uplink.connection_lost(event.unsent)
        parts.requests.ride_on(parts.uplink.asks)
        out += link.lost(event, now=now)
        if link.has_ended:
            out += self.given_up("the connection was lost")
        return out

    def _learn_from(self, event: ConnectionLost) -> None:
        """A close straight after a frame of ours says that this server does not take such."""
        parts, settings = self._parts, self._parts.link.settings
        if event.code in FRAME_REFUSED:
            if parts.link.state is LinkState.SETTLING:
                parts.telling.settling_refused()
            if settings.sent_in_place:
                parts.observed.refused_context_update()
            elif parts.link.is_up and not parts.telling.may_be_refused:
                parts.prompts.connection_refused()
        settings.sent_in_place = False

    def given_up(self, why: str, *, handed_over: bool = False) -> list[Effect]:
        """There will be no other connection: what becomes of all that waits for one.

        Args:
            why: What the ``generate_reply`` under way fails with.
            handed_over: The session of another agent tells the results whose replies are due.
        """
        ledger = self._parts.ledger
        out = self._parts.requests.fail(why, "start a new session")
        left = {call.call_id for call, _ in ledger.due_replies} if handed_over else set()
        for call_id in ledger.undelivered:
            outcome = Outcome.HANDED_OVER if call_id in left else Outcome.UNDELIVERED
            out.append(ReportOutcome(call_id=call_id, outcome=outcome))
        return out
