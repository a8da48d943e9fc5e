"""Which user audio and video waits for a connection?"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from livekit_gemini_resilient.core.events import Activity, InputPushed
from livekit_gemini_resilient.core.uplink import Uplink


def audio(name: object, seconds: float = 1.0) -> InputPushed:
    """Audio."""
    return InputPushed(payload=name, seconds=seconds)


def video(name: object) -> InputPushed:
    """A video frame."""
    return InputPushed(payload=name, is_video=True)


def mark(name: str) -> InputPushed:
    """The start or end of manual activity."""
    return InputPushed(payload=name, activity=Activity(name))


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
    uplink.connection_lost([audio(1), video("old"), audio(2)])
    assert drained(uplink) == ["old", 2, 3, 4]
    assert uplink.dropped_seconds == 1.0


def test_a_newer_video_frame_replaces_one_that_is_connection_lost() -> None:
    """The newest wins, wherever it comes from."""
    uplink = filled(video("new"))
    uplink.connection_lost([video("old")])
    assert drained(uplink) == ["new"]


def test_a_buffer_of_no_seconds_keeps_no_audio() -> None:
    """``input_buffer=0`` is allowed."""
    assert drained(filled(mark("start"), audio(1), max_seconds=0.0)) == ["start"]


def test_an_activity_is_opened_again_on_the_next_connection() -> None:
    """D8: before what waits, and once."""
    uplink = filled(mark("start"), audio(1))
    assert drained(uplink) == ["start", 1]
    uplink.connection_lost([])
    assert uplink.activity_open
    uplink.push(audio(2))
    assert drained(uplink) == ["start", 2]
    uplink.push(mark("end"))
    assert drained(uplink) == ["end"]
    assert not uplink.activity_open
    uplink.connection_lost([])
    assert drained(uplink) == []


def test_an_activity_that_ended_meanwhile_has_both_its_marks() -> None:
    """D8: an end never goes out without its start."""
    uplink = filled(mark("start"), audio(1))
    assert drained(uplink) == ["start", 1]
    uplink.connection_lost([audio(1)])
    uplink.push(mark("end"))
    assert not uplink.activity_open
    assert drained(uplink) == ["start", 1, "end"]


def test_marks_that_were_not_written_are_written_once() -> None:
    """Whatever of them was on its way."""
    for unsent in (["start"], ["end"], ["start", "end"], []):
        uplink = filled(*map(mark, ["start", "end"]))
        assert drained(uplink) == ["start", "end"]
        uplink.connection_lost([mark(name) for name in unsent])
        assert drained(uplink) == (["start", "end"] if unsent[-1:] == ["end"] else unsent)


def test_an_activity_of_which_nothing_is_left_is_left_out() -> None:
    """D7: the model would answer nothing."""
    marks = [mark("start"), audio(1), mark("end"), mark("start"), audio(2, 3.0), mark("end")]
    assert drained(filled(*marks)) == ["start", 2, "end"]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(["mark", "audio", "drain", "lose", "lose some"]), max_size=40))
def test_no_connection_ever_sees_an_end_without_a_start(steps: list[str]) -> None:
    """D8: nor two of either in a row, whatever is lost and when."""
    uplink, is_open = Uplink(max_seconds=3.0), False
    written: list[InputPushed] = []
    for step in steps:
        if step == "mark":
            is_open = not is_open
            uplink.push(mark("start" if is_open else "end"))
        elif step == "audio":
            uplink.push(audio("a"))
        elif step == "drain":
            written += uplink.drain()
        else:
            unsent = written[len(written) // 2 :] if step == "lose some" else []
            uplink.connection_lost(unsent)
            written = []
        marks = [p.activity for p in written if p.activity]
        assert marks == [Activity.START, Activity.END] * (len(marks) // 2) + (
            [Activity.START] if len(marks) % 2 else []
        )
        assert uplink.activity_open is is_open


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
