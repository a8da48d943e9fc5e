"""The turn tracker: frames in, reports out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livekit_gemini_resilient.core.events import ServerFrame, ToolCall
from livekit_gemini_resilient.core.reports import (
    AudioEnded,
    BargedIn,
    Called,
    Closed,
    Ending,
    Heard,
    Lack,
    Missed,
    Opened,
    Report,
    Spoke,
    Started,
    TurnEnded,
    Wrote,
)
from livekit_gemini_resilient.core.turn import TurnTracker
from livekit_gemini_resilient.core.turn_state import TurnState

AUDIO = b"\x00\x00"
CALL = ToolCall(call_id="c1", name="lookup", arguments="{}")

FRAMES: dict[str, dict[str, object]] = {
    "words": {"user_words": " Hi"},
    "audio": {"audio": (AUDIO,)},
    "text": {"text": "Hello"},
    "calls": {"calls": (CALL,)},
    "complete": {"generation_complete": True},
    "turn_end": {"turn_complete": True},
    "more follows": {"turn_complete": True, "more_follows": True},
    "interrupted": {"interrupted": True},
    "empty": {},
    "usage": {"usage": object()},
    "all": {
        "audio": (AUDIO, AUDIO),
        "text": "Hello",
        "user_words": "Hi",
        "calls": (CALL,),
        "interrupted": True,
        "generation_complete": True,
        "turn_complete": True,
    },
}
OTHER = ("answered", "time passes", "lost")

PATHS: dict[TurnState, tuple[str, ...]] = {
    TurnState.IDLE: (),
    TurnState.LISTENING: ("words",),
    TurnState.GENERATING: ("audio",),
    TurnState.GENERATION_COMPLETED: ("audio", "complete"),
    TurnState.AWAITING_TOOLS: ("calls",),
    TurnState.TRAILING: ("calls", "audio"),
    TurnState.INTERRUPTED: ("audio", "interrupted"),
    TurnState.HUSHED: ("interrupted",),
    TurnState.BETWEEN: ("audio", "more follows"),
}
WITH_GENERATION = {
    TurnState.LISTENING,
    TurnState.GENERATING,
    TurnState.GENERATION_COMPLETED,
    TurnState.TRAILING,
}


class Turns:
    """A tracker, its clock, and a check of every report."""

    def __init__(self, *, tools_block: bool = True) -> None:
        self.tracker = TurnTracker(trailing_quiet=0.25, transcript_grace=0.25, stalled_after=10.0)
        self.tools_block = tools_block
        self.now = 0.0
        self.all: list[Report] = []
        self._open: int | None = None

    def see(self, *signs: str) -> list[Report]:
        """Frames of these kinds arrive, one after the other."""
        reports: list[Report] = []
        for sign in signs:
            if sign == "answered":
                answered = self.tracker.answered(model_waits=self.tools_block, now=self.now)
                reports += self._checked(answered)
            elif sign == "time passes":
                reports += self.wait(60.0)
            elif sign == "lost":
                reports += self._checked(self.tracker.connection_lost(model_waits=self.tools_block))
            else:
                frame = ServerFrame(connection=1, **FRAMES[sign])  # type: ignore[arg-type]
                reports += self._checked(self.tracker.receive(frame, now=self.now))
        return reports

    def wait(self, seconds: float) -> list[Report]:
        """Time passes; every deadline fires."""
        until, reports = self.now + seconds, []
        for _ in range(10):
            deadline = self.tracker.next_deadline
            if deadline is None or deadline > until:
                break
            assert deadline >= self.now, "a deadline lies in the past"
            self.now = deadline
            reports += self._checked(self.tracker.advance(now=self.now))
        else:
            raise AssertionError("the tracker keeps waking up")
        self.now = until
        return reports

    def _checked(self, reports: Iterable[Report]) -> Iterator[Report]:
        for report in reports:
            match report:
                case Opened(generation=number):
                    assert self._open is None, "two generations open"
                    self._open = number
                case Closed(generation=number):
                    assert number == self._open
                    self._open = None
                case (
                    Started(generation=number)
                    | Spoke(generation=number)
                    | Wrote(generation=number)
                    | Called(generation=number)
                    | AudioEnded(generation=number)
                ):
                    assert number == self._open, "content of a generation that is not open"
            self.all.append(report)
            yield report
        assert self.tracker.generation == self._open
        if self.tracker.state is not TurnState.GENERATION_COMPLETED:
            assert (self._open is not None) == (self.tracker.state in WITH_GENERATION)


def kinds(reports: Iterable[Report]) -> list[type[Report]]:
    """What kind of reports these are."""
    return [type(report) for report in reports]


# ------------------------------------------------------------ totality


@pytest.mark.parametrize("tools_block", [True, False])
@pytest.mark.parametrize("sign", [*FRAMES, *OTHER])
@pytest.mark.parametrize("state", list(TurnState))
def test_every_state_takes_every_sign(state: TurnState, sign: str, tools_block: bool) -> None:
    """No pair raises; at most one generation is open, and every one that opens closes."""
    turns = Turns(tools_block=tools_block)
    turns.see(*PATHS[state])
    assert turns.tracker.state is state
    turns.see(sign)
    turns.see("answered", "time passes")
    assert turns.tracker.generation is None or turns.tracker.state is TurnState.TRAILING
    turns.see("lost")
    assert turns.tracker.generation is None
    assert turns.tracker.next_deadline is None


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*FRAMES, *OTHER]), max_size=12), st.booleans())
def test_no_order_of_signs_leaves_a_turn_open_for_ever(signs: list[str], blocks: bool) -> None:
    """Whatever came, once all calls are answered and time has passed nothing is open."""
    turns = Turns(tools_block=blocks)
    turns.see(*signs, "answered", "time passes", "answered", "time passes")
    assert turns.tracker.quiet
    assert turns.tracker.next_deadline is None
    opened = sum(isinstance(report, Opened) for report in turns.all)
    assert opened == sum(isinstance(report, Closed) for report in turns.all)


# ------------------------------------------------------------ the rules


@pytest.mark.parametrize("sign", ["empty", "usage", "complete", "turn_end"])
def test_only_real_content_opens_a_generation(sign: str) -> None:
    """B8: empty and usage-only content never does."""
    assert Opened not in kinds(Turns().see(sign))


def test_a_call_closes_its_generation_at_once() -> None:
    """LiveKit hands over no result while the generation that carried the call is open."""
    turns = Turns()
    reports = turns.see("words", "calls")
    assert kinds(reports)[-2:] == [Called, Closed]
    assert turns.tracker.state is TurnState.AWAITING_TOOLS


def test_what_trails_a_call_opens_a_further_generation_that_continues() -> None:
    """B1: audio after the call is played, and is nobody's barge-in."""
    turns = Turns()
    turns.see("audio", "calls")
    opened, started, spoke = turns.see("audio")
    assert isinstance(opened, Opened)
    assert opened.continues
    assert kinds([started, spoke]) == [Started, Spoke]


