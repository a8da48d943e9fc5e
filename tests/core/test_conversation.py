"""The whole conversation against the pure server: one story per test."""

from __future__ import annotations

from itertools import product

import pytest

from livekit_gemini_resilient.core.effects import (
    Outcome,
    SendContent,
    SendInput,
    SendText,
    SendToolResponse,
    UpdateContext,
)
from livekit_gemini_resilient.core.errors import ResultUnanswered
from livekit_gemini_resilient.core.events import (
    ContextUpdated,
    InputPushed,
    InstructionsChanged,
    ReplyRequested,
    ReplyWithdrawn,
    RestartCause,
)
from livekit_gemini_resilient.core.link import LinkState
from livekit_gemini_resilient.core.rotation import HANDLE_GRACE
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result
from .test_update_tools_product import (
    FOREIGN,
    HANDLES,
    TOKEN,
    check,
    conversation,
    later_turn_works,
)

# ------------------------------------------------------------ losses


@pytest.mark.parametrize(
    ("handle", "foreign", "code", "arrival"),
    list(product(HANDLES, FOREIGN, (1011, None), ("closing", "backing off", "dialing"))),
)
def test_a_result_that_arrives_while_the_link_is_lost_is_told_once(
    handle: str, foreign: str, code: int | None, arrival: str
) -> None:
    """A5: lost before the result; the model learns it on the next connection and speaks."""
    driver = conversation(handle=handle, foreign=foreign)
    driver.lose(code)
    if arrival == "closing":
        driver.returns(result("c1"))
    elif arrival == "backing off":
        driver.fail_dial(code)
        driver.returns(result("c1"))
    else:
        dial = driver.build_setup()
        driver.returns(result("c1"))
        driver.opens(dial)
    check(driver, connections=2)


@pytest.mark.parametrize(
    ("handle", "foreign", "code", "frames"),
    list(product(HANDLES, FOREIGN, (1011, None), (0, 1))),
)
def test_a_result_that_was_written_before_the_link_was_lost_is_told_again_once(
    handle: str, foreign: str, code: int | None, frames: int
) -> None:
    """A6: lost after the write, before any reaction or in the middle of the reply."""
    driver = conversation(handle=handle, foreign=foreign)
    driver.returns(result("c1"))
    driver.deliver(frames)
    driver.lose(code)
    check(driver, connections=2)


@pytest.mark.parametrize(("handle", "foreign"), list(product(HANDLES, FOREIGN)))
def test_a_reply_that_was_complete_before_the_link_was_lost_is_not_repeated(
    handle: str, foreign: str
) -> None:
    """Promise 2: nothing follows ``generationComplete`` that the caller needs."""
    driver = conversation(handle=handle, foreign=foreign)
    driver.returns(result("c1"))
    driver.deliver(3)
    driver.lose(1011)
    check(driver, connections=2)


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("losses", [1, 2])
def test_a_result_is_told_again_when_the_say_is_lost_too(foreign: str, losses: int) -> None:
    """A6: a second connection that dies while it is being told costs nothing but time."""
    driver = conversation(handle="fresh", foreign=foreign)
    driver.lose()
    driver.returns(result("c1"))
    for _ in range(losses):
        driver.connect()
        driver.elapse(1.0)
        driver.lose(None)
    check(driver, connections=2 + losses)


@pytest.mark.parametrize(("handle", "foreign"), list(product(HANDLES, FOREIGN)))
@pytest.mark.parametrize("restarts", [True, False])
def test_results_of_one_batch_are_each_told_once_when_one_is_late(
    handle: str, foreign: str, restarts: bool
) -> None:
    """A14: one tool finishes before the connection is replaced, the other after it."""
    driver = conversation(handle=handle, foreign=foreign)
    driver.server.call(1, call("c2"))
    driver.deliver()
    driver.returns(result("c1"))
    if restarts:
        driver.request_restart(RestartCause.TOOLS)
        driver.finish_close()
    else:
        driver.lose()
    driver.connect()
    driver.deliver()
    driver.elapse(2.0)
    driver.deliver()
    driver.returns(result("c2"))
    driver.settle()
    for call_id in ("c1", "c2"):
        assert driver.outcome(call_id) == [Outcome.REPLIED]
        assert len(driver.replies(f"<{call_id}=42>")) == 1
        for connection in driver.server.connections.values():
            assert connection.responses.count(call_id) <= 1
    assert driver.server.faults == []
    later_turn_works(driver)


