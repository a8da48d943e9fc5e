"""What the framework is shown, in which order."""

from __future__ import annotations

import pytest

from livekit_gemini_resilient.core.effects import (
    Effect,
    EndGeneration,
    PushAudio,
    ReportSpeechStarted,
    ReportUsage,
    Transcribe,
)
from livekit_gemini_resilient.core.events import ServerFrame

from .driver import Driver, call

AUDIO = (b"\x00\x00",)


def connected(*, final_at_reply: bool = False) -> Driver:
    """A conversation whose first connection is up."""
    driver = Driver(final_at_reply=final_at_reply)
    driver.connect()
    return driver


def frame(driver: Driver, **fields: object) -> list[Effect]:
    """A message of the server arrives."""
    return driver.feed(ServerFrame(connection=1, **fields))  # type: ignore[arg-type]


def position(effects: list[Effect], kind: type[Effect]) -> int:
    """Where the first effect of a kind stands."""
    return [type(effect) for effect in effects].index(kind)


@pytest.mark.parametrize("final_at_reply", [False, True])
def test_the_callers_words_are_final_when_the_framework_can_stamp_them(
    final_at_reply: bool,
) -> None:
    """B12: at the end of the reply, or before it where the time of that moment is taken."""
    driver = connected(final_at_reply=final_at_reply)
    effects = frame(driver, user_words="What time is it?")
    effects += frame(driver, audio=AUDIO)
    effects += frame(driver, generation_complete=True)
    effects += frame(driver, turn_complete=True)
    final = [i for i, e in enumerate(effects) if isinstance(e, Transcribe) and e.is_final]
    assert len(final) == 1
    assert (final[0] < position(effects, PushAudio)) is final_at_reply


def test_a_reply_that_is_cut_is_interrupted_before_it_ends() -> None:
    """LiveKit records what it is made to interrupt as interrupted (B16)."""
    driver = connected()
    frame(driver, audio=AUDIO, text="It is")
    effects = driver.lose()
    assert position(effects, ReportSpeechStarted) < position(effects, EndGeneration)


def test_a_cut_interrupts_nothing_while_a_tool_runs() -> None:
    """LiveKit 1.6.5 throws away what a tool returns after an interruption."""
    driver = connected()
    frame(driver, calls=(call("c1"),))
    frame(driver, audio=AUDIO, text="One moment")
    effects = driver.lose()
    assert EndGeneration in map(type, effects)
    assert ReportSpeechStarted not in map(type, effects)


def test_words_that_nobody_answered_are_not_interrupted_when_the_link_is_lost() -> None:
    """Nothing was being said."""
    driver = connected()
    frame(driver, user_words="Hello?")
    effects = driver.lose()
    assert EndGeneration in map(type, effects)
    assert ReportSpeechStarted not in map(type, effects)


def test_a_refused_call_takes_nothing_else_of_its_message_along() -> None:
    """B11: handle, usage and words of that message stay, and the call is answered."""
    driver = connected()
    effects = frame(
        driver,
        calls=(call("c1"),),
        calls_refused="Not now.",
        text="Very well.",
        handle="of that message",
        usage=object(),
    )
    assert driver.called == []
    assert driver.conversation.link.handle == "of that message"
    assert ReportUsage in map(type, effects)
    assert driver.server.live.responses == ["c1"]
    frame(driver, turn_complete=True)
    assert driver.ended == [("Very well.", False)]
