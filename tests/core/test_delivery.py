"""The delivery ledger: which result does the model have, and is a reply still due?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from livekit_gemini_resilient.core import wording
from livekit_gemini_resilient.core.delivery import Ledger
from livekit_gemini_resilient.core.effects import Outcome
from livekit_gemini_resilient.core.events import ToolCall
from livekit_gemini_resilient.core.evidence import (
    connection_closed,
    generation_completed,
    generation_cut,
    generation_interrupted,
    generation_started,
    settle_failed,
)
from livekit_gemini_resilient.core.record import Known, Record, Reply, Route

from .driver import call, result


def produced(*, reply: bool = True, on: int = 1) -> Ledger:
    """A ledger with one call and its result."""
    ledger = Ledger()
    ledger.issue(call("c1"), on)
    ledger.produce(result("c1", reply=reply))
    return ledger


def told(ledger: Ledger, connection: int = 1) -> list[str]:
    """Ids of what goes out as a response."""
    return [r.call_id for r in ledger.tell_by_response(connection, wording.still_running)]


def record(ledger: Ledger) -> Record:
    """The record of ``c1``."""
    found = ledger.get("c1")
    assert found is not None
    return found


def reply(ledger: Ledger, connection: int = 1) -> list[tuple[str, Outcome]]:
    """The model begins a generation and completes it."""
    evidence = generation_started(ledger, connection, about_other=False)
    return generation_completed(ledger, evidence)


# ------------------------------------------------------------ one result


def test_a_result_is_told_once_and_known_when_the_model_has_spoken() -> None:
    """NO, TOLD, KNOWN; DUE, STARTED, DONE."""
    ledger = produced()
    assert [r.call_id for r in ledger.pending] == ["c1"]
    assert told(ledger) == ["c1"]
    assert told(ledger) == []
    assert record(ledger).known is Known.TOLD
    assert ledger.reply_due
    evidence = generation_started(ledger, 1, about_other=False)
    assert record(ledger).reply is Reply.STARTED
    assert generation_completed(ledger, evidence) == [("c1", Outcome.REPLIED)]
    assert record(ledger).known is Known.KNOWN
    assert not ledger.reply_due
    assert ledger.pending == ()
    assert generation_completed(ledger, evidence) == []


def test_a_result_has_the_name_of_its_call_on_every_route() -> None:
    """An output may come without; a response without is read as a failed call (observed)."""
    ledger = Ledger()
    ledger.issue(call("c1"), 1)
    ledger.produce(replace(result("c1"), name=""))
    assert [r.name for r in ledger.tell_by_response(1, wording.still_running)] == [call("c1").name]


def test_a_generation_that_began_before_the_telling_proves_nothing() -> None:
    """Trailing content of the asking turn."""
    ledger = produced()
    evidence = generation_started(ledger, 1, about_other=False)
    told(ledger)
    assert generation_completed(ledger, evidence) == []
    assert record(ledger).reply is Reply.DUE


def test_a_generation_about_something_else_proves_nothing() -> None:
    """An answer to the caller's own words in between."""
    ledger = produced()
    told(ledger)
    assert generation_started(ledger, 1, about_other=True) == ()
    assert record(ledger).reply is Reply.DUE


def test_any_later_generation_shows_that_a_result_without_a_reply_arrived() -> None:
    """A17: the model never speaks of it, so there is no other sign."""
    ledger = produced(reply=False)
    told(ledger)
    evidence = generation_started(ledger, 1, about_other=True)
    assert generation_completed(ledger, evidence) == [("c1", Outcome.KNOWN)]


def test_a_generation_on_another_connection_proves_nothing() -> None:
    """What was told here was told here."""
    ledger = produced()
    told(ledger)
    assert generation_started(ledger, 2, about_other=False) == ()


def test_a_result_that_wants_no_reply_is_known_all_the_same() -> None:
    """SILENT, and ``reply_required=False``."""
    ledger = produced(reply=False)
    told(ledger)
    assert not ledger.reply_due
    assert reply(ledger) == [("c1", Outcome.KNOWN)]
    assert record(ledger).reply is Reply.NONE


