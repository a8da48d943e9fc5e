"""The states of a turn, and the table of what leads from one to the next."""

from __future__ import annotations

from enum import Enum


class TurnState(Enum):
    """Where the conversation stands, seen from the client."""

    IDLE = "idle"
    """Nobody's turn."""
    LISTENING = "listening"
    """The caller's words have opened a generation; the model has not spoken."""
    GENERATING = "generating"
    """The model speaks."""
    GENERATION_COMPLETED = "generation_completed"
    """It has said all; the server has not ended the turn."""
    AWAITING_TOOLS = "awaiting_tools"
    """The model waits for results."""
    TRAILING = "trailing"
    """The model waits for results, and more of what it said before keeps arriving."""
    INTERRUPTED = "interrupted"
    """The server stopped the model; what trails is dropped."""
    HUSHED = "hushed"
    """The server reported an interruption while nothing was open."""
    BETWEEN = "between"
    """The server ended a turn and said that it will go on in another, unasked."""


class Sign(Enum):
    """What a frame, a deadline or the session can mean to the tracker."""

    WORDS = "words"
    """The caller was heard to say something."""
    AUDIO = "audio"
    """The model speaks."""
    TEXT = "text"
    """Words of the model."""
    CALLS = "calls"
    """The model calls functions."""
    COMPLETE = "generation_complete"
    """The model has generated all."""
    TURN_END = "turn_complete"
    """The server ended a turn."""
    MORE_FOLLOWS = "in_progress"
    """The server ended a turn and will go on in another."""
    INTERRUPT = "interrupted"
    """The server stopped the model."""
    ANSWERED = "answered"
    """Every call of the connection has its result."""
    QUIET = "quiet"
    """What may trail has had its time."""
    STALLED = "stalled"
    """Nothing came for too long in the middle of a turn."""


_S, _E = TurnState, Sign

TABLE: dict[tuple[TurnState, Sign], TurnState] = {
    (_S.IDLE, _E.WORDS): _S.LISTENING,
    (_S.IDLE, _E.AUDIO): _S.GENERATING,
    (_S.IDLE, _E.TEXT): _S.GENERATING,
    (_S.IDLE, _E.CALLS): _S.AWAITING_TOOLS,
    (_S.IDLE, _E.INTERRUPT): _S.HUSHED,
    (_S.IDLE, _E.MORE_FOLLOWS): _S.BETWEEN,
    (_S.LISTENING, _E.AUDIO): _S.GENERATING,
    (_S.LISTENING, _E.TEXT): _S.GENERATING,
    (_S.LISTENING, _E.CALLS): _S.AWAITING_TOOLS,
    (_S.LISTENING, _E.TURN_END): _S.IDLE,
    (_S.LISTENING, _E.MORE_FOLLOWS): _S.BETWEEN,
    (_S.LISTENING, _E.STALLED): _S.IDLE,
    (_S.GENERATING, _E.CALLS): _S.AWAITING_TOOLS,
    (_S.GENERATING, _E.COMPLETE): _S.GENERATION_COMPLETED,
    (_S.GENERATING, _E.TURN_END): _S.IDLE,
    (_S.GENERATING, _E.MORE_FOLLOWS): _S.BETWEEN,
    (_S.GENERATING, _E.INTERRUPT): _S.INTERRUPTED,
    (_S.GENERATING, _E.STALLED): _S.IDLE,
    (_S.GENERATION_COMPLETED, _E.AUDIO): _S.GENERATING,
    (_S.GENERATION_COMPLETED, _E.CALLS): _S.AWAITING_TOOLS,
    (_S.GENERATION_COMPLETED, _E.TURN_END): _S.IDLE,
    (_S.GENERATION_COMPLETED, _E.MORE_FOLLOWS): _S.BETWEEN,
    (_S.GENERATION_COMPLETED, _E.INTERRUPT): _S.INTERRUPTED,
    (_S.GENERATION_COMPLETED, _E.STALLED): _S.IDLE,
    (_S.AWAITING_TOOLS, _E.AUDIO): _S.TRAILING,
    (_S.AWAITING_TOOLS, _E.TEXT): _S.TRAILING,
    (_S.AWAITING_TOOLS, _E.ANSWERED): _S.IDLE,
    (_S.TRAILING, _E.CALLS): _S.AWAITING_TOOLS,
    (_S.TRAILING, _E.COMPLETE): _S.AWAITING_TOOLS,
    (_S.TRAILING, _E.TURN_END): _S.AWAITING_TOOLS,
    (_S.TRAILING, _E.MORE_FOLLOWS): _S.AWAITING_TOOLS,
    (_S.TRAILING, _E.INTERRUPT): _S.AWAITING_TOOLS,
    (_S.TRAILING, _E.QUIET): _S.AWAITING_TOOLS,
    (_S.TRAILING, _E.ANSWERED): _S.IDLE,
    (_S.INTERRUPTED, _E.WORDS): _S.LISTENING,
    (_S.INTERRUPTED, _E.CALLS): _S.AWAITING_TOOLS,
    (_S.INTERRUPTED, _E.TURN_END): _S.IDLE,
    (_S.INTERRUPTED, _E.MORE_FOLLOWS): _S.IDLE,
    (_S.INTERRUPTED, _E.QUIET): _S.IDLE,
    (_S.HUSHED, _E.WORDS): _S.LISTENING,
    (_S.HUSHED, _E.AUDIO): _S.GENERATING,
    (_S.HUSHED, _E.TEXT): _S.GENERATING,
    (_S.HUSHED, _E.CALLS): _S.AWAITING_TOOLS,
    (_S.HUSHED, _E.TURN_END): _S.IDLE,
    (_S.HUSHED, _E.MORE_FOLLOWS): _S.IDLE,
    (_S.BETWEEN, _E.WORDS): _S.LISTENING,
    (_S.BETWEEN, _E.AUDIO): _S.GENERATING,
    (_S.BETWEEN, _E.TEXT): _S.GENERATING,
    (_S.BETWEEN, _E.CALLS): _S.AWAITING_TOOLS,
    (_S.BETWEEN, _E.INTERRUPT): _S.HUSHED,
    (_S.BETWEEN, _E.TURN_END): _S.IDLE,
    (_S.BETWEEN, _E.STALLED): _S.IDLE,
}
"""A pair that is not here leaves the state as it is."""

BEFORE_ITS_OWN_END = (_S.IDLE, _S.LISTENING, _S.GENERATING)
"""States in which a ``turnComplete`` can still be the one of an interrupted turn: an undisturbed
turn ends after ``generationComplete`` (recorded)."""

SAME_TURN = (_S.AWAITING_TOOLS, _S.GENERATION_COMPLETED, _S.BETWEEN)
"""States in which more of the model goes on with what was there before."""

MAY_STALL = (_S.LISTENING, _S.GENERATING, _S.GENERATION_COMPLETED, _S.BETWEEN)
"""States that only the server ends. While it waits for tools, the tools do."""

SPEAKING = (_S.LISTENING, _S.GENERATING, _S.TRAILING, _S.BETWEEN)
"""States in which the model is in the middle of a generation, or the caller waits for one."""

NOBODYS = (_S.IDLE, _S.INTERRUPTED, _S.HUSHED, _S.BETWEEN)
"""States in which words of the caller open a generation."""

WAITING = (_S.AWAITING_TOOLS, _S.TRAILING)
"""States in which the model waits for results, if it does."""