def test_a_trailing_generation_closes_soon_after_its_last_frame() -> None:
    """B1: ``trailing_quiet`` seconds, counted anew by every frame."""
    turns = Turns()
    turns.see("calls", "audio")
    assert turns.wait(0.2) == []
    turns.see("text")
    assert turns.wait(0.2) == []
    (closed,) = turns.wait(0.1)
    assert closed == Closed(generation=2, ending=Ending.COMPLETED)


@pytest.mark.parametrize("sign", ["complete", "turn_end"])
def test_an_end_frame_closes_a_trailing_generation_at_once(sign: str) -> None:
    """B1: nothing more of the asking turn will come, and the model still waits for the tools."""
    turns = Turns()
    turns.see("calls", "audio")
    assert Closed(generation=2, ending=Ending.COMPLETED) in turns.see(sign)
    assert turns.tracker.state is TurnState.AWAITING_TOOLS


def test_content_and_call_in_one_tick_are_two_generations() -> None:
    """B2: a call, then trailing audio, with no time in between."""
    turns = Turns()
    turns.see("audio", "calls", "audio", "calls")
    numbers = [r.generation for r in turns.all if isinstance(r, Called)]
    assert numbers == [1, 2]


def test_a_second_call_message_is_a_batch_of_its_own() -> None:
    """B3: it gets its own generation, which continues the turn."""
    turns = Turns()
    turns.see("calls")
    opened, _, called, closed = turns.see("calls")
    assert isinstance(opened, Opened)
    assert opened.continues
    assert kinds([called, closed]) == [Called, Closed]


def test_late_words_after_a_call_join_the_turn_of_the_caller() -> None:
    """B4: they open nothing, and are the same message."""
    turns = Turns()
    turns.see("words", "calls")
    assert turns.see("words") == [Heard(text=" Hi", new_turn=False)]


def test_words_long_after_a_call_are_a_new_turn_of_the_caller() -> None:
    """B4: what is said while the tool runs is not what prompted it."""
    turns = Turns()
    turns.see("words", "calls")
    turns.wait(5.0)
    assert turns.see("words") == [Heard(text=" Hi", new_turn=True)]


@pytest.mark.parametrize("end", ["turn_end", "time passes", "lost"])
def test_words_after_a_turn_without_an_answer_are_a_message_of_their_own(end: str) -> None:
    """A handle may have covered the words before; a message is covered whole or not at all."""
    turns = Turns()
    turns.see("words", end)
    assert Heard(text=" Hi", new_turn=True) in turns.see("words")