@pytest.mark.parametrize("foreign", FOREIGN)
def test_results_that_are_there_together_get_one_settle_one_say_and_one_reply(
    foreign: str,
) -> None:
    """A14: what is told together is told in one message."""
    driver = conversation(handle="fresh", foreign=foreign)
    driver.server.call(1, call("c2"))
    driver.deliver()
    driver.lose()
    driver.returns(result("c1"), result("c2"))
    driver.settle()
    about = [reply.about for reply in driver.server.replies if reply.done and reply.about]
    assert about == [("<c1=42>", "<c2=42>")]
    assert driver.server.live.responses == ["c1", "c2"]
    assert len(driver.server.live.prompts) == (0 if foreign == "answered" else 1)


def test_an_answer_to_the_caller_is_no_reply_to_a_response_that_settles() -> None:
    """Such a response may be ignored; the result is then told once the caller was answered."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.lose()
    driver.returns(result("c1"))
    driver.connect()
    driver.server.hear(2, "Are you still there?")
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert len(driver.replies("<c1=42>")) == 1
    assert driver.server.faults == []
    later_turn_works(driver)


def test_trailing_speech_is_no_reply_to_one_result_while_another_call_is_open() -> None:
    """B1 and A14: a blocking model waits for all results; what it says before is old."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.server.call(1, call("c2"))
    driver.deliver()
    driver.returns(result("c1"))
    driver.server.send(1, audio=(b"\x00\x00",), text="One moment.")
    driver.deliver()
    driver.elapse(1.0)
    assert driver.outcome("c1") == []
    driver.lose()
    driver.returns(result("c2"))
    driver.settle()
    assert len(driver.replies("<c1=42>")) == 1
    assert len(driver.replies("<c2=42>")) == 1


def test_a_call_that_is_delivered_twice_is_no_reply_to_a_result() -> None:
    """B14: a duplicate is neither run nor answered, and proves nothing."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.server.mute = True
    driver.returns(result("c1"))
    driver.server.send(1, calls=(call("c1"),))
    driver.deliver()
    driver.server.mute = False
    assert [c.call_id for c in driver.called] == ["c1"]
    assert driver.outcome("c1") == []
    driver.lose()
    check(driver, connections=2)


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_call_that_crosses_a_result_on_the_wire_is_no_reply_to_it(foreign: str) -> None:
    """B3 and A14: the second call was issued before the model knew the first result."""
    driver = conversation(handle="fresh", foreign=foreign)
    driver.server.call(1, call("c2"))
    driver.returns(result("c1"))
    driver.deliver()
    assert driver.outcome("c1") == []
    driver.lose()
    driver.returns(result("c2"))
    driver.settle()
    about = [reply.about for reply in driver.server.replies if reply.done and reply.about]
    assert about == [("<c1=42>", "<c2=42>")]
    assert {outcome for _, outcome in driver.outcomes} == {Outcome.REPLIED}


def test_the_same_call_twice_in_one_message_runs_once() -> None:
    """B14: also within one frame."""
    driver = Driver()
    driver.connect()
    driver.server.call(1, call("c1"), call("c1"))
    driver.deliver()
    assert [c.call_id for c in driver.called] == ["c1"]


# ------------------------------------------------------------ cancellation


def test_a_cancelled_call_gets_no_response_and_what_was_done_is_said_without_a_question() -> None:
    """A10: the result of a cancelled call is for the record."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.server.cancel(1, "c1")
    driver.deliver()
    driver.returns(result("c1"))
    driver.settle()
    assert driver.server.live.responses == []
    assert TOKEN in driver.server.live.text
    assert driver.replies(TOKEN) == []
    later_turn_works(driver)


