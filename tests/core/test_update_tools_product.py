"""A restart and a tool result around it, in every order, on every kind of server."""

from __future__ import annotations

from itertools import product

import pytest

from livekit_gemini_resilient.core.effects import Outcome
from livekit_gemini_resilient.core.events import ContextUpdated, RestartCause
from livekit_gemini_resilient.options import ResilienceOptions

from .driver import Driver, call, result
from .server import tokens

QUESTION = "What is in the order?"
TOKEN = "<c1=42>"

FOREIGN = ("ignored", "answered", "empty")
HANDLES = ("fresh", "none", "older")
ORDERS = ("before", "restart first", "result first", "after")
ARRIVALS = ("open", "closing", "backing off", "dialing", "after reconnect")
WHEN = ("auto", "pause", "turn_end", "now")


def conversation(*, handle: str, foreign: str, when: str = "auto") -> Driver:
    """A conversation in which the model waits for the result of ``c1``."""
    driver = Driver(ResilienceOptions(restart_when=when), foreign=foreign)
    driver.feed(ContextUpdated(items=()))
    driver.connect()
    driver.server.hear(1, "Hello.")
    driver.deliver()
    if handle == "older":
        driver.server.snapshot(1)
    driver.server.hear(1, QUESTION, answer=False)
    if handle == "fresh":
        driver.server.snapshot(1)
    driver.server.call(1, call("c1"))
    driver.deliver()
    assert [c.call_id for c in driver.called] == ["c1"]
    return driver


def trailing(driver: Driver) -> None:
    """The model goes on speaking after its call."""
    driver.server.send(1, audio=(b"\x00\x00",), text="One moment.")
    driver.server.connections[1].context.append("model: One moment.")
    driver.deliver()


def arrive(driver: Driver, arrival: str) -> None:
    """The result is produced at this point of the reconnect."""
    if arrival == "closing":
        driver.returns(result("c1"))
        return
    driver.finish_close()
    if arrival == "backing off":
        driver.fail_dial()
        driver.returns(result("c1"))
        return
    dial = driver.build_setup()
    if arrival == "dialing":
        driver.returns(result("c1"))
    driver.opens(dial)
    if arrival == "after reconnect":
        driver.deliver()
        driver.elapse(1.0)
        driver.deliver()
        driver.returns(result("c1"))


def check(driver: Driver, *, connections: int, token: str = TOKEN, call_id: str = "c1") -> None:
    """Everything that must hold in the end, from the server's memory."""
    driver.settle()
    server = driver.server
    assert server.faults == []
    assert token in server.live.text
    assert len(driver.replies(token)) == 1
    assert driver.outcome(call_id) == [Outcome.REPLIED]
    for connection in server.connections.values():
        assert connection.responses.count(call_id) <= 1
        assert sum(token in prompt for prompt in connection.prompts) <= 1
        for line in connection.context:
            assert connection.text.count(line) == 1, f"told twice: {line}"
    assert len(server.connections) == connections
    assert len(driver.reconnects) == connections - 1
    assert not any(not recoverable for _, recoverable in driver.errors)
    later_turn_works(driver)


def later_turn_works(driver: Driver) -> None:
    """The caller says something else, and the model answers it."""
    driver.server.hear(max(driver.server.connections), "And what else?")
    driver.deliver()
    assert driver.server.replies[-1].done
    assert driver.ended[-1] == (driver.server.replies[-1].text, False)
    assert driver.conversation.turn.quiet


def combinations() -> list[tuple[str, RestartCause, str, str, str, str, str]]:
    """All combinations that can happen."""
    chosen = []
    for order, cause, by, handle, arrival, when, foreign in product(
        ORDERS,
        (RestartCause.TOOLS, RestartCause.OPTIONS),
        ("tool", "outside"),
        HANDLES,
        ARRIVALS,
        WHEN,
        FOREIGN,
    ):
        waits = when == "turn_end" or (when == "auto" and cause is RestartCause.OPTIONS)
        result_is_there = order in ("result first", "after")
        # the connection is still there: the restart waits for the result, or comes after it
        still_open = waits or result_is_there
        if (arrival == "open") != still_open:
            continue
        if order == "restart first" and arrival not in ("open", "closing"):
            continue
        if by == "tool" and order == "after":
            continue
        chosen.append((order, cause, by, handle, arrival, when, foreign))
    return chosen


@pytest.mark.parametrize(
    ("order", "cause", "by", "handle", "arrival", "when", "foreign"), combinations()
)
def test_a_result_around_a_restart_is_known_and_answered_once(
    order: str,
    cause: RestartCause,
    by: str,
    handle: str,
    arrival: str,
    when: str,
    foreign: str,
) -> None:
    """A1, A2, A3: whatever the order, the model knows the result and speaks about it once."""
    driver = conversation(handle=handle, foreign=foreign, when=when)
    if by == "outside":
        trailing(driver)
    if order in ("before", "restart first"):
        driver.request_restart(cause)
        if order == "before":
            # a pause comes when the trailing speech is over
            driver.elapse(1.0)
        if arrival == "open":
            assert driver.up == 1, "the safe point has not come"
    if arrival == "open" or order == "restart first":
        driver.returns(result("c1"))
    else:
        arrive(driver, arrival)
    if order == "result first":
        driver.request_restart(cause)
    elif order == "after":
        driver.deliver(1)
        driver.request_restart(cause)
    check(driver, connections=2)
    assert driver.dials == (3 if arrival == "backing off" else 2)
    assert driver.speech_starts <= 5
    assert QUESTION in driver.server.live.text
    assert tokens(driver.server.live.text) == (TOKEN,)