def test_audio_ends_when_the_generation_is_complete() -> None:
    """B5: not when the server thinks that it has been heard."""
    turns = Turns()
    turns.see("audio")
    assert turns.see("complete") == [AudioEnded(generation=1)]


def test_audio_after_generation_complete_is_a_generation_that_continues() -> None:
    """B6: played, and it interrupts nothing."""
    turns = Turns()
    turns.see("audio", "complete")
    closed, opened, *_ = turns.see("audio")
    assert closed == Closed(generation=1, ending=Ending.COMPLETED)
    assert opened == Opened(generation=2, continues=True)


def test_words_of_the_model_may_trail_generation_complete() -> None:
    """B17: the same message, no new speech; after the grace they are dropped."""
    turns = Turns()
    turns.see("audio", "complete")
    assert turns.see("text") == [Wrote(generation=1, text="Hello")]
    assert turns.wait(0.3) == [Closed(generation=1, ending=Ending.COMPLETED)]
    assert turns.see("text") == []


def test_new_words_before_a_late_turn_end_open_the_next_generation() -> None:
    """B5: the server waits for playout; its late ``turnComplete`` ends nothing that came after."""
    turns = Turns()
    turns.see("audio", "complete")
    turns.wait(3.0)
    assert kinds(turns.see("words")) == [Opened, Heard]
    assert turns.see("turn_end") == []
    assert kinds(turns.see("audio")) == [Started, Spoke]


def test_an_interrupted_message_ends_at_once() -> None:
    """B7: closed as interrupted, before the caller is reported."""
    turns = Turns()
    turns.see("audio")
    assert turns.see("interrupted") == [
        Closed(generation=1, ending=Ending.INTERRUPTED),
        BargedIn(),
    ]


def test_stale_audio_after_an_interruption_is_not_played() -> None:
    """B7: until the turn ends, the caller speaks, or a pause."""
    turns = Turns()
    turns.see("audio", "interrupted")
    assert turns.see("audio", "text") == []


@pytest.mark.parametrize("end", ["turn_end", "time passes"])
def test_an_interrupted_turn_does_not_swallow_the_next(end: str) -> None:
    """B7: with its ``turnComplete`` and without."""
    turns = Turns()
    turns.see("audio", "interrupted", end)
    assert kinds(turns.see("audio")) == [Opened, Started, Spoke]


@pytest.mark.parametrize("between", [("words",), ("words", "audio"), ("time passes", "audio")])
def test_a_late_end_of_an_interrupted_turn_ends_nothing_that_came_after(
    between: tuple[str, ...],
) -> None:
    """B7: neither the end of the next generation nor an empty answer."""
    turns = Turns()
    turns.see("audio", "interrupted", *between)
    generation = turns.tracker.generation
    assert turns.see("turn_end") == []
    assert turns.tracker.generation == generation
    turns.see("audio", "complete")
    assert kinds(turns.see("turn_end")) == [Closed, TurnEnded]


def test_an_interruption_while_nothing_is_open_ends_nothing() -> None:
    """B7: the next turn is heard, and the end that trails is no empty turn."""
    turns = Turns()
    assert turns.see("interrupted") == [BargedIn()]
    assert turns.see("turn_end") == []
    assert kinds(turns.see("audio")) == [Opened, Started, Spoke]


def test_an_empty_turn_is_reported_as_empty() -> None:
    """It answers nothing."""
    assert Turns().see("turn_end") == [TurnEnded(empty=True)]


def test_a_turn_with_content_is_not_empty() -> None:
    """Also if the content was a call or came before ``generationComplete``."""
    assert TurnEnded(empty=False) in Turns().see("audio", "complete", "turn_end")


def test_nothing_is_reported_as_the_end_of_a_turn_while_tools_run() -> None:
    """A blocking server ends nothing before it has the result."""
    assert Turns().see("calls", "turn_end")[-1] == Closed(generation=1, ending=Ending.COMPLETED)


def test_the_reply_of_a_blocking_server_is_not_part_of_what_trailed_the_call() -> None:
    """The trailing generation ends with the answer, so the reply has one of its own."""
    turns = Turns()
    turns.see("calls", "audio")
    assert turns.see("answered") == [Closed(generation=2, ending=Ending.COMPLETED)]
    assert kinds(turns.see("audio")) == [Opened, Started, Spoke]


def test_the_speech_of_a_model_that_did_not_wait_goes_on_after_the_answer() -> None:
    """A17: the same generation, neither cut nor taken for the reply."""
    turns = Turns(tools_block=False)
    turns.see("calls", "audio")
    assert turns.see("answered") == []
    assert kinds(turns.see("audio")) == [Spoke]
    assert turns.wait(5.0) == []


