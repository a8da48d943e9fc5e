"""Every public name of upstream's model and session was decided on."""

from __future__ import annotations

from typing import Any

import pytest
from livekit.plugins.google.realtime import realtime_api

from livekit_gemini_resilient import RealtimeModel, RealtimeSession
from livekit_gemini_resilient.testing import GeminiLiveServer

from .names import CLASSES, MODEL, NEWER, REPLACED, SESSION, Decision

Names = dict[str, tuple[Decision, str]]
classes = pytest.mark.parametrize(("theirs", "ours", "decided"), CLASSES, ids=["model", "session"])


def public(names: Any) -> set[str]:
    """Without an underscore."""
    return {name for name in names if not name.startswith("_")}


@classes
def test_every_public_name_of_upstream_was_decided_on(
    theirs: type[Any], ours: type[Any], decided: Names
) -> None:
    """A new one fails here until it has a row; one that is gone must lose its row."""
    undecided = public(dir(theirs)) - set(decided)
    assert undecided == set(), f"decide on {sorted(undecided)} in tests/upstream/names.py"
    assert set(decided) - public(dir(theirs)) <= NEWER


@classes
def test_what_was_decided_is_what_ours_does(
    theirs: type[Any], ours: type[Any], decided: Names
) -> None:
    """Overridden is what our classes define, and nothing else."""
    own = [klass for klass in ours.__mro__ if klass.__module__.startswith("livekit_gemini")]
    overridden = {name for name in public(dir(theirs)) if any(name in vars(k) for k in own)}
    assert overridden == {n for n, (what, _) in decided.items() if what is Decision.OVERRIDDEN}


@pytest.mark.parametrize(
    ("theirs", "ours", "added"),
    [
        (realtime_api.RealtimeModel, RealtimeModel, {"resilience"}),
        (realtime_api.RealtimeSession, RealtimeSession, {"dropped_audio"}),
    ],
    ids=["model", "session"],
)
def test_a_user_sees_nothing_more_than_what_is_documented(
    theirs: type[Any], ours: type[Any], added: set[str]
) -> None:
    """What the adapter needs between its own modules is private."""
    assert public(dir(ours)) - public(dir(theirs)) == added


async def test_no_private_name_of_ours_is_one_of_upstreams_by_chance() -> None:
    """Upstream may take a name that ours had first, and would call ours."""
    own = [k for k in RealtimeSession.__mro__ if k.__module__.startswith("livekit_gemini")]
    defined = {name for klass in own for name in vars(klass) if name.startswith("_")}
    made_by_python = {name for name in defined if name.startswith(("__", "_abc_"))}
    async with GeminiLiveServer() as server:
        session = realtime_api.RealtimeSession(realtime_api.RealtimeModel(**server.model_options()))
        theirs = set(dir(session))
        await server.connected()
        await session.aclose()
        await session._client.aio.aclose()
    assert defined & theirs - made_by_python == REPLACED


async def test_every_public_attribute_of_an_instance_was_decided_on() -> None:
    """Upstream might set one in its constructor."""
    async with GeminiLiveServer() as server:
        model = RealtimeModel(**server.model_options())
        session = model.session()
        assert public(vars(model)) <= set(MODEL)
        assert public(vars(session)) <= set(SESSION)
        await session.aclose()


async def test_what_the_service_cannot_do_is_refused_or_does_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """``say`` raises; the others warn, and write nothing."""
    async with GeminiLiveServer() as server:
        session = RealtimeModel(**server.model_options()).session()
        connection = await server.connected()
        with pytest.raises(NotImplementedError):
            session.say("Hello.")
        session.commit_audio()
        session.clear_audio()
        session.truncate(message_id="any", modalities=["audio"], audio_end_ms=0)
        for name in ("commit_audio", "clear_audio", "truncate"):
            assert f"{name} is not supported" in caplog.text
        await session.aclose()
        assert [list(frame) for frame in connection.frames] == [["setup"]]