def test_a_reply_that_the_caller_interrupts_is_not_owed_any_more() -> None:
    """The model knows; the caller heard enough."""
    ledger = produced()
    told(ledger)
    evidence = generation_started(ledger, 1, about_other=False)
    assert generation_interrupted(ledger, evidence) == [("c1", Outcome.KNOWN)]
    assert record(ledger).reply is Reply.DONE


def test_a_reply_that_is_cut_is_due_again_and_remembers_what_was_heard() -> None:
    """By anything but the caller."""
    ledger = produced()
    told(ledger)
    generation_cut(ledger, generation_started(ledger, 1, about_other=False), "It is")
    assert record(ledger).reply is Reply.DUE
    assert record(ledger).spoken == "It is"
    assert record(ledger).known is Known.TOLD


def test_what_was_told_on_a_connection_that_ends_is_untold() -> None:
    """Unless the model has spoken since."""
    ledger = produced()
    told(ledger)
    generation_started(ledger, 1, about_other=False)
    connection_closed(ledger, 1)
    assert record(ledger).known is Known.NO
    assert record(ledger).reply is Reply.DUE
    assert [r.call_id for r in ledger.pending] == ["c1"]


def test_what_is_known_stays_known_when_the_connection_ends() -> None:
    """It is a part of the history then."""
    ledger = produced()
    told(ledger)
    reply(ledger)
    connection_closed(ledger, 1)
    assert record(ledger).known is Known.KNOWN
    assert ledger.untold == frozenset()


def test_a_second_result_of_one_call_is_a_duplicate() -> None:
    """At every stage."""
    ledger = produced()
    assert ledger.produce(result("c1")) is Outcome.DUPLICATE
    told(ledger)
    assert ledger.produce(result("c1")) is Outcome.DUPLICATE
    reply(ledger)
    assert ledger.produce(result("c1")) is Outcome.DUPLICATE


def test_the_same_id_twice_is_a_duplicate_call() -> None:
    """B14: on the same connection or on another."""
    ledger = produced()
    assert not ledger.issue(call("c1"), 1)
    assert not ledger.issue(call("c1"), 2)


# ------------------------------------------------------------ another connection


def test_a_response_goes_only_to_the_connection_that_issued_the_call() -> None:
    """A5: every other one is told in words."""
    ledger = produced()
    assert told(ledger, 2) == []
    assert [r.call.call_id for r in ledger.to_say(2)] == ["c1"]
    assert ledger.to_say(1) == ()


def test_settling_answers_what_was_left_open_once() -> None:
    """With the result, or with "still running"."""
    ledger = produced()
    ledger.issue(call("c2"), 1)
    settled = ledger.settle(2, wording.still_running)
    assert [r.call_id for r in settled] == ["c1", "c2"]
    assert settled[0].output == "<c1=42>"
    assert "still running" in settled[1].output
    assert ledger.settle(2, wording.still_running) == ()


def test_settling_leaves_out_what_needs_no_answer() -> None:
    """Known, cancelled, and never issued here."""
    ledger = produced()
    told(ledger)
    reply(ledger)
    ledger.issue(call("c2"), 1)
    ledger.cancel(["c2"])
    ledger.produce(result("c3"))
    assert ledger.settle(2, wording.still_running) == ()


def test_a_settled_result_without_effect_is_said() -> None:
    """And with effect it is not."""
    ledger = produced()
    ledger.settle(2, wording.still_running)
    assert ledger.to_say(2) == ()
    settle_failed(ledger, 2)
    (silent,) = ledger.to_say(2)
    ledger.said([silent], 2)
    assert silent.route is Route.SAY
    assert ledger.to_say(2) == ()


def test_a_settled_result_that_the_model_speaks_about_is_not_said() -> None:
    """That is the reply."""
    ledger = produced()
    ledger.settle(2, wording.still_running)
    generation_started(ledger, 2, about_other=False)
    settle_failed(ledger, 2)
    assert ledger.to_say(2) == ()