def test_a_cancellation_that_crosses_the_response_asks_for_no_reply() -> None:
    """A10: the response was ignored, so the model is told for the record, and not nudged."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.server.mute = True
    driver.returns(result("c1"))
    driver.server.mute = False
    driver.server.cancel(1, "c1")
    driver.deliver()
    driver.settle()
    assert driver.server.live.responses == ["c1"]
    assert driver.server.live.prompts == []
    assert driver.errors == []
    assert [e for e in driver.written if isinstance(e, SendContent) and not e.turn_complete]


def test_other_calls_of_a_batch_are_unaffected_by_a_cancellation() -> None:
    """A10: only the cancelled id goes without an answer."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.server.call(1, call("c2"))
    driver.server.cancel(1, "c2")
    driver.deliver()
    driver.returns(result("c1"))
    driver.settle()
    assert driver.server.live.responses == ["c1"]
    assert driver.outcome("c1") == [Outcome.REPLIED]


# ------------------------------------------------------------ rotation


def test_a_burst_of_updates_costs_one_reconnect() -> None:
    """D5: requests coalesce, also those that come while the connection is being closed."""
    driver = conversation(handle="fresh", foreign="ignored")
    for cause in (RestartCause.OPTIONS, RestartCause.TOOLS, RestartCause.INSTRUCTIONS):
        driver.request_restart(cause)
    driver.request_restart(RestartCause.OPTIONS)
    driver.returns(result("c1"))
    check(driver, connections=2)


def test_a_request_after_the_setup_was_built_costs_another_reconnect() -> None:
    """D5: what is not in the setup message needs a connection of its own; nothing is lost."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.request_restart(RestartCause.TOOLS)
    driver.finish_close()
    dial = driver.build_setup()
    driver.request_restart(RestartCause.OPTIONS)
    driver.returns(result("c1"))
    driver.opens(dial)
    check(driver, connections=3)


def test_the_reply_to_a_tool_that_took_long_is_not_cut_by_a_restart() -> None:
    """Promise 4: a change asked for while the tool ran waits for the reply to its result."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.request_restart(RestartCause.OPTIONS)
    driver.elapse(45.0)
    driver.returns(result("c1"))
    check(driver, connections=2)
    assert not any(interrupted for _, interrupted in driver.ended)
    assert driver.replies(TOKEN)[0].connection == 1


@pytest.mark.parametrize("foreign", FOREIGN)
def test_go_away_waits_for_the_reply_to_a_result(foreign: str) -> None:
    """A4 and D1: the exchange is finished first, and costs one reconnect."""
    driver = conversation(handle="fresh", foreign=foreign)
    driver.server.send(1, time_left=50.0)
    driver.deliver()
    driver.elapse(10.0)
    assert driver.closing is None
    driver.returns(result("c1"))
    check(driver, connections=2)
    assert not any(interrupted for _, interrupted in driver.ended)


@pytest.mark.parametrize("foreign", FOREIGN)
def test_go_away_fires_on_a_silent_server_while_a_tool_runs(foreign: str) -> None:
    """D4: the deadline is a timer; the result is told on the new connection."""
    driver = conversation(handle="fresh", foreign=foreign)
    driver.server.send(1, time_left=50.0)
    driver.deliver()
    driver.elapse(46.0)
    assert driver.closing == 1
    driver.finish_close()
    driver.connect()
    driver.elapse(2.0)
    driver.deliver()
    driver.returns(result("c1"))
    check(driver, connections=2)


def test_go_away_in_mid_sentence_lets_the_turn_end() -> None:
    """D1: audio is not cut before the deadline."""
    driver = Driver()
    driver.connect()
    driver.server.hear(1, "Tell me a story.")
    driver.deliver(2)
    driver.server.send(1, time_left=50.0)
    driver.deliver()
    driver.settle()
    assert driver.ended == [("s1.", False)]
    assert len(driver.server.connections) == 2


