"""Every sentence that is put before a model."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core import wording
from livekit_gemini_resilient.core.events import ToolCall, ToolResult, Turn
from livekit_gemini_resilient.core.record import Record, Reply

CALL = ToolCall(call_id="c1", name="lookup", arguments='{"q": 1}')


def answer(output: str = "42", *, is_error: bool = False) -> ToolResult:
    """A result of the call."""
    return ToolResult(call_id="c1", name="lookup", output=output, is_error=is_error)


def record(*, spoken: str = "") -> Record:
    """The call with its result."""
    return Record(call=CALL, issued_on=1, result=answer(), reply=Reply.DUE, spoken=spoken)


SENTENCES = {
    "say": wording.say([record()]),
    "retold": wording.retold([Turn(role="model", parts=("Hi.",))], "Go on."),
    "remind": wording.remind([record()]),
    "exchange": wording.exchange(CALL, answer()),
    "reply": wording.reply_now(None),
    "instructed": wording.reply_now("Greet."),
}


@pytest.mark.parametrize("text", SENTENCES.values(), ids=SENTENCES)
def test_every_sentence_is_marked(text: str) -> None:
    """So that it is recognised as ours, by the model and by us."""
    assert text.startswith(wording.MARK)


@pytest.mark.parametrize("text", [SENTENCES[k] for k in ("say", "remind", "exchange")])
def test_a_result_is_told_with_its_call(text: str) -> None:
    """Name, arguments and output, since a snapshot may have forgotten the call."""
    assert 'lookup({"q": 1}) returned: 42' in text


def test_a_failed_call_is_told_as_failed() -> None:
    """The model may not take an error for data."""
    assert "failed with: boom" in wording.result_line(CALL, answer("boom", is_error=True))


def test_a_failed_call_may_be_made_again() -> None:
    """One that went well may not."""
    failed = record()
    failed.result = answer("boom", is_error=True)
    assert "not call the same function again" in wording.say([record()])
    assert "again" not in wording.say([failed])


def test_a_reply_that_was_cut_is_quoted() -> None:
    """The model goes on instead of starting again."""
    assert '"It is"' in wording.say([record(spoken=" It is ")])
    assert "begun" not in SENTENCES["say"]


@pytest.mark.parametrize("dirty", ["a\x00b", "a\ud800b", "\x00", "\ud83d", "\x1b[31mred", "\x08"])
def test_text_is_clean(dirty: str) -> None:
    """A16: neither control characters nor a lone surrogate, which closed connections with 1007."""
    text = wording.clean(dirty)
    assert text.isprintable()
    text.encode("utf-8")


def test_what_is_quoted_in_a_sentence_is_clean() -> None:
    """A16: arguments come from the model, instructions from the user, results of any age."""
    call = ToolCall(call_id="c1", name="lookup", arguments='{"q": "a\x00b"}')
    assert 'lookup({"q": "ab"})' in wording.exchange(call, answer("4\x002"))
    assert "returned: 42" in wording.exchange(call, answer("4\x002"))
    assert wording.reply_now("Gr\x00eet.").endswith("Greet.")


@pytest.mark.parametrize("text", ["", "plain", "Grüße 👋", "line\nline", "\ufeff", "tab\tcr\r"])
def test_clean_text_is_left_as_it_is(text: str) -> None:
    """A16: nothing is replaced that the service takes."""
    assert wording.clean(text) == text


def test_a_result_that_fits_is_passed_on() -> None:
    """With everything that was said about it."""
    given = ToolResult(call_id="c1", name="lookup", output="", is_error=True, reply_required=False)
    assert wording.fitting(given, max_bytes=1) == given


def test_a_result_that_is_too_large_becomes_an_error_that_says_so() -> None:
    """A16: bytes of UTF-8 count, not characters."""
    assert wording.fitting(answer("ö" * 5), max_bytes=10).output == "ö" * 5
    large = wording.fitting(answer("ö" * 6), max_bytes=10)
    assert large.is_error
    assert "12 bytes" in large.output
    assert "10" in large.output


def test_a_running_tool_is_answered_for_with_its_id_and_name() -> None:
    """A response without a name is read as a failed call (observed)."""
    told = wording.still_running(CALL)
    assert (told.call_id, told.name, told.is_error) == ("c1", "lookup", False)


def test_an_echo_is_what_we_wrote_from_its_beginning() -> None:
    """Blanks do not count; an empty piece is no echo."""
    assert wording.is_echo(" [system  notice] Ple", ["[system notice] Please go on."])
    assert not wording.is_echo("go on", ["[system notice] Please go on."])
    assert not wording.is_echo("  ", ["[system notice] Please go on."])
    assert not wording.is_echo("Hello", [])