def test_the_result_of_a_tool_that_was_settled_as_running_is_said() -> None:
    """A second response with its id would be one too many."""
    ledger = Ledger()
    ledger.issue(call("c1"), 1)
    ledger.settle(2, wording.still_running)
    ledger.produce(result("c1"))
    assert told(ledger, 2) == []
    assert [r.call.call_id for r in ledger.to_say(2)] == ["c1"]


# ------------------------------------------------------------ cancellation and silence


@pytest.mark.parametrize("before", [True, False])
def test_a_cancelled_call_gets_no_response_and_asks_for_no_reply(before: bool) -> None:
    """A10: whether the tool completes before or after it."""
    ledger = produced() if before else Ledger()
    ledger.issue(call("c1"), 1)
    ledger.cancel(["c1", "unknown"])
    ledger.produce(result("c1"))
    assert told(ledger) == []
    assert [r.call.call_id for r in ledger.to_say(1)] == ["c1"]
    assert record(ledger).reply is Reply.NONE
    assert not ledger.open_on(1)
    assert not ledger.running


def test_a_cancellation_that_crosses_the_response_untells_it() -> None:
    """A10: the server ignored the response."""
    ledger = produced()
    told(ledger)
    ledger.cancel(["c1"])
    assert not ledger.reply_due
    assert told(ledger) == []
    assert [r.call.call_id for r in ledger.to_say(1)] == ["c1"]


def test_a_cancellation_changes_nothing_that_the_model_speaks_about_or_knows() -> None:
    """It came too late."""
    ledger = produced()
    told(ledger)
    evidence = generation_started(ledger, 1, about_other=False)
    ledger.cancel(["c1"])
    assert generation_completed(ledger, evidence) == [("c1", Outcome.REPLIED)]
    ledger.cancel(["c1"])
    assert ledger.to_say(1) == ()


def test_a_cancelled_id_leaves_the_rest_of_its_batch_alone() -> None:
    """A10."""
    ledger = produced()
    ledger.issue(call("c2"), 1)
    ledger.cancel(["c2"])
    assert told(ledger) == ["c1"]


def unnamed(call_id: str, name: str = "lookup") -> ToolCall:
    """A call that came without an id."""
    return replace(call(call_id, name), has_id=False)


def test_calls_without_ids_are_answered_in_their_order() -> None:
    """A11: the server takes a response for the first open call of that name."""
    ledger = Ledger()
    for asked in (unnamed("c1"), unnamed("c2"), unnamed("c3", "other"), call("c4")):
        ledger.issue(asked, 1)
    for call_id in ("c2", "c3", "c4"):
        ledger.produce(result(call_id))
    assert told(ledger) == ["c3", "c4"]
    ledger.produce(result("c1"))
    assert told(ledger) == ["c1", "c2"]


def test_a_result_does_not_wait_for_an_earlier_call_that_nobody_waits_for() -> None:
    """A11: a tool that takes too long, and one that was cancelled."""
    ledger = Ledger()
    for call_id in ("c1", "c2", "c3"):
        ledger.issue(unnamed(call_id), 1)
    ledger.watch(now=0.0, timeout=60.0)
    ledger.produce(result("c3"))
    ledger.cancel(["c1"])
    assert told(ledger) == []
    ledger.expire(now=60.0)
    assert told(ledger) == ["c2", "c3"]


def test_calls_without_ids_that_take_too_long_are_answered_in_their_order() -> None:
    """A11: "still running" about the third would be taken for the result of the second."""
    ledger = Ledger()
    for call_id in ("c1", "c2", "c3"):
        ledger.issue(unnamed(call_id), 1)
    ledger.watch(now=0.0, timeout=60.0)
    ledger.produce(result("c2"))
    assert told(ledger) == []
    ledger.expire(now=60.0)
    assert told(ledger) == ["c1", "c2", "c3"]