def test_a_lost_connection_cuts_what_is_open() -> None:
    """What was complete is complete."""
    turns = Turns()
    turns.see("audio")
    assert turns.see("lost") == [Closed(generation=1, ending=Ending.CUT)]
    turns.see("audio", "complete")
    assert turns.see("lost") == [Closed(generation=2, ending=Ending.COMPLETED)]


def test_a_link_lost_between_words_and_answer_leaves_the_caller_waiting() -> None:
    """B15: the only sign that the caller has finished is that the words were heard."""
    turns = Turns()
    turns.see("words")
    assert turns.see("lost")[-1] == Missed(lack=Lack.LINK)
    turns.see("words", "audio")
    assert Missed not in kinds(turns.see("lost"))


def test_words_that_cancelled_a_call_leave_the_caller_waiting() -> None:
    """B15: the turn of the call ends without an answer to them."""
    turns = Turns()
    turns.see("words", "calls")
    turns.wait(5.0)
    turns.see("words", "answered", "turn_end")
    assert turns.tracker.speaking
    assert turns.wait(11.0) == [Missed(lack=Lack.ANSWER)]
    assert turns.tracker.quiet
    assert turns.wait(11.0) == []


def test_a_turn_without_a_word_is_the_models_decision_unless_it_was_interrupted() -> None:
    """Words of ours that cross the answer on the wire stop it, too."""
    turns = Turns()
    turns.see("words", "turn_end")
    assert turns.wait(11.0) == []
    turns.see("words", "interrupted", "turn_end")
    assert turns.wait(11.0) == [Missed(lack=Lack.ANSWER)]


@pytest.mark.parametrize("model_waits", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_words_during_a_call_are_owed_an_answer_of_their_own_where_the_model_does_not_wait(
    model_waits: bool, late: bool
) -> None:
    """B15: elsewhere the reply to the result is about both. Words right after the call prompted
    it: the call is the answer."""
    turns = Turns(tools_block=model_waits)
    turns.see("calls")
    turns.wait(1.0 if late else 5.0)
    turns.see("words")
    missed = [] if model_waits or late else [Missed(lack=Lack.LINK)]
    assert turns.see("lost") == missed


@pytest.mark.parametrize("sign", ["audio", "text", "calls"])
def test_what_follows_a_turn_that_promised_more_continues_it(sign: str) -> None:
    """B9: nobody spoke in between, so nothing is interrupted."""
    turns = Turns()
    turns.see("words", "audio", "complete", "more follows")
    assert not turns.tracker.quiet
    assert turns.tracker.speaking
    (opened, *_) = turns.see(sign)
    assert opened == Opened(generation=2, continues=True)


def test_an_interaction_ends_with_the_turn_that_promises_nothing() -> None:
    """B9: each utterance is a turn, and the last one is the end."""
    turns = Turns()
    turns.see("audio", "more follows", "audio", "complete", "turn_end")
    assert turns.tracker.quiet


def test_a_turn_that_only_promises_more_is_no_empty_answer() -> None:
    """B9: the model is at work."""
    assert Turns().see("more follows") == []


def test_an_interaction_that_may_go_on_and_does_not_is_over_in_time() -> None:
    """Nothing waits without a timer; nothing is missed, since more may follow and need not."""
    turns = Turns()
    turns.see("audio", "more follows")
    assert not turns.tracker.quiet
    assert turns.wait(11.0) == []
    assert turns.tracker.quiet


def test_a_reply_that_stops_in_the_middle_is_cut() -> None:
    """B16: after a silence that is longer than any healthy pause."""
    turns = Turns()
    turns.see("audio")
    assert turns.wait(9.0) == []
    turns.see("audio")
    assert turns.wait(9.0) == []
    assert turns.wait(2.0) == [Closed(generation=1, ending=Ending.CUT), Missed(lack=Lack.REST)]


def test_words_without_any_answer_are_closed() -> None:
    """Nothing waits for ever: what is to be put before the model can be."""
    turns = Turns()
    turns.see("words")
    assert turns.wait(11.0) == [
        Closed(generation=1, ending=Ending.COMPLETED),
        Missed(lack=Lack.ANSWER),
    ]
    assert turns.tracker.quiet


def test_the_late_end_of_a_stalled_turn_is_not_the_end_of_the_next() -> None:
    """B16: as with an interrupted one."""
    turns = Turns()
    turns.see("audio")
    turns.wait(11.0)
    turns.see("audio")
    assert turns.see("turn_end") == []
    assert kinds(turns.see("complete", "turn_end")) == [AudioEnded, Closed, TurnEnded]


def test_a_tool_may_run_for_as_long_as_it_likes() -> None:
    """No timer of the tracker ends the wait for a result."""
    turns = Turns()
    turns.see("calls")
    assert turns.tracker.next_deadline is None
    assert turns.wait(600.0) == []
