"""Which part of the conversation does this connection not know?"""

from __future__ import annotations

from livekit_gemini_resilient.core.events import HistoryItem, ItemKind, Turn
from livekit_gemini_resilient.core.history import History

from .driver import call, result


def message(
    item_id: str, *, role: str = "user", parts: tuple[object, ...] | None = None
) -> HistoryItem:
    """A message whose text is its id."""
    parts = (item_id,) if parts is None else parts
    return HistoryItem(item_id=item_id, kind=ItemKind.MESSAGE, role=role, parts=parts)


CALL = HistoryItem(item_id="i1", kind=ItemKind.CALL, call=call("c1"))
OUTPUT = HistoryItem(item_id="i2", kind=ItemKind.OUTPUT, result=result("c1"))
NOBODY: frozenset[str] = frozenset()


def told(history: History, *items: HistoryItem, skip: frozenset[str] = NOBODY) -> list[str]:
    """Ids of what is to be told, which is then sent."""
    _, ids = history.missing(items, skip=skip)
    history.sent(ids)
    return list(ids)


def test_a_fresh_connection_is_told_everything_once() -> None:
    """Each item, in order, with an explicit role."""
    history = History()
    turns, ids = history.missing([message("a"), message("b", role="model")], skip=NOBODY)
    assert turns == (Turn(role="user", parts=("a",)), Turn(role="model", parts=("b",)))
    history.sent(ids)
    assert told(history, message("a"), message("b", role="model")) == []


def test_what_the_server_heard_or_said_itself_is_not_sent() -> None:
    """F1: it is in its context already."""
    history = History()
    history.heard("a")
    assert told(history, message("a"), message("b")) == ["b"]


def test_a_resumed_connection_is_told_what_its_handle_does_not_cover() -> None:
    """F1, F5: a handle is a snapshot; what came after it is added."""
    history = History()
    history.heard("a")
    history.handle_received()
    history.heard("b")
    history.connection_opened(resumed=True)
    assert told(history, message("a"), message("b")) == ["b"]


def test_a_supplied_handle_covers_its_context_to_the_last_words_of_the_model() -> None:
    """A7, F4: it was issued when a turn had ended; what follows may be newer, and is told."""
    history = History()
    later = HistoryItem(item_id="i4", kind=ItemKind.OUTPUT, result=result("c2"))
    items = [message("a"), CALL, OUTPUT, message("b", role="model"), message("c"), later]
    history.handle_supplied(items)
    assert told(history, *items) == ["c", "c2"]


def test_a_supplied_handle_covers_nothing_of_a_context_in_which_the_model_is_silent() -> None:
    """F4: no turn of it can have ended."""
    history = History()
    history.handle_supplied([message("a"), CALL, OUTPUT])
    assert told(history, message("a"), CALL, OUTPUT) == ["a", "c1"]


def spoken() -> History:
    """The caller and the model have spoken; the framework has recorded both."""
    history = History()
    for item_id, role in [("a", "user"), ("b", "model")]:
        history.heard(item_id)
        history.recorded(item_id, message(item_id, role=role).text)
    return history


BOTH = (message("a"), message("b", role="model"))


def test_a_context_with_all_that_was_heard_replaces_nothing() -> None:
    """F6: whatever is added, and in whatever place."""
    assert not spoken().replace([message("z"), *BOTH, CALL, OUTPUT])


def test_a_message_that_was_heard_and_is_missing_replaces_the_history() -> None:
    """F6: until a fresh connection has opened, which knows nothing; a resumed one still does."""
    history = spoken()
    assert history.replace([message("b", role="model")])
    assert not history.replace([message("b", role="model")])
    history.connection_opened(resumed=True)
    assert history.is_replaced
    history.connection_opened(resumed=False)
    assert not history.is_replaced


