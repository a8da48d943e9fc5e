"""Which user audio and video waits for a connection?"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from livekit_gemini_resilient.core.events import InputPushed
from livekit_gemini_resilient.core.uplink import Uplink


def audio(name: object, seconds: float = 1.0) -> InputPushed:
    """Audio."""
    return InputPushed(payload=name, seconds=seconds)


def video(name: object) -> InputPushed:
    """A video frame."""
    return InputPushed(payload=name, is_video=True)


def mark(name: object) -> InputPushed:
    """The start or end of manual activity."""
    return InputPushed(payload=name)


def drained(uplink: Uplink) -> list[object]:
    """What comes out."""
    return [piece.payload for piece in uplink.drain()]


def filled(*pieces: InputPushed, max_seconds: float = 3.0) -> Uplink:
    """An uplink into which these were pushed."""
    uplink = Uplink(max_seconds=max_seconds)
    for piece in pieces:
        uplink.push(piece)
    return uplink


def test_audio_comes_out_in_order() -> None:
    """D7: and once."""
    uplink = filled(audio(1), audio(2))
    assert drained(uplink) == [1, 2]
    assert drained(uplink) == []


def test_the_oldest_audio_is_dropped_first_and_counted() -> None:
    """D7: a minute of outage is no burst."""
    uplink = filled(*(audio(n) for n in range(60)))
    assert drained(uplink) == [57, 58, 59]
    assert uplink.dropped_seconds == 57.0


def test_of_video_only_the_newest_frame_is_kept() -> None:
    """In its place among the rest."""
    assert drained(filled(video("a"), audio(1), video("b"), audio(2))) == [1, "b", 2]


def test_the_marks_of_manual_activity_are_never_dropped() -> None:
    """D8: an end without a start is refused."""
    assert drained(filled(mark("start"), *(audio(n) for n in range(9)), mark("end"))) == [
        "start",
        6,
        7,
        8,
        "end",
    ]


def test_what_was_not_written_is_older_than_what_waits() -> None:
    """It goes back to the head, within the same bound."""
    uplink = filled(audio(3), audio(4))
    uplink.put_back([audio(1), video("old"), audio(2)])
    assert drained(uplink) == ["old", 2, 3, 4]
    assert uplink.dropped_seconds == 1.0


def test_a_newer_video_frame_replaces_one_that_is_put_back() -> None:
    """The newest wins, wherever it comes from."""
    uplink = filled(video("new"))
    uplink.put_back([video("old")])
    assert drained(uplink) == ["new"]


def test_a_buffer_of_no_seconds_keeps_no_audio() -> None:
    """``input_buffer=0`` is allowed."""
    assert drained(filled(audio(1), mark("end"), max_seconds=0.0)) == ["end"]


def test_what_was_drained_leaves_room() -> None:
    """The bound is on what waits, not on what passed."""
    uplink = filled(audio(1), audio(2), audio(3))
    assert drained(uplink) == [1, 2, 3]
    uplink.push(audio(4))
    assert drained(uplink) == [4]
    assert uplink.dropped_seconds == 0.0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 40), max_size=60))
def test_the_bound_holds_and_every_second_is_accounted_for(tenths: list[int]) -> None:
    """Whatever the sizes: kept and dropped are together what was pushed."""
    uplink = filled(*(audio(n, tenth / 10) for n, tenth in enumerate(tenths)))
    kept = list(uplink.drain())
    seconds = sum(piece.seconds for piece in kept)
    assert seconds <= 3.0 + 1e-6
    assert abs(seconds + uplink.dropped_seconds - sum(tenths) / 10) < 1e-6
    assert [piece.payload for piece in kept] == sorted(int(str(p.payload)) for p in kept)