def test_a_pause_does_not_come_while_the_caller_waits_for_an_answer() -> None:
    """D9: words that were heard are answered on the connection that heard them."""
    driver = Driver(ResilienceOptions(restart_when="pause"))
    driver.connect()
    driver.server.hear(1, "Are you there?")
    driver.deliver(1)
    driver.request_restart(RestartCause.TOOLS)
    driver.settle()
    assert [reply.connection for reply in driver.server.replies if reply.done] == [1]
    assert len(driver.server.connections) == 2


# ------------------------------------------------------------ history


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize("moment", ["closing", "dialing", "after"])
def test_a_chat_message_queued_across_a_restart_is_told_once(resumed: bool, moment: str) -> None:
    """A4: nothing is carried both by the queue and by the replay."""
    driver = Driver()
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.hear(1, "Hello.")
    driver.deliver()
    if resumed:
        driver.server.snapshot(1)
        driver.deliver()
    driver.elapse(1.0)
    driver.request_restart(RestartCause.OPTIONS)
    if moment == "closing":
        driver.adds("m1", "user", "The order is late.")
    driver.finish_close()
    dial = driver.build_setup()
    if moment == "dialing":
        driver.adds("m1", "user", "The order is late.")
    driver.opens(dial)
    if moment == "after":
        driver.adds("m1", "user", "The order is late.")
    driver.settle()
    assert driver.server.live.text.count("The order is late.") == 1
    assert driver.server.live.text.count("Hello.") == 1
    assert len(driver.server.connections) == 2


def test_a_resumed_session_gets_only_what_its_handle_does_not_cover() -> None:
    """F1: what was said after the handle was issued, and nothing else."""
    driver = Driver()
    driver.connect()
    driver.server.hear(1, "Hello.")
    driver.deliver()
    driver.server.snapshot(1)
    driver.deliver()
    driver.server.hear(1, "And how are you?")
    driver.deliver()
    driver.lose(None)
    driver.settle()
    (told,) = [e for e in driver.written if isinstance(e, SendContent)]
    assert [(turn.role, turn.parts) for turn in told.turns] == [
        ("user", ("And how are you?",)),
        ("model", ("s3.",)),
    ]
    assert not told.turn_complete


def test_a_handle_between_generation_complete_and_turn_complete_covers_the_turn() -> None:
    """F2: all of the turn was generated, so none of it is sent again."""
    driver = conversation(handle="none", foreign="ignored")
    driver.returns(result("c1"))
    driver.deliver(3)
    driver.server.snapshot(1)
    driver.server.send(1, turn_complete=True)
    frame = driver.server._outbox.popleft()
    assert frame.frame.turn_complete
    driver.deliver()
    written = len(driver.written)
    driver.lose(None)
    driver.settle()
    assert driver.written[written:] == []


def test_a_fresh_session_gets_every_tool_exchange_as_text_once() -> None:
    """F3: function parts would close the connection, so a call and its result are one sentence."""
    driver = conversation(handle="none", foreign="ignored")
    driver.returns(result("c1"))
    driver.deliver()
    driver.lose()
    driver.settle()
    seed = driver.server.live.text
    assert seed.count(TOKEN) == 2, "the exchange, and the model's words about it"
    assert 'lookup({"q": "c1"}) returned: <c1=42>' in seed
    assert driver.server.live.responses == []
    assert driver.server.live.prompts == []


def test_the_context_of_a_caller_supplied_handle_is_not_sent_when_the_first_link_drops() -> None:
    """F1: it covers that to the model's last words, on every connection that uses it."""
    driver = Driver(handle="theirs")
    driver.server._snapshots["theirs"] = ("user: From before.", "model: I see.")
    driver.adds("m1", "user", "From before.")
    driver.adds("m2", "model", "I see.")
    driver.connect()
    driver.lose(None)
    driver.settle()
    assert driver.written == []
    assert driver.server.live.handle == "theirs"


