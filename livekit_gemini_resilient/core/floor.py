"""May words of ours go out now, and what holds them?

Who has the floor is read off all parts at once; nothing is remembered here. Words wait while

* the connection is not open, or is about to be replaced;
* somebody speaks, or the model was told or asked something and has not finished speaking about it;
* the server waits for an answer to a call;
* nobody would take the reply.

A ``generate_reply`` need not wait for silence; and where tools do not block it need not wait for a
call either. The same facts tell the rotation when to leave a connection, and how long a model
that owes a reply is waited for.
"""

from __future__ import annotations

from .link import LinkState
from .parts import Parts
from .rotation import HANDLE_GRACE, Situation
from .turn_state import TurnState


class Floor:
    """Who may speak.

    Args:
        parts: What is known.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    # ------------------------------------------------------------ words of ours

    @property
    def may_speak_up(self) -> bool:
        """Whether words of ours reach a server that listens, and interrupt nobody but where a
        reply is asked for."""
        parts = self._parts
        if parts.link.state is not LinkState.OPEN or self._blocked:
            return False
        silence = parts.turn.quiet and not parts.asking.asked
        return silence or parts.requests.waiting

    @property
    def _blocked(self) -> bool:
        """Whether words of ours would reach a server that is busy, or about to be left."""
        parts = self._parts
        busy = parts.ledger.reply_due or parts.audience.is_away
        waits = parts.link.settings.tools_block
        if self.call_open and parts.requests.waiting and not waits:
            # neither the model nor a rotation that the call holds up can wait for that result
            return busy or parts.turn.speaking or parts.rotation.waits_for_no_call
        return parts.rotation.requested or self.call_open or busy

    # ------------------------------------------------------------ calls

    @property
    def call_open(self) -> bool:
        """Whether this connection waits for an answer."""
        parts = self._parts
        return parts.ledger.open_on(parts.link.number) or parts.transitions.holding

    @property
    def held_by_call(self) -> bool:
        """Whether the model waits for a tool that runs; on a new connection it would not."""
        parts = self._parts
        waits = parts.link.is_up and self.call_open
        return waits and parts.ledger.running and parts.link.settings.tools_block

    @property
    def content_waits(self) -> bool:
        """Whether the model waits for a result, its answer to which is to obey new content."""
        return self.held_by_call or bool(self.withheld)

    @property
    def holds_requests(self) -> bool:
        """Whether a request would wait for a tool whose result LiveKit withholds until the reply
        to the request has ended."""
        return self.held_by_call and not self._parts.rotation.waits_for_no_call

    @property
    def holds_input(self) -> bool:
        """Whether what the caller says waits for a tool. Not the end of an activity that asks for a
        reply: LiveKit withholds the tool's result until that reply has ended."""
        parts = self._parts
        wanted = parts.options.hold_input_during_call and parts.uplink.asks is None
        return wanted and parts.link.settings.tools_block and self.call_open

    @property
    def in_transition(self) -> bool:
        """Whether the tool of a transition runs, or its result was not told yet."""
        parts = self._parts
        runs = any(parts.ledger.runs(call_id) for call_id in parts.transitions.let_go)
        return runs or bool(self.for_next_prompt)

    @property
    def for_next_prompt(self) -> frozenset[str]:
        """Transitions whose results this connection has not been told."""
        parts = self._parts
        return parts.ledger.owed_to(parts.link.number) & parts.transitions.let_go

    @property
    def withheld(self) -> frozenset[str]:
        """Calls whose results are left to the prompt that follows this one."""
        follows = self._parts.rotation.waits_for_no_call or self._parts.audience.is_away
        return self.for_next_prompt if follows else frozenset()

    # ------------------------------------------------------------ the model and the caller

    @property
    def generation_completed(self) -> bool:
        """Whether the model has said all that it has to say for now."""
        turn = self._parts.turn
        return turn.state is TurnState.GENERATION_COMPLETED or turn.generation is None

    @property
    def _someone_speaks(self) -> bool:
        parts, turn = self._parts, self._parts.turn
        # the transcript may trail the audio, for a moment
        words_trail = turn.state is TurnState.GENERATION_COMPLETED and turn.generation is not None
        model = (turn.speaking or words_trail) and not parts.speech.unheard
        return model or parts.uplink.in_activity or parts.caller.is_heard

    @property
    def _reply_coming(self) -> bool:
        """Whether a reply to a result may come now: a blocking server waits for all results."""
        parts = self._parts
        open_call = parts.ledger.open_on(parts.link.number)
        return parts.ledger.reply_due and not (parts.link.settings.tools_block and open_call)

    @property
    def situation(self) -> Situation:
        """What the rotation decides from."""
        parts = self._parts
        covered = parts.history.is_covered
        return Situation(
            speaking=self._someone_speaks,
            turn_over=parts.turn.quiet,
            call_open=self.call_open,
            reply_due=(self._reply_coming and not self.withheld) or parts.asking.asked,
            settling=parts.link.state is LinkState.SETTLING,
            resumable=parts.link.handle is not None,
            handle_until=0.0 if covered else parts.turn.ended_at + HANDLE_GRACE,
        )

    # ------------------------------------------------------------ how long it is waited for

    @property
    def reply_deadline(self) -> float | None:
        """When a model that owes a reply to a result is asked again, in loop seconds."""
        waits = self._parts.link.state is LinkState.OPEN and self._reply_coming
        return self._parts.telling.reply_deadline if waits else None

    @property
    def answer_deadline(self) -> float | None:
        """When a model that was asked to answer the caller is not waited for any more."""
        is_open = self._parts.link.state is LinkState.OPEN
        return self._parts.asking.answer_deadline if is_open else None
