"""What the core is told: facts of the conversation, and events in the past tense.

All times are seconds of the event loop's clock and are given beside the event, never inside it.
Connections are numbered 1, 2, 3… within a conversation, generations likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A function call that the server issued."""

    call_id: str
    """The server's id, or one made up by the adapter where the server sent none."""
    name: str
    """Name of the function."""
    arguments: str
    """The arguments as JSON text with sorted keys, so that equal calls are equal strings."""
    has_id: bool = True
    """Whether the server sent an id. Without one it can only match a response by the name, and a
    cancellation names nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered."""

    call_id: str
    """Id of the call it answers."""
    name: str
    """Name of the function. Some servers read a response without it as a failed call (observed)."""
    output: str
    """The result as text, already cleaned."""
    is_error: bool = False
    """Whether the tool failed."""
    reply_required: bool = True
    """Whether the model is expected to speak about it."""


class ItemKind(Enum):
    """What an item of the chat context is."""

    MESSAGE = "message"
    """Something that was said."""
    CALL = "call"
    """A function call; told only together with its output."""
    OUTPUT = "output"
    """The output of a function call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryItem:
    """One item of the chat context, in the core's terms."""

    item_id: str
    """LiveKit's id of the item."""
    kind: ItemKind
    """Message, call or output."""
    role: str = "user"
    """``user`` or ``model``; the server refuses every other role on the Gemini API (observed)."""
    parts: tuple[object, ...] = ()
    """Text, or parts that only the adapter understands (images). Messages only."""
    call: ToolCall | None = None
    """Calls only."""
    result: ToolResult | None = None
    """Outputs only."""

    @property
    def known_as(self) -> str:
        """The id by which the server is known to have it: an exchange goes by that of its call."""
        return self.item_id if self.result is None else self.result.call_id

    @property
    def text(self) -> str:
        """The words of a message."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of client content."""

    role: str
    """``user``, ``model`` or, on Vertex AI only, ``system``."""
    parts: tuple[object, ...]
    """Text, or parts that only the adapter understands."""

    @property
    def has_pictures(self) -> bool:
        """Whether there is anything but text."""
        return not all(isinstance(part, str) for part in self.parts)


class RestartCause(Enum):
    """Why the connection is to be replaced on purpose."""

    TOOLS = "tools"
    """Tools were added or changed."""
    FEWER_TOOLS = "fewer_tools"
    """Functions were removed and nothing else; calls of them are refused until then."""
    INSTRUCTIONS = "instructions"
    """The system instruction changed."""
    OPTIONS = "options"
    """Voice, temperature or another setting of the setup message changed."""
    HISTORY = "history"
    """Messages that the server has were removed or edited."""
    GO_AWAY = "go_away"
    """The server announced that it will close the connection."""
    AGE = "age"
    """The connection is as old as the user lets it become."""


