"""What is different where the setup declares that tools do not block?

A model that waits for its tools says nothing about a result before it has those of the whole
batch; one that does not wait goes on talking. Every place that asks which of the two it is has a
test here or in ``test_turn`` and ``test_asking``.
"""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.effects import SendToolResponse
from livekit_gemini_resilient.core.events import ReplyRequested
from livekit_gemini_resilient.core.record import Reply
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result

both = pytest.mark.parametrize("blocks", [True, False])

SPEECH = (b"\x00\x00",)


def connected(*, blocks: bool, options: ResilienceOptions | None = None) -> Driver:
    """A conversation whose model says nothing by itself."""
    driver = Driver(options, tools_block=blocks)
    driver.connect()
    driver.server.mute = True
    return driver


def called(driver: Driver, *call_ids: str) -> None:
    """The model calls functions in one message."""
    driver.server.call(1, *map(call, call_ids))
    driver.deliver()


def reply_to(driver: Driver, call_id: str) -> Reply:
    """What the ledger says of the reply to a result."""
    record = driver.conversation.ledger.get(call_id)
    assert record is not None
    return record.reply


@both
def test_words_that_follow_the_callers_are_the_reply_only_of_a_model_that_waits(
    blocks: bool,
) -> None:
    """A model that does not wait answers the caller first."""
    driver = connected(blocks=blocks)
    called(driver, "c1")
    driver.returns(result("c1"))
    driver.server.send(1, user_words="And tomorrow?")
    driver.server.send(1, audio=SPEECH)
    driver.deliver()
    assert reply_to(driver, "c1") is (Reply.STARTED if blocks else Reply.DUE)


@both
def test_words_between_two_results_are_a_reply_only_of_a_model_that_does_not_wait(
    blocks: bool,
) -> None:
    """One that waits has not spoken about the first before it has the second."""
    driver = connected(blocks=blocks)
    called(driver, "c1", "c2")
    driver.returns(result("c1"))
    driver.server.send(1, audio=SPEECH)
    driver.deliver()
    assert reply_to(driver, "c1") is (Reply.DUE if blocks else Reply.STARTED)


@both
def test_only_a_model_that_does_not_wait_is_asked_again_while_a_call_is_open(
    blocks: bool,
) -> None:
    """The silence of one that waits for the second result is no fault."""
    driver = connected(blocks=blocks)
    called(driver, "c1", "c2")
    driver.returns(result("c1"))
    driver.elapse(11.0)
    assert bool(driver.server.live.prompts) is not blocks


@both
def test_results_of_a_lost_connection_wait_for_their_batch_only_where_the_model_waits(
    blocks: bool,
) -> None:
    """One reply about all of them; a model that does not wait would speak about each."""
    driver = connected(blocks=blocks)
    called(driver, "c1", "c2")
    driver.lose()
    driver.connect()
    driver.returns(result("c1"))
    assert ("<c1=42>" in driver.server.live.text) is not blocks


@both
def test_what_trails_a_call_ends_with_the_answer_only_where_the_model_waited(
    blocks: bool,
) -> None:
    """What a model that did not wait was saying goes on after it."""
    driver = connected(blocks=blocks)
    called(driver, "c1")
    driver.server.send(1, audio=SPEECH)
    driver.deliver()
    ended = len(driver.ended)
    driver.returns(result("c1"))
    assert len(driver.ended) - ended == blocks


@both
def test_a_held_transition_runs_at_a_pause_only_where_the_model_waits(blocks: bool) -> None:
    """One that does not wait may go on after the pause."""
    driver = connected(blocks=blocks, options=ResilienceOptions(transition_tools="all"))
    driver.server.send(1, audio=SPEECH)
    driver.server.call(1, call("c1"))
    driver.deliver()
    assert not driver.called
    driver.elapse(1.0)
    driver.adds("m1", "user", "Something else happens.")
    assert bool(driver.called) is blocks


@both
def test_only_a_model_that_waits_has_to_be_freed_for_a_reply(blocks: bool) -> None:
    """``reply_during_call="interim"`` answers no call of one that can speak while it runs."""
    driver = connected(blocks=blocks, options=ResilienceOptions(reply_during_call="interim"))
    called(driver, "c1")
    driver.feed(ReplyRequested(request=1, instructions="Greet."))
    answers = [effect for effect in driver.written if isinstance(effect, SendToolResponse)]
    assert bool(answers) is blocks