def test_a_cancellation_without_ids_is_about_the_open_calls_without_ids() -> None:
    """A10: or about those whose response crossed it, if none is open."""
    ledger = Ledger()
    for asked, connection in ((unnamed("c0"), 1), (unnamed("c1"), 2), (unnamed("c2", "other"), 2)):
        ledger.issue(asked, connection)
    ledger.issue(call("c3"), 2)
    ledger.produce(result("c1"))
    ledger.tell_by_response(2, wording.still_running)
    assert ledger.unnamed(2) == ("c2",)
    ledger.cancel(["c2"])
    assert ledger.unnamed(2) == ("c1", "c2")


def test_a_silent_model_is_asked_once_and_given_up_then() -> None:
    """Promise 3."""
    ledger = produced()
    assert ledger.ask_again() == ()
    told(ledger)
    assert ledger.give_up() == ()
    assert [r.call.call_id for r in ledger.ask_again()] == ["c1"]
    assert ledger.ask_again() == ()
    assert ledger.give_up() == ("c1",)
    assert not ledger.reply_due
    assert ledger.give_up() == ()


def test_questions_say_what_is_open() -> None:
    """A call is open until it is answered, running until its tool is done."""
    ledger = Ledger()
    assert not ledger.running
    ledger.issue(call("c1"), 1)
    assert ledger.running
    assert ledger.open_on(1)
    assert not ledger.open_on(2)
    ledger.produce(result("c1"))
    assert not ledger.running
    assert ledger.open_on(1)
    told(ledger)
    assert not ledger.open_on(1)
    assert ledger.untold == {"c1"}


# ------------------------------------------------------------ any sequence


@dataclass
class Told:
    """What the plain model remembers of one call."""

    home: int
    wanted: bool = False
    has_result: bool = False
    cancelled: bool = False
    told_on: int = 0
    is_known: bool = False
    responses: dict[int, int] = field(default_factory=dict)