def test_a_first_connection_is_no_reconnect_however_many_dials_it_took() -> None:
    """E9: ``session_reconnected`` is for conversations that had a connection."""
    driver = Driver()
    driver.fail_dial()
    driver.connect()
    assert driver.reconnects == []


def test_instructions_changed_in_place_are_sent_once_and_not_after_a_new_setup() -> None:
    """The setup message carries the newest instruction by itself."""
    driver = Driver()
    driver.connect()
    driver.feed(InstructionsChanged(text="Be brief."))
    (sent,) = driver.written
    assert isinstance(sent, SendContent)
    assert sent.turns[0].role == "system"
    driver.lose()
    driver.feed(InstructionsChanged(text="Be long."))
    driver.settle()
    assert len(driver.written) == 1


# ------------------------------------------------------------ generate_reply


def test_a_reply_asked_for_without_a_connection_is_asked_once_on_the_next() -> None:
    """C2: queued, then a restart."""
    driver = Driver()
    driver.connect()
    driver.request_restart(RestartCause.OPTIONS)
    driver.feed(ReplyRequested(request=7, instructions="Greet the caller."))
    driver.settle()
    assert driver.answered == [7]
    assert len(driver.server.live.prompts) == 1
    assert "Greet the caller." in driver.server.live.prompts[0]
    later_turn_works(driver)


@pytest.mark.parametrize("code", [1011, None])
def test_a_reply_asked_for_and_lost_before_its_first_word_is_asked_again_once(
    code: int | None,
) -> None:
    """C3: written, then the link drops."""
    driver = Driver()
    driver.connect()
    driver.feed(ReplyRequested(request=7, instructions="Greet the caller."))
    driver.lose(code)
    driver.settle()
    assert driver.answered == [7]
    assert driver.failed == []
    assert [len(c.prompts) for c in driver.server.connections.values()] == [1, 1]


def test_a_withdrawn_reply_never_goes_out() -> None:
    """C4: no ghosts."""
    driver = Driver()
    driver.feed(ReplyRequested(request=7))
    driver.feed(ReplyWithdrawn(request=7))
    driver.settle()
    assert driver.written == []
    assert driver.failed == []


def test_a_reply_asked_for_while_a_blocking_call_is_open_fails_at_once() -> None:
    """C6: LiveKit withholds the result until the reply ends, so waiting would deadlock."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.feed(ReplyRequested(request=7))
    assert driver.failed == [7]
    driver.returns(result("c1"))
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]


@pytest.mark.parametrize("lost", [True, False], ids=["lost", "about to be replaced"])
def test_a_reply_asked_for_while_a_call_loses_its_connection_comes_on_the_next(lost: bool) -> None:
    """A session that LiveKit keeps for an ``AgentTask``: the new connection waits for no tool."""
    driver = conversation(handle="fresh", foreign="ignored")
    if lost:
        driver.lose()
    else:
        driver.request_restart(RestartCause.INSTRUCTIONS)
    driver.feed(ReplyRequested(request=7, instructions="Ask for consent."))
    driver.settle()
    assert driver.failed == []
    assert driver.answered == [7]
    driver.returns(result("c1"))
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]


def test_a_change_that_waits_for_the_call_does_not_free_the_model() -> None:
    """C6: the voice is changed at the end of the turn, which needs the result."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.request_restart(RestartCause.OPTIONS)
    driver.feed(ReplyRequested(request=7))
    assert driver.failed == [7]