def test_a_message_that_was_heard_and_is_edited_replaces_the_history() -> None:
    """F6: also if only the handle covers it, while there is no connection."""
    history = spoken()
    history.handle_received()
    history.connection_opened(resumed=True)
    assert history.replace([message("a", parts=("something else",)), message("b", role="model")])


def test_a_message_that_was_told_counts_as_heard() -> None:
    """F6: the server has it from the context."""
    history = History()
    history.replace([message("a")])
    told(history, message("a"))
    assert history.replace([])


def test_a_message_that_was_not_told_yet_may_change() -> None:
    """F6: the server does not have it."""
    history = History()
    history.replace([message("a")])
    assert not history.replace([])
    assert told(history, message("b")) == ["b"]


def test_a_reply_that_was_never_recorded_may_vanish() -> None:
    """F6: LiveKit removes what was never played, also where it had handed it over before."""
    history = History()
    history.heard("b")
    assert not history.replace([message("b", role="model")])
    assert not history.replace([])


def test_a_reply_is_recorded_as_it_was_heard() -> None:
    """F6: LiveKit cuts its text short where playout was interrupted."""
    history = spoken()
    history.recorded("b", "as far as it was heard")
    heard = message("b", role="model", parts=("as far as it was heard",))
    assert not history.replace([message("a"), heard])


def test_function_items_may_vanish() -> None:
    """F6: LiveKit leaves those out whose tools are gone."""
    history = spoken()
    history.replace([*BOTH, CALL, OUTPUT])
    told(history, *BOTH, CALL, OUTPUT)
    assert not history.replace(BOTH)


def test_what_was_written_counts_for_a_handle_once_the_model_has_spoken() -> None:
    """Before that it may still have been on its way."""
    history = History()
    told(history, message("a"))
    history.handle_received()
    history.connection_opened(resumed=True)
    assert told(history, message("a")) == ["a"]
    history.consumed()
    history.handle_received()
    history.connection_opened(resumed=True)
    assert told(history, message("a")) == []


def test_a_fresh_connection_forgets_what_earlier_handles_covered() -> None:
    """F3: and so does every connection that is resumed from it later."""
    history = History()
    history.heard("a")
    history.handle_received()
    history.connection_opened(resumed=False)
    assert told(history, message("a")) == ["a"]
    history.connection_opened(resumed=True)
    assert told(history, message("a")) == ["a"]


def test_a_tool_exchange_is_one_sentence_that_names_call_and_result() -> None:
    """F3: function parts would close the connection."""
    (turn,), ids = History().missing([CALL, OUTPUT], skip=NOBODY)
    assert ids == ("c1",)
    assert turn.role == "user"
    assert str(turn.parts[0]).endswith('lookup({"q": "c1"}) returned: <c1=42>')


def test_an_output_without_its_call_is_told_all_the_same() -> None:
    """The framework may have cut the context in between."""
    (turn,), _ = History().missing([OUTPUT], skip=NOBODY)
    assert "lookup() returned: <c1=42>" in str(turn.parts[0])


def test_a_call_is_never_told_without_its_output() -> None:
    """It is open: the ledger answers it."""
    assert told(History(), CALL) == []


def test_a_result_that_reaches_the_model_by_another_way_is_left_out() -> None:
    """Nothing is told twice."""
    assert told(History(), CALL, OUTPUT, skip=frozenset({"c1"})) == []


def test_two_outputs_of_one_call_are_told_once() -> None:
    """By call id, not by item id."""
    again = HistoryItem(item_id="i3", kind=ItemKind.OUTPUT, result=result("c1"))
    assert told(History(), OUTPUT, again) == ["c1"]


def test_a_message_without_parts_is_left_out() -> None:
    """F7: an empty turn closes some servers."""
    assert told(History(), message("a", parts=())) == []


def test_text_is_cleaned_and_other_parts_are_passed_on() -> None:
    """F7: images travel as they are."""
    image = object()
    (turn,), _ = History().missing([message("a", parts=("x\x00y", image))], skip=NOBODY)
    assert turn.parts == ("xy", image)
