"""Random interleavings of everything that can happen, against the pure server."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from livekit_gemini_resilient.core.effects import Outcome
from livekit_gemini_resilient.core.events import (
    ContextUpdated,
    InputPushed,
    ReplyRequested,
    ReplyWithdrawn,
    RestartCause,
    ToolCall,
    VoiceDetected,
)
from livekit_gemini_resilient.core.suspects import Kind
from livekit_gemini_resilient.core.turn import TurnTracker
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result
from .server import CUT
from .test_update_tools_product import FOREIGN, WHEN, later_turn_works

WORD = re.compile(r"[mws]\d+\.")
QUOTE = re.compile(r'You had begun to answer: "[^"]*"')

HEALTHY_PAUSE = 7.0
"""Seconds. What is under way longer than that counts as frozen."""

FINAL = {Outcome.REPLIED, Outcome.KNOWN, Outcome.UNANSWERED}


class Hostile(RuleBasedStateMachine):
    """Nothing is lost, nothing is told twice, nobody waits for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.number = 0
        self.has_ids = True
        self.running: list[str] = []
        self.produced: list[str] = []
        self.silent: set[str] = set()
        self.cancelled: set[str] = set()
        self.again: Counter[str] = Counter()
        self.requested: list[int] = []
        self.withdrawn: set[int] = set()

    @initialize(
        when=st.sampled_from(WHEN),
        server=st.fixed_dictionaries(
            {
                "foreign": st.sampled_from([*FOREIGN, "refused"]),
                "content": st.sampled_from(["any", "initial"]),
                "tools_block": st.booleans(),
                "may_stay_silent": st.booleans(),
            }
        ),
        has_ids=st.booleans(),
        during=st.sampled_from(["fail", "interim"]),
        patience=st.sampled_from([5.0, 60.0, None]),
        transitions=st.sampled_from([(), ("lookup",)]),
        holds=st.booleans(),
    )
    def begin(
        self,
        when: str,
        server: dict[str, Any],
        has_ids: bool,
        during: str,
        patience: float | None,
        transitions: tuple[str, ...],
        holds: bool,
    ) -> None:
        """A conversation whose first connection is up."""
        options = ResilienceOptions(
            restart_when=when,
            reply_during_call=during,
            tool_answer_timeout=patience,
            transition_tools=transitions,
            hold_input_during_call=holds,
        )
        self.has_ids = has_ids
        self.driver = Driver(options, max_retry=10_000, **server)
        self.driver.feed(ContextUpdated(items=()))
        self.driver.connect()

    def next(self) -> int:
        """A number that was not used before."""
        self.number += 1
        return self.number

    @property
    def is_up(self) -> bool:
        """Whether a connection is up."""
        return self.driver.up is not None

    # ------------------------------------------------------------ the caller and the model

    @precondition(lambda self: self.is_up)
    @rule(answer=st.booleans())
    def caller_speaks(self, answer: bool) -> None:
        self.driver.server.hear(self.driver.up or 0, f"w{self.next()}.", answer=answer)

    @precondition(lambda self: self.is_up)
    @rule(ends=st.booleans())
    def caller_interrupts(self, ends: bool) -> None:
        if not ends:
            self.driver.deliver()
        if self.is_up:
            self.driver.server.interrupt(self.driver.up or 0, ends=ends)
        if self.is_up and not ends:
            # what follows at once is the rest of what was stopped, and nobody hears it
            self.driver.deliver()
            self.driver.elapse(TurnTracker.interrupted_pause)

    @precondition(lambda self: self.is_up)
    @rule(count=st.integers(1, 2))
    def model_calls(self, count: int) -> None:
        calls = [self.call() for _ in range(count)]
        self.driver.server.call(self.driver.up or 0, *calls)

    @precondition(lambda self: self.is_up)
    @rule()
    def a_tool_is_called_and_returns(self) -> None:
        """All that takes, in one step: else few conversations get so far."""
        self.model_calls(1)
        self.driver.deliver()
        self.all_tools_return()
        self.driver.deliver()

    def call(self, name: str = "lookup") -> ToolCall:
        """A call that the model makes."""
        return replace(call(f"c{self.next()}", name), has_id=self.has_ids)

    @precondition(lambda self: self.is_up)
    @rule()
    def model_calls_what_was_removed(self) -> None:
        self.driver.server.call(
            self.driver.up or 0, self.call(), self.call("gone"), removed=frozenset({"gone"})
        )

    @precondition(lambda self: self.is_up)
    @rule()
    def model_calls_what_is_refused(self) -> None:
        self.driver.server.call(self.driver.up or 0, call(f"r{self.next()}"), refused="<no=42>")

    @precondition(lambda self: self.is_up and self.driver.called and self.has_ids)
    @rule()
    def server_repeats_a_call(self) -> None:
        last = self.driver.called[-1]
        if last.call_id in self.driver.server.live.issued:
            self.driver.server.send(self.driver.up or 0, calls=(last,))

    @precondition(lambda self: self.is_up and self.driver.called and self.has_ids)
    @rule()
    def server_forgets_a_call(self) -> None:
        """The next connection makes it again, and waits for the answer."""
        last = self.driver.called[-1]
        self.driver.lose()
        self.driver.connect()
        if self.is_up:
            self.again[last.call_id] += 1
            self.driver.server.call(self.driver.up or 0, last)

    @precondition(lambda self: self.is_up)
    @rule()
    def model_trails(self) -> None:
        if self.driver.server.live.waiting:
            self.driver.server.send(self.driver.up or 0, audio=(b"\x00\x00",))

    @precondition(lambda self: self.is_up)
    @rule()
    def server_sends_nothing_of_note(self) -> None:
        self.driver.server.send(self.driver.up or 0, usage=object())

    @precondition(lambda self: self.is_up)
    @rule()
    def reply_freezes(self) -> None:
        self.driver.deliver(1)
        self.driver.server.freeze()

    @precondition(lambda self: self.is_up and self.driver.conversation.turn.quiet)
    @rule(more=st.booleans())
    def turn_ends_without_a_word(self, more: bool) -> None:
        """Whether or not it says that another follows."""
        self.driver.deliver()
        if self.is_up:
            self.driver.server.send(self.driver.up or 0, turn_complete=True, more_follows=more)

    @rule(mute=st.booleans())
    def model_falls_silent(self, mute: bool) -> None:
        self.driver.server.mute = mute

    @precondition(lambda self: self.is_up)
    @rule(frames=st.integers(1, 4))
    def frames_arrive(self, frames: int) -> None:
        self.driver.deliver(frames)

    @precondition(lambda self: self.is_up and not self.driver.server.live.waiting)
    @rule()
    def handle_arrives(self) -> None:
        self.driver.deliver()
        server = self.driver.server
        # in the middle of an utterance nobody can say what a handle covers; and no server was
        # seen that answers what it was told before the handle when it is told something else
        clear = server.foreign != "answered" or not server.unsaid(max(server.connections))
        if self.is_up and self.driver.conversation.turn.quiet and clear:
            self.driver.server.snapshot(self.driver.up or 0)
            self.driver.deliver()

    @precondition(lambda self: self.is_up)
    @rule(time_left=st.sampled_from([0.0, 10.0, 60.0]))
    def server_goes_away(self, time_left: float) -> None:
        self.driver.server.send(self.driver.up or 0, time_left=time_left)

    @precondition(lambda self: self.is_up and self.driver.server.live.waiting)
    @rule()
    def server_cancels_a_call(self) -> None:
        call_id = next(iter(self.driver.server.live.waiting))
        self.driver.deliver()
        if self.is_up and call_id in self.driver.server.live.waiting:
            self.cancelled.add(call_id)
            self.driver.server.cancel(self.driver.up or 0, call_id)
            self.driver.deliver()

    # ------------------------------------------------------------ tools and the framework

    @rule(data=st.data(), reply=st.booleans())
    def tool_returns(self, data: st.DataObject, reply: bool) -> None:
        running = [c.call_id for c in self.driver.called if c.call_id not in self.produced]
        if running:
            self.finish(data.draw(st.sampled_from(running)), reply=reply)

    @rule()
    def all_tools_return(self) -> None:
        running = [c.call_id for c in self.driver.called if c.call_id not in self.produced]
        self.produced += running
        if running:
            self.driver.returns(*(result(call_id) for call_id in running))

    @rule(reply=st.booleans())
    def result_of_an_older_session_arrives(self, reply: bool) -> None:
        self.finish(f"o{self.next()}", reply=reply)

    def finish(self, call_id: str, *, reply: bool) -> None:
        """A tool returns."""
        self.produced.append(call_id)
        if not reply:
            self.silent.add(call_id)
        self.driver.returns(result(call_id, reply=reply))

    @precondition(lambda self: self.driver.listening)
    @rule()
    def agent_leaves(self) -> None:
        self.driver.leaves()

    @precondition(lambda self: not self.driver.listening)
    @rule()
    def next_agent_enters(self) -> None:
        self.driver.enters()

    @rule(cause=st.sampled_from([RestartCause.TOOLS, RestartCause.OPTIONS]))
    def setting_changes(self, cause: RestartCause) -> None:
        self.driver.request_restart(cause)

    @rule(instructions=st.booleans())
    def reply_is_asked_for(self, instructions: bool) -> None:
        number = self.next()
        self.requested.append(number)
        self.driver.feed(
            ReplyRequested(request=number, instructions="Greet." if instructions else None)
        )

    @precondition(lambda self: self.requested)
    @rule()
    def reply_is_withdrawn(self) -> None:
        self.withdrawn.add(self.requested[-1])
        self.driver.feed(ReplyWithdrawn(request=self.requested[-1]))

    @rule(role=st.sampled_from(["user", "model"]))
    def framework_adds_a_message(self, role: str) -> None:
        number = self.next()
        self.driver.adds(f"m{number}", role, f"m{number}.")

    @rule()
    def caller_is_heard(self) -> None:
        self.driver.feed(InputPushed(payload=self.next(), seconds=0.02))

    @rule(speaking=st.booleans())
    def voice_is_detected(self, speaking: bool) -> None:
        self.driver.feed(VoiceDetected(speaking=speaking))

    # ------------------------------------------------------------ the link

    @precondition(lambda self: self.is_up)
    @rule(code=st.sampled_from([None, 1011, 1008, 1007]))
    def link_is_lost(self, code: int | None) -> None:
        self.driver.lose(code)

    @precondition(lambda self: self.driver.closing is not None)
    @rule()
    def closing_ends(self) -> None:
        self.driver.finish_close()

    @precondition(lambda self: self.driver.dial is not None)
    @rule()
    def dial_succeeds(self) -> None:
        self.driver.connect()

    @precondition(lambda self: self.driver.dial is not None)
    @rule(code=st.sampled_from([None, 1011]))
    def dial_fails(self, code: int | None) -> None:
        self.driver.fail_dial(code)

    @rule(seconds=st.sampled_from([0.1, 0.3, 0.6, 3.0, 11.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        if seconds > HEALTHY_PAUSE:
            self.driver.deliver()
        self.driver.elapse(seconds)

    # ------------------------------------------------------------ what must hold

    @invariant()
    def nothing_was_answered_twice(self) -> None:
        faults = self.driver.server.faults
        # a reply that nobody took may be cut
        assert [f for f in faults if f != CUT or not self.driver.skipped] == []

    @invariant()
    def every_result_is_accounted_for(self) -> None:
        ledger = self.driver.conversation.ledger
        for call_id in self.produced:
            record = ledger.get(call_id)
            if record is None:
                assert self.driver.outcome(call_id) == [Outcome.HISTORY]
                continue
            told = record.known.value == "told" and record.told_on == max(
                self.driver.server.connections
            )
            assert told or record.owed or record.known.value == "known"

    @invariant()
    def each_outcome_is_reported_once(self) -> None:
        ids = [call_id for call_id, _ in self.driver.outcomes]
        assert len(ids) == len(set(ids))

    def teardown(self) -> None:
        """Let everything come to rest, and ask the server."""
        driver = self.driver
        driver.server.mute = False
        if not driver.listening:
            driver.enters()
        driver.settle()
        for call_id in [c.call_id for c in driver.called if c.call_id not in self.produced]:
            self.finish(call_id, reply=True)
        driver.settle()
        if driver.conversation.announces_history:
            # learned from a close: what came since waits for words that ask for speech
            self.reply_is_asked_for(instructions=True)
            driver.settle()
        self.nothing_was_answered_twice()
        # what may have closed two connections is not told again
        left_out = driver.conversation._suspects.guilty(Kind.MESSAGE)
        for call_id in self.produced:
            token = f"<{call_id}=42>"
            record = driver.conversation.ledger.get(call_id)
            if call_id in left_out and (record is None or record.known.value == "known"):
                continue
            if record is not None and (record.refusals or "was refused" in str(record.result)):
                # it may have closed a connection, and is not sent again as it is
                assert token in driver.server.live.text or "was refused" in driver.server.live.text
                continue
            assert token in driver.server.live.text, f"{call_id} is lost"
            replies = driver.replies(token)
            # where tools do not block, a reply that runs into other speech, or follows words of
            # the caller, proves nothing, so the model may be asked for it again
            most = 1 if driver.server.blocks else 2
            # a reply that nobody took is asked for again
            most += len(driver.skipped)
            # and so is one to a result that the model has asked for again
            most += self.again[call_id]
            assert len(replies) <= most, f"{call_id} was spoken about too often"
            if call_id in self.silent or call_id in self.cancelled:
                continue
            (outcome,) = driver.outcome(call_id)
            assert outcome in FINAL
            # where tools do not block, one reply may follow several results told one by one, or
            # each may get its own: the wire does not say which
            if outcome is Outcome.REPLIED and driver.server.blocks:
                begun = [r for r in driver.server.replies if r.begun and token in r.about]
                assert len(replies) == 1 or len(begun) > 0
        waiting = set(self.requested) - self.withdrawn - set(driver.failed) - set(driver.answered)
        assert not waiting, "a reply was neither given nor refused"
        times = Counter(WORD.findall(QUOTE.sub("", driver.server.live.text)))
        told = "\n".join(str(part) for item in driver.items for part in item.parts)
        refused = "".join(i.text for i in driver.items if i.item_id in left_out)
        for word in WORD.findall(told):
            if word in WORD.findall(refused):
                continue
            # whether a handle covers a message that nobody reacted to cannot be known: such a
            # message may be told again, but is never lost
            most = 2 if word.startswith("m") else 1
            assert 1 <= times[word] <= most, f"{word} is known {times[word]} times"
        later_turn_works(driver)


def test_nothing_is_lost_doubled_or_left_waiting_in_any_order() -> None:
    """Promises 1 to 3, whatever the order of calls, results, restarts, losses and time."""
    run_state_machine_as_test(
        Hostile,
        settings=settings(
            max_examples=150,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            report_multiple_bugs=False,
        ),
    )