def test_instructions_that_change_while_a_call_is_open_need_a_new_connection() -> None:
    """No content is taken then, and the next reply is to obey them."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.feed(InstructionsChanged(text="Be brief."))
    driver.settle()
    assert len(driver.reconnects) == 1
    assert not any(
        t.role == "system" for e in driver.written if isinstance(e, SendContent) for t in e.turns
    )


def test_instructions_that_no_turn_replaces_need_a_new_connection() -> None:
    """Nothing is written to the present one."""
    driver = Driver()
    driver.connect()
    driver.feed(InstructionsChanged(text="Be brief.", by_turn=False))
    driver.settle()
    assert driver.written == []
    assert len(driver.reconnects) == 1


def test_instructions_that_no_turn_may_replace_change_in_place_where_that_is_wanted() -> None:
    """While the model waits for a tool, too: as tools do with ``tool_update``."""
    driver = Driver(ResilienceOptions(tool_update="context_update"))
    driver.connect()
    driver.server.call(1, call("c1"))
    driver.deliver()
    effects = driver.feed(InstructionsChanged(text="Be brief.", in_place=True))
    assert effects == [UpdateContext()]
    driver.settle()
    assert driver.reconnects == []


@pytest.mark.parametrize("by_turn", [True, False])
def test_instructions_of_which_no_setup_can_be_made_cost_no_connection(by_turn: bool) -> None:
    """An error event; what runs goes on, also where a turn would do but for an open call."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.feed(InstructionsChanged(text="Be brief.", by_turn=by_turn, unusable="no such voice"))
    assert driver.closing is None
    ((error, recoverable),) = driver.errors
    assert recoverable
    assert "no such voice" in str(error)


def test_a_reply_asked_for_after_a_result_was_told_comes_after_the_reply_to_it() -> None:
    """Words of ours never cut the reply to a result."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.returns(result("c1"))
    driver.feed(ReplyRequested(request=7, instructions="Greet the caller."))
    assert driver.server.live.prompts == []
    driver.settle()
    assert driver.answered == [7]
    assert driver.server.faults == []
    assert driver.outcome("c1") == [Outcome.REPLIED]


# ------------------------------------------------------------ silence


@pytest.mark.parametrize("tools_block", [True, False])
def test_a_model_that_stays_silent_is_asked_once_more(tools_block: bool) -> None:
    """Promise 3: one nudge, which the model answers."""
    driver = Driver(tools_block=tools_block)
    driver.connect()
    driver.server.call(1, call("c1"))
    driver.deliver()
    driver.server.mute = True
    driver.returns(result("c1"))
    driver.elapse(9.0)
    driver.server.hear(1, "Hello?", answer=False)
    driver.deliver()
    driver.server.mute = False
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert len(driver.server.live.prompts) == 1
    assert driver.errors == []


def test_a_model_that_never_speaks_ends_in_an_error() -> None:
    """Promise 3: asked twice, then an error event; the conversation goes on."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.server.mute = True
    driver.returns(result("c1"))
    driver.settle()
    assert driver.outcome("c1") == [Outcome.UNANSWERED]
    ((error, recoverable),) = driver.errors
    assert isinstance(error, ResultUnanswered)
    assert recoverable
    driver.server.mute = False
    later_turn_works(driver)


def test_a_result_without_any_answer_is_not_taken_to_be_covered_by_a_handle() -> None:
    """F5: nothing showed that the server had consumed it, so a resumed session is told it."""
    driver = conversation(handle="none", foreign="ignored")
    driver.lose()
    driver.returns(result("c1"))
    driver.server.mute = True
    driver.settle()
    driver.server.snapshot(2)
    driver.deliver()
    driver.lose()
    driver.settle()
    assert driver.outcome("c1") == [Outcome.UNANSWERED]
    assert TOKEN in driver.server.live.text
    assert driver.server.live.prompts == []


def test_a_reply_that_freezes_ends_as_interrupted_and_is_asked_for_again() -> None:
    """B16: the agent does not stay "speaking" for ever; a pause of 7 s is left alone."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.returns(result("c1"))
    driver.deliver(1)
    driver.server.freeze()
    driver.elapse(7.0)
    assert driver.conversation.turn.speaking
    driver.settle()
    assert [interrupted for text, interrupted in driver.ended if text] == [False, True, False]
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert len(driver.server.live.prompts) == 1
    later_turn_works(driver)


def test_a_result_is_said_although_the_caller_was_never_answered() -> None:
    """Promise 3: a turn of the caller that gets no frame at all does not hold back a result."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.lose()
    driver.connect()
    driver.elapse(1.0)
    driver.server.hear(2, "Hello?", answer=False)
    driver.deliver()
    driver.returns(result("c1"))
    check(driver, connections=2)


