"""One agent takes over from another: what the framework lets pass by is owed once more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from livekit_gemini_resilient.core.audience import ENTRY_GRACE
from livekit_gemini_resilient.core.effects import Outcome, SendToolResponse
from livekit_gemini_resilient.core.events import (
    AudienceChanged,
    InstructionsChanged,
    ReplyRequested,
    RestartCause,
)

from .driver import Driver, call, result
from .test_update_tools_product import TOKEN, conversation, later_turn_works


def replaced(*, handle: str = "fresh", foreign: str = "ignored") -> Driver:
    """A call is open, its agent is being replaced, and its result was told and answered."""
    driver = conversation(handle=handle, foreign=foreign)
    driver.leaves()
    driver.returns(result("c1"))
    driver.deliver()
    assert driver.replies(TOKEN), "the model did not answer the agent that leaves"
    return driver


def test_a_reply_that_nobody_took_waits_for_the_next_agent() -> None:
    """Asked for by the old prompt, or of nobody, it would be lost as well."""
    driver = replaced()
    assert driver.outcome("c1") == []
    assert driver.server.live.prompts == []
    assert driver.conversation.pending_results == (result("c1"),)
    driver.enters()
    assert driver.server.live.prompts == []
    driver.elapse(ENTRY_GRACE)
    driver.settle()
    assert len(driver.server.live.prompts) == 1
    assert driver.outcome("c1") == [Outcome.REPLIED]
    later_turn_works(driver)


@pytest.mark.parametrize("foreign", ["ignored", "answered", "empty"])
@pytest.mark.parametrize("handle", ["fresh", "older"])
def test_the_next_prompt_replies_where_it_needs_a_connection_of_its_own(
    handle: str, foreign: str
) -> None:
    """The exchange itself is closed: nothing settles it on the next connection."""
    driver = replaced(handle=handle, foreign=foreign)
    driver.request_restart(RestartCause.INSTRUCTIONS)
    driver.enters()
    driver.settle()
    responses = [e for e in driver.written if isinstance(e, SendToolResponse)]
    assert len(responses) == 1
    assert driver.outcome("c1") == [Outcome.REPLIED]
    assert len(driver.reconnects) == 1
    later_turn_works(driver)


def test_instructions_in_place_come_before_the_words_that_ask_for_the_reply() -> None:
    """Where the system instruction is replaced on the same connection, it is replaced first."""
    driver = replaced()
    driver.feed(InstructionsChanged(text="You are the billing desk."))
    driver.enters()
    driver.settle()
    assert driver.server.live.prompts[-1].startswith("[system notice]")
    assert driver.outcome("c1") == [Outcome.REPLIED]


def test_one_reply_serves_the_next_agent_and_the_result() -> None:
    """The agent asks for a reply as it enters: it goes out together with the result."""
    driver = replaced()
    driver.enters()
    driver.feed(ReplyRequested(request=7, instructions="Welcome the caller."))
    driver.settle()
    (prompt,) = driver.server.live.prompts
    assert "Welcome the caller." in prompt
    assert TOKEN in prompt
    assert driver.answered == [7]
    assert driver.outcome("c1") == [Outcome.REPLIED]


def test_the_end_of_an_unheard_reply_proves_nothing() -> None:
    """The result has been told again by then, and the reply to that is still to come."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.leaves()
    driver.returns(result("c1"))
    driver.deliver(frames=1)
    driver.feed(ReplyRequested(request=7, instructions="Welcome the caller."))
    driver.listening = True
    driver.settle()
    assert driver.answered == [7]
    assert driver.outcome("c1") == [Outcome.REPLIED]


def test_a_reply_that_nobody_ever_takes_is_given_up() -> None:
    """No agent follows: the model is not asked for ever."""
    driver = replaced()
    driver.settle()
    assert driver.outcome("c1") == [Outcome.KNOWN]
    assert len(driver.server.live.prompts) == 2


def test_a_call_that_nobody_took_is_answered_with_an_error() -> None:
    """A blocking model would be mute for good, and its tool will not run."""
    driver = Driver()
    driver.connect()
    driver.leaves()
    driver.server.hear(1, "Look it up.", answer=False)
    driver.server.call(1, call("c1"))
    driver.deliver()
    (response,) = [e for e in driver.written if isinstance(e, SendToolResponse)]
    (answer,) = response.results
    assert answer.is_error
    assert answer.call_id == "c1"
    assert not driver.conversation.ledger.running


def test_what_is_left_is_told_by_the_session_of_the_next_agent() -> None:
    """LiveKit gives an agent with other tools a session of its own."""
    old = replaced()
    left = old.conversation.ledger.due_replies
    old._carry_out(old.conversation.close(handed_over=True))
    assert old.outcome("c1") == [Outcome.HANDED_OVER]
    new = Driver()
    new.feed(AudienceChanged(handed_over=left))
    new.enters()
    new.connect()
    new.settle()
    assert new.outcome("c1") == [Outcome.REPLIED]
    assert not [e for e in new.written if isinstance(e, SendToolResponse)]
    (prompt,) = new.server.live.prompts
    assert TOKEN in prompt


def test_what_was_handed_over_is_no_duplicate_in_the_context_of_the_next_agent() -> None:
    """An agent that is given the context of the one before it: one result, one outcome."""
    old = replaced()
    new = Driver()
    new.items = [i for i in old.items if "c1" in i.item_id]
    new.feed(AudienceChanged(handed_over=old.conversation.ledger.due_replies))
    new.enters()
    new.connect()
    new.settle()
    assert new.outcome("c1") == [Outcome.REPLIED]
    assert new.server.live.text.count(TOKEN) == 2, "told once, spoken about once"


def test_a_result_with_nothing_in_it_is_not_left() -> None:
    """A tool that returns nothing but the next agent: there is nothing to speak about."""
    driver = conversation(handle="fresh", foreign="ignored")
    driver.returns(replace(result("c1"), output=" "))
    assert driver.conversation.ledger.due_replies == ()