class AnySequence(RuleBasedStateMachine):
    """The ledger against a record of what went over the wire and what came back."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.calls: dict[str, Told] = {}
        self.connection = 1
        self.evidence: tuple[str, ...] = ()
        self.outcomes: list[str] = []

    # ------------------------------------------------------------ what happens

    @rule(number=st.integers(0, 5))
    def issue(self, number: int) -> None:
        call_id = f"c{number}"
        assert self.ledger.issue(call(call_id), self.connection) == (call_id not in self.calls)
        self.calls.setdefault(call_id, Told(home=self.connection))

    @rule(number=st.integers(0, 5), wanted=st.booleans())
    def produce(self, number: int, wanted: bool) -> None:
        call_id = f"c{number}"
        outcome = self.ledger.produce(result(call_id, reply=wanted))
        entry = self.calls.setdefault(call_id, Told(home=0))
        assert (outcome is Outcome.DUPLICATE) == entry.has_result
        if not entry.has_result:
            entry.has_result, entry.wanted = True, wanted

    @rule(number=st.integers(0, 5))
    def cancel(self, number: int) -> None:
        call_id = f"c{number}"
        self.ledger.cancel([call_id])
        found = self.ledger.get(call_id)
        if found is not None and found.cancelled:
            self.calls[call_id].cancelled = True
            if found.known is Known.NO:
                self.calls[call_id].told_on = 0

    @rule()
    def respond(self) -> None:
        for told_result in self.ledger.tell_by_response(self.connection, wording.still_running):
            entry = self.calls[told_result.call_id]
            assert entry.home == self.connection, "a response to a call that was not issued here"
            assert not entry.cancelled, "a response to a cancelled call"
            self.written(told_result.call_id, is_response=True)

    @rule()
    def settle(self) -> None:
        for told_result in self.ledger.settle(self.connection, wording.still_running):
            entry = self.calls[told_result.call_id]
            assert entry.home != 0
            assert not entry.cancelled
            self.written(
                told_result.call_id, is_response=True, carries=told_result.output.startswith("<")
            )

    @rule()
    def settle_fails(self) -> None:
        settle_failed(self.ledger, self.connection)
        for call_id, entry in self.calls.items():
            found = self.ledger.get(call_id)
            if found is not None and found.known is Known.NO:
                entry.told_on = 0

    @rule()
    def say(self) -> None:
        records = self.ledger.to_say(self.connection)
        self.ledger.said(records, self.connection)
        for said in records:
            self.written(said.call.call_id, is_response=False)

    @rule(about_other=st.booleans())
    def start(self, about_other: bool) -> None:
        self.evidence = generation_started(self.ledger, self.connection, about_other=about_other)
        for call_id in self.evidence:
            assert self.calls[call_id].told_on == self.connection, "evidence for the untold"

    @rule(how=st.sampled_from(["completed", "interrupted", "cut"]))
    def end(self, how: str) -> None:
        if how == "cut":
            generation_cut(self.ledger, self.evidence, "It is")
        else:
            ended = generation_completed if how == "completed" else generation_interrupted
            for call_id, outcome in ended(self.ledger, self.evidence):
                self.calls[call_id].is_known = True
                self.outcomes.append(call_id)
                if outcome is Outcome.REPLIED:
                    assert how == "completed"
                    assert self.calls[call_id].wanted
        self.evidence = ()

    @rule()
    def stay_silent(self) -> None:
        self.ledger.ask_again()
        for call_id in self.ledger.give_up():
            self.calls[call_id].is_known = True
            self.outcomes.append(call_id)

    @rule()
    def reconnect(self) -> None:
        generation_cut(self.ledger, self.evidence, "")
        self.evidence = ()
        connection_closed(self.ledger, self.connection)
        for entry in self.calls.values():
            entry.told_on = 0
        self.connection += 1

    def written(self, call_id: str, *, is_response: bool, carries: bool = True) -> None:
        """Something about a call went over the wire."""
        entry = self.calls[call_id]
        if is_response:
            times = entry.responses.get(self.connection, 0) + 1
            assert times == 1, f"{call_id} was answered twice on one connection"
            entry.responses[self.connection] = times
        if carries:
            assert entry.has_result
            assert not entry.is_known, "told although it is known"
            assert entry.told_on != self.connection, "told twice on one connection"
            entry.told_on = self.connection

    # ------------------------------------------------------------ what must hold

    @invariant()
    def nothing_is_lost(self) -> None:
        pending = {r.call_id for r in self.ledger.pending}
        for call_id, entry in self.calls.items():
            if entry.has_result:
                there = entry.is_known + (entry.told_on == self.connection) * (not entry.is_known)
                assert (call_id in pending) + there == 1, call_id

    @invariant()
    def reply_and_knowledge_agree(self) -> None:
        for found in self.ledger:
            if found.result is None or found.cancelled:
                assert found.reply is Reply.NONE
            if found.reply is Reply.STARTED:
                assert found.known is Known.TOLD
            if found.reply is Reply.DONE:
                assert found.known is Known.KNOWN
            if found.known is Known.KNOWN:
                assert found.reply in (Reply.DONE, Reply.NONE)

    @invariant()
    def each_result_has_one_outcome(self) -> None:
        assert len(self.outcomes) == len(set(self.outcomes))

    @invariant()
    def what_is_untold_is_said_or_answered_next(self) -> None:
        sayable = {r.call.call_id for r in self.ledger.to_say(self.connection)}
        for call_id, entry in self.calls.items():
            found = self.ledger.get(call_id)
            if found is not None and found.owed and call_id not in sayable:
                assert entry.home == self.connection, f"nobody will tell {call_id}"


def test_no_sequence_loses_doubles_or_misroutes_a_result() -> None:
    """Promises 1 and 2, for every order of what can happen to a call; every method is total."""
    run_state_machine_as_test(
        AnySequence,
        settings=settings(
            max_examples=150, stateful_step_count=40, deadline=None, derandomize=True
        ),
    )