def test_a_result_is_said_although_the_turn_before_was_never_ended() -> None:
    """Promise 3: a ``turnComplete`` that never comes does not hold back a result."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.lose()
    driver.connect()
    driver.elapse(1.0)
    driver.server.hear(2, "Hello?")
    driver.deliver(4)
    driver.server.freeze()
    driver.returns(result("c1"))
    check(driver, connections=2)


# ------------------------------------------------------------ order on the wire


def test_input_waits_until_the_exchanges_left_open_are_settled() -> None:
    """3.8 swallows what comes before the settling response (observed), the caller's audio too."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.lose()
    driver.feed(InputPushed(payload="a", seconds=0.1))
    driver.connect()
    driver.feed(InputPushed(payload="b", seconds=0.1))
    assert [type(e) for e in driver.server.live.written] == [SendToolResponse]
    driver.elapse(1.0)
    pieces = [e.piece.payload for e in driver.server.live.written if isinstance(e, SendInput)]
    assert pieces == ["a", "b"]


@pytest.mark.parametrize("blank", [" ", "\n"])
def test_a_blank_that_was_heard_is_nobodys_turn(blank: str) -> None:
    """It stops no playout, is no message and asks for no answer; between words it is one."""
    driver = Driver()
    driver.connect()
    driver.server.send(1, user_words=blank)
    driver.deliver()
    driver.elapse(30.0)
    assert (driver.speech_starts, driver.ended, driver.items) == (0, [], [])
    assert driver.server.live.prompts == []
    for words in ("Good", blank, "morning"):
        driver.server.send(1, user_words=words)
    driver.server.speak(1, ())
    driver.deliver()
    assert driver.items[0].parts == (f"Good{blank}morning",)


def test_a_restart_in_a_pause_waits_for_the_words_that_trail_the_audio() -> None:
    """B17: they belong to what was said; the wait for them has its own end."""
    driver = Driver(ResilienceOptions(restart_when="pause"))
    driver.connect()
    driver.server.send(1, audio=(b"\x00\x00",), text="s1.")
    driver.server.send(1, generation_complete=True)
    driver.server.send(1, text=" s2.")
    driver.deliver(frames=1)
    driver.request_restart(RestartCause.OPTIONS)
    driver.deliver()
    assert driver.up == 1
    driver.elapse(0.3)
    assert driver.ended == [("s1. s2.", False)]
    assert driver.closing == 1


@pytest.mark.parametrize("kept", [0.0, 0.03])
def test_audio_for_an_open_connection_is_written_however_little_is_kept(kept: float) -> None:
    """Promise 5: ``input_buffer`` bounds what waits for a connection, and nothing else."""
    driver = Driver(ResilienceOptions(input_buffer=kept))
    driver.connect()
    pieces = [InputPushed(payload=n, seconds=0.05) for n in range(3)]
    for piece in pieces:
        driver.feed(piece)
    assert driver.written == [SendInput(piece=piece) for piece in pieces]
    assert driver.conversation.uplink.dropped_seconds == 0.0
    driver.lose()
    driver.feed(pieces[0])
    assert driver.conversation.uplink.dropped_seconds == 0.05