class Activity(Enum):
    """A mark that the client sets by hand, where the server does not detect activity."""

    START = "start"
    """The caller begins to speak."""
    END = "end"
    """The caller has finished: the server answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPushed:
    """The caller's audio or video, or the start or end of manual activity."""

    payload: object
    """What the adapter will write."""
    seconds: float = 0.0
    """Duration of audio; 0 for everything else."""
    is_video: bool = False
    """Only the newest video frame is kept while there is no connection."""
    activity: Activity | None = None
    """The mark that it is, if it is one."""
    request: int | None = None
    """The ``generate_reply`` that the end of an activity asks for, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFrame:
    """One message of the server, read field by field."""

    connection: int
    """The connection it arrived on; frames of an earlier one are dropped."""
    audio: tuple[bytes, ...] = ()
    """24 kHz mono s16le, one entry per part."""
    text: str = ""
    """What belongs in the transcript of the model's speech: no thoughts."""
    user_words: str = ""
    """The next piece of what the caller was heard to say."""
    at_work: bool = False
    """It brought something of the model's that is neither heard nor shown, such as a thought."""
    calls: tuple[ToolCall, ...] = ()
    """Function calls, in order."""
    calls_refused: str | None = None
    """Why these calls may not run (``tool_choice="none"``); ``None`` if they may."""
    removed_functions: frozenset[str] = frozenset()
    """Functions that the connection declares and that may not run any more."""
    cancelled: tuple[str, ...] = ()
    """Ids of calls that the server no longer wants answered."""
    cancels_unnamed: bool = False
    """It wants no answer to the calls that came without an id."""
    caller_speaks: bool | None = None
    """Whether the caller begins to speak, or has finished; ``None`` if it says nothing of that."""
    interrupted: bool = False
    """The server stopped its own generation."""
    generation_complete: bool = False
    """Nothing more will be generated (documented)."""
    turn_complete: bool = False
    """The turn is over; may be delayed until the server thinks that it has been heard."""
    more_follows: bool = False
    """The turn that ends is followed by another, unasked (``interactionStatus: IN_PROGRESS``)."""
    handle: str | None = None
    """A resumption handle, if this frame brought a usable one."""
    time_left: float | None = None
    """Seconds until the server closes the connection, if it announced that; ``math.inf`` if it did
    not say when."""
    usage: object | None = None
    """Token counts, passed through to the metrics."""

    @property
    def is_sign_of_life(self) -> bool:
        """Whether the model or the caller did anything; where it is mute, handles still come."""
        model = self.audio or self.text or self.at_work or self.calls or self.interrupted
        ends = self.generation_complete or self.turn_complete
        return bool(model or ends or self.user_words or self.cancelled or self.cancels_unnamed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupBuilt:
    """The setup message of a dial was made: what changes from now on is not in it."""

    connection: int
    """The connection that is being dialed."""
    tools_block: bool = True
    """Whether it declares that the model waits for tool results before it says anything else."""
    announces_history: bool = False
    """Whether it announces that client content comes first, as history."""
    is_new: bool = False
    """Whether it carries anything that no accepted setup of this conversation did."""
    new_functions: frozenset[str] = frozenset()
    """Functions in it that are new or have changed since a setup was accepted, by name."""
    functions: tuple[tuple[str, ...], ...] = ()
    """Names of the functions in each entry of its ``tools``, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """The server answered the setup."""

    connection: int
    """Number of the new connection."""
    items: tuple[HistoryItem, ...] = ()
    """The chat context as it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLost:
    """A dial failed, or a connection ended, on purpose or not."""

    connection: int
    """The connection that ended."""
    code: int | None = None
    """Close code or HTTP status, ``None`` if there was none."""
    reason: str = ""
    """What the server or the network said about it."""
    invalid: bool = False
    """The setup could not be made; the same settings will fail again."""
    timed_out: bool = False
    """Nobody answered the dial, or the setup, in time."""
    unsent: tuple[InputPushed, ...] = ()
    """Realtime input that was handed out and never written, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUpdated:
    """The framework handed over its chat context."""

    items: tuple[HistoryItem, ...]
    """The whole context, oldest first."""
    due: frozenset[str] = frozenset()
    """Ids of calls to whose results another session owed a reply when it was closed."""
    leaving: bool = False
    """Whether the agent that hands it over is being replaced by another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecorded:
    """The framework recorded a message of the model, as much of it as was heard."""

    item: HistoryItem
    """The message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRequested:
    """A setting changed that only a new connection can carry."""

    cause: RestartCause
    """What changed."""
    unusable: str | None = None
    """Why no setup can be made of the settings as they are now; ``None`` if one can."""
    in_place: bool = False
    """Whether the SDK has a frame that changes it on the present connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsLeftOut:
    """Tools were given that cannot be declared."""

    names: tuple[str, ...]
    """Their names."""
    reason: str
    """What is wrong with the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsChanged:
    """The system instruction changed."""

    text: str
    """The new instruction, whole."""
    by_turn: bool = True
    """Whether a ``system`` turn replaces it (documented of Vertex AI)."""
    unusable: str | None = None
    """As in ``RestartRequested``."""
    in_place: bool = False
    """As in ``RestartRequested``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRequested:
    """``generate_reply`` was called."""

    request: int
    """Number of the request."""
    instructions: str | None = None
    """What the model is to do, ``None`` to answer what was said last."""
    activity_end: InputPushed | None = None
    """The mark that ends the caller's activity, if one was open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyWithdrawn:
    """Nobody waits for that reply any more."""

    request: int
    """Number of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceDetected:
    """The framework's own voice detection changed its mind about the caller."""

    speaking: bool
    """Whether the caller speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSkipped:
    """Nobody took a generation that was announced: an agent is being replaced by another."""

    generation: int
    """Its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudienceChanged:
    """An agent begins to listen; the context that it hands over comes next."""

    handed_over: tuple[tuple[ToolCall, ToolResult], ...] = ()
    """Results that the agent before it left, each with its call: the caller heard no reply."""


Event = (
    ServerFrame
    | SetupBuilt
    | Connected
    | ConnectionLost
    | ContextUpdated
    | MessageRecorded
    | RestartRequested
    | ToolsLeftOut
    | InstructionsChanged
    | ReplyRequested
    | ReplyWithdrawn
    | InputPushed
    | VoiceDetected
    | GenerationSkipped
    | AudienceChanged
)
