"""How are words of ours put before the model, and which of them did it hear?"""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.behaviour import Behaviour, Observed, Trigger
from livekit_gemini_resilient.core.effects import SendContent, SendText
from livekit_gemini_resilient.core.events import Turn
from livekit_gemini_resilient.core.prompts import Prompts
from livekit_gemini_resilient.core.record import Record, Reply, Route
from livekit_gemini_resilient.core.wording import MARK

from .driver import call, result

USER = Turn(role="user", parts=("Hello.",))
MODEL = Turn(role="model", parts=("Hi.",))


def prompts(trigger: Trigger = Trigger.CLIENT_CONTENT) -> Prompts:
    """Prompts for a server that was seen to need this trigger."""
    return Prompts(Observed(Behaviour(trigger=trigger)))


def record(reply: Reply = Reply.DUE, *, route: Route | None = None) -> Record:
    """A call with its result."""
    return Record(call=call("c1"), issued_on=1, result=result("c1"), reply=reply, route=route)


def test_nothing_is_written_where_there_is_nothing_to_tell() -> None:
    """An empty turn makes some servers speak."""
    assert prompts().inform(()) == []


def test_history_asks_for_no_speech() -> None:
    """``turn_complete=False``."""
    assert prompts().inform((USER, MODEL)) == [
        SendContent(turns=(USER, MODEL), turn_complete=False)
    ]


def test_a_result_is_said_after_what_the_model_does_not_know_of_the_rest() -> None:
    """One message, the result last, and the model is to answer."""
    (effect,) = prompts().say([record()], (USER,))
    assert isinstance(effect, SendContent)
    assert effect.turn_complete
    assert effect.turns[0] == USER
    assert effect.turns[-1].role == "user"
    assert "<c1=42>" in str(effect.turns[-1].parts[0])


def test_realtime_text_comes_after_the_history() -> None:
    """Where client content triggers nothing."""
    informed, said = prompts(Trigger.REALTIME_TEXT).say([record()], (USER,))
    assert informed == SendContent(turns=(USER,), turn_complete=False)
    assert isinstance(said, SendText)
    assert said.text.startswith(MARK)


@pytest.mark.parametrize(
    ("route", "kind"),
    [(Route.RESPONSE, SendContent), (Route.SETTLE, SendContent), (Route.SAY, SendText)],
)
def test_a_reminder_goes_by_the_way_that_was_not_tried(route: Route, kind: type) -> None:
    """A response is reminded of in words, words by the other trigger."""
    (effect,) = prompts().remind([record(route=route)])
    assert isinstance(effect, kind)


def test_an_open_turn_of_the_caller_only_has_to_be_ended() -> None:
    """No words of ours are needed for it."""
    told = prompts()
    assert told.ask(None, (MODEL, USER)) == [SendContent(turns=(MODEL, USER), turn_complete=True)]
    told.inform((USER,))
    assert told.ask(None, ()) == [SendContent(turns=(), turn_complete=True)]
    (again,) = told.ask(None, ())
    assert isinstance(again, SendContent)
    assert again.turns, "the turn was ended and is not open any more"


def test_instructions_are_marked() -> None:
    """The model can tell them from what the caller said."""
    (effect,) = prompts().ask("Greet.", (USER,))
    assert isinstance(effect, SendContent)
    assert str(effect.turns[-1].parts[0]).startswith(MARK)


def test_realtime_text_of_ours_is_recognised_piece_by_piece() -> None:
    """However the server cuts and spaces it."""
    told = prompts(Trigger.REALTIME_TEXT)
    told.ask("Greet the caller.", ())
    assert told.is_echo(" [system notice] Reply")
    assert told.is_echo(" now, following these")
    assert not told.is_echo(" something else")


def test_what_the_caller_says_is_no_echo() -> None:
    """Nor is silence; nor anything once the model has spoken anew."""
    told = prompts(Trigger.REALTIME_TEXT)
    told.ask("Greet the caller.", ())
    assert not told.is_echo("Hello?")
    assert not told.is_echo(" ")
    told.connection_opened()
    assert not told.is_echo("[system notice] Reply now")


def test_client_content_is_not_echoed() -> None:
    """Only realtime text was seen to be."""
    told = prompts()
    told.ask("Greet the caller.", ())
    assert not told.is_echo("[system notice] Reply now")


def test_a_close_straight_after_our_words_changes_the_way() -> None:
    """1007 and 1008 are how a frame is refused."""
    observed = Observed()
    told = Prompts(observed)
    told.ask("Greet.", ())
    told.connection_refused()
    assert observed.trigger is Trigger.REALTIME_TEXT
    told.connection_refused()
    assert observed.trigger is Trigger.REALTIME_TEXT, "one refusal counts once"


def test_a_close_after_a_message_of_the_server_changes_nothing() -> None:
    """It had taken our words."""
    observed = Observed()
    told = Prompts(observed)
    told.ask("Greet.", ())
    told.frame_received()
    told.connection_refused()
    assert observed.trigger is Trigger.CLIENT_CONTENT


# ------------------------------------------------------------ content as initial history only


def only_initially() -> Prompts:
    """Prompts for a server that was seen to refuse content in the middle."""
    return Prompts(Observed(Behaviour(trigger="realtime_text", content_at_any_time=False)))


def test_announced_history_is_ended_and_starts_no_reply() -> None:
    """``turn_complete`` ends the history and triggers nothing (documented); once."""
    told = only_initially()
    told.connection_opened(announces_history=True)
    assert told.can_inform
    assert told.inform((USER,)) == [SendContent(turns=(USER,), turn_complete=True)]
    assert not told.can_inform


def test_nothing_is_history_any_more_once_anything_else_was_written() -> None:
    """The caller's audio ends it."""
    told = only_initially()
    told.connection_opened(announces_history=True)
    told.history_is_told()
    assert not told.can_inform


def test_what_cannot_be_told_as_content_goes_out_with_the_words_that_ask_for_speech() -> None:
    """Nothing of it is lost, and the connection is not closed for it."""
    told = only_initially()
    (effect,) = told.say([record()], (USER, MODEL))
    assert isinstance(effect, SendText)
    assert effect.text.startswith(MARK)
    assert "The caller: Hello." in effect.text
    assert "You: Hi." in effect.text
    assert effect.text.index("Hello.") < effect.text.index("<c1=42>")


def test_a_refusal_of_history_is_learned() -> None:
    """Content that asks for nothing is refused as well."""
    observed = Observed()
    told = Prompts(observed)
    told.inform((USER,))
    told.connection_refused()
    assert not observed.behaviour.content_at_any_time


@pytest.mark.parametrize(("route", "learned"), [(Route.SAY, True), (Route.RESPONSE, False)])
def test_a_model_that_speaks_after_the_second_try_is_remembered(
    route: Route, learned: bool
) -> None:
    """If both tries were words; a response that went unanswered says nothing of triggers."""
    observed = Observed()
    told = Prompts(observed)
    told.remind([record(route=route)])
    told.model_spoke()
    assert (observed.trigger is Trigger.REALTIME_TEXT) is learned