def test_words_of_ours_are_not_taken_for_the_caller() -> None:
    """Newer families repeat realtime text as if the caller had said it (observed)."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.lose()
    driver.returns(result("c1"))
    driver.server.mute = True
    driver.connect()
    driver.elapse(11.0)
    (asked,) = [e for e in driver.written if isinstance(e, SendText)]
    items = len(driver.items)
    for piece in (asked.text[:10], asked.text[10:]):
        driver.server.send(2, user_words=piece)
    driver.deliver()
    assert len(driver.items) == items
    assert driver.conversation.turn.quiet


def test_an_interruption_that_our_own_words_caused_is_no_barge_in() -> None:
    """The framework would stop playout and, in 1.6.5, throw away what a tool returns."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.lose()
    driver.returns(result("c1"))
    driver.connect()
    driver.elapse(0.6)
    starts = driver.speech_starts
    driver.feed(driver.server.next_frame().__class__(connection=2, interrupted=True))
    assert driver.speech_starts == starts


# ------------------------------------------------------------ failures


def test_a_caller_supplied_handle_that_is_refused_is_dropped() -> None:
    """E2: an expired handle costs one dial, not the conversation."""
    driver = Driver(handle="theirs")
    driver.fail_dial(1007)
    assert driver.dial is not None
    assert driver.dial.handle is None


def test_a_refused_setup_does_not_change_how_the_model_is_spoken_to() -> None:
    """A close code is evidence against our words only on the connection that heard them."""
    driver = Driver()
    driver.connect()
    driver.feed(ReplyRequested(request=1, instructions="Greet."))
    driver.lose(1011)
    driver.fail_dial(1007)
    driver.settle()
    assert not any(isinstance(effect, SendText) for effect in driver.written)


def test_words_that_close_the_connection_go_out_the_other_way() -> None:
    """E3: a 1007 straight after client content is an answer to it."""
    driver = Driver()
    driver.connect()
    driver.feed(ReplyRequested(request=1, instructions="Greet."))
    driver.lose(1007)
    driver.settle()
    assert isinstance(driver.written[-1], SendText)
    assert driver.answered == [1]


def test_words_that_close_the_connection_after_a_response_go_out_the_other_way() -> None:
    """The result was told twice there, and refused once: it is not the result that is refused."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.lose()
    driver.returns(result("c1"))
    driver.connect()
    driver.elapse(driver.options.settle_grace)
    assert driver.server.live.prompts
    driver.lose(1007)
    driver.settle()
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert TOKEN in driver.server.live.prompts[-1]
    later_turn_works(driver)


def test_words_after_the_end_of_a_turn_belong_to_no_message_that_a_handle_covers() -> None:
    """A resumed connection would never be told them."""
    driver = Driver(tools_block=False)
    driver.connect()
    driver.server.hear(1, "Hello.")
    driver.deliver()
    driver.server.snapshot(1)
    driver.server.call(1, call("c1"))
    driver.server.hear(1, "Are you there?", answer=False)
    driver.deliver()
    driver.lose()
    driver.settle()
    assert driver.server.live.text.count("Hello.") == 1
    assert "Are you there?" in driver.server.live.text


def test_a_conversation_without_a_budget_left_ends_and_fails_what_waits() -> None:
    """Promise 7: an error that is not recoverable, and no future left pending."""
    driver = Driver(max_retry=1)
    driver.feed(ReplyRequested(request=1))
    driver.fail_dial()
    driver.fail_dial()
    assert driver.conversation.link.state is LinkState.ENDED
    assert [recoverable for _, recoverable in driver.errors] == [True, False]
    assert driver.failed == [1]
    assert driver.conversation.next_deadline is None
    driver.feed(ReplyRequested(request=2))
    assert driver.failed == [1, 2]


@pytest.mark.parametrize("comes", [True, False])
def test_a_rotation_at_the_end_of_a_turn_waits_a_moment_for_the_handle(comes: bool) -> None:
    """A handle that covers the turn follows its end; without one the wait is short."""
    driver = Driver()
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.hear(1, "Hello.")
    driver.deliver()
    driver.request_restart(RestartCause.OPTIONS)
    assert driver.closing is None
    if comes:
        driver.server.snapshot(1)
        driver.deliver()
    else:
        assert driver.conversation.next_deadline is not None
        driver.elapse(HANDLE_GRACE)
    assert driver.closing is not None
