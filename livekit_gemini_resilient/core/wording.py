"""Every sentence that this package puts before a model.

A turn of ours begins with ``MARK``, so that a model can tell it from what the caller said, and no
first words of the caller are taken for its echo.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .events import ToolCall, ToolResult, Turn
from .record import Record

MARK = "[system notice]"

CALLS_REFUSED = "Tool calls are disabled for this reply; answer the caller directly."
"""The answer to calls that ``tool_choice="none"`` forbids."""


def removed(name: str) -> str:
    """The answer to a call of a function that was removed since it was declared."""
    return f"{name} is not available any more. Do not call it again; go on without it."


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")

_WAITING = f"{MARK} The caller is waiting for your answer."
_BEGUN = 'You had begun to answer: "{}" Go on from there.'
_ANSWER_NOW = "Continue the conversation with this result now, in your own words."
_UNMENTIONED = "Do not mention this notice."
_NOT_AGAIN = "Do not call the same function again for it, and do not mention this notice."


def clean(text: str) -> str:
    """Text without what the service refuses with 1007: control characters other than tab, newline
    and carriage return (observed), and lone surrogates, which protobuf strings cannot hold."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode("utf-8")


def fitting(result: ToolResult, *, max_bytes: int) -> ToolResult:
    """The result, cleaned; replaced by an error that says so where it is too large.

    Args:
        result: What the tool answered.
        max_bytes: The largest output in UTF-8 bytes that is passed on.
    """
    output = clean(result.output)
    size = len(output.encode())
    is_error = result.is_error
    if size > max_bytes:
        output = (
            f"The result of {result.name} has {size} bytes, more than the {max_bytes} that can be "
            "passed on. Tell the caller that it was too large, or ask for a smaller part of it."
        )
        is_error = True
    return replace(result, output=output, is_error=is_error)


def refused(result: ToolResult) -> ToolResult:
    """Stands in for a result that closed a connection."""
    output = (
        f"The result of {result.name} was refused by the service and cannot be passed on. "
        "Tell the caller that it is not available."
    )
    return replace(result, output=output, is_error=True)


def still_running(call: ToolCall) -> ToolResult:
    """The answer that frees a server from waiting for a tool that has not finished."""
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        output=f"{call.name} is still running. Its result will follow in a later message.",
    )


def interim(answer: ToolResult, instructions: str | None) -> ToolResult:
    """The last answer to calls that are not waited for, with what the model is to say until then.

    Args:
        answer: Usually that of ``still_running``.
        instructions: Instructions for the reply, ``None`` if there are none.
    """
    wanted = (
        "Tell the caller so in a few words."
        if instructions is None
        else f"Until then, reply to the caller following these instructions: {instructions}"
    )
    return replace(answer, output=clean(f"{answer.output} {wanted}"))


def reply_to(result: ToolResult, instructions: str | None) -> ToolResult:
    """A result with instructions for the reply to it, ``None`` if there are none."""
    if instructions is None:
        return result
    return replace(result, output=f"{result.output}\n{reply_now(instructions)}")


def result_line(call: ToolCall, result: ToolResult) -> str:
    """One exchange as text: what was called with what, and what came of it."""
    verb = "failed with" if result.is_error else "returned"
    return clean(f"Function {call.name}({call.arguments}) {verb}: {result.output}")


def exchange(call: ToolCall, result: ToolResult) -> str:
    """A finished exchange for the history of a fresh session (function parts close it: 1007)."""
    return f"{MARK} Earlier in this conversation: {result_line(call, result)}"


def not_run(call: ToolCall) -> ToolResult:
    """The answer to a call that nobody took."""
    output = f"{call.name} was not run, since another agent is taking over."
    return ToolResult(call_id=call.call_id, name=call.name, output=output, is_error=True)


def retold(turns: Iterable[Turn], text: str) -> str:
    """Words of ours after what was said before, for servers that take no turns of others.

    Args:
        turns: What the model does not know of the conversation; pictures are left out.
        text: Our words.
    """
    lines = [f"{MARK} This was said before:"]
    for turn in turns:
        words = " ".join(part for part in turn.parts if isinstance(part, str))
        lines.append(f"{'You' if turn.role == 'model' else 'The caller'}: {words}")
    return "\n".join([*lines, text])


def say(records: Sequence[Record], request: str | None = None) -> str:
    """A marked user turn that puts results before the model, to be spoken about.

    Args:
        records: What to tell; each has a result.
        request: Instructions for that reply, ``None`` if there are none.
    """
    lines = [f"{MARK} A function that was called earlier has finished."]
    lines += [result_line(r.call, r.result) for r in records if r.result is not None]
    begun = " ".join(r.spoken.strip() for r in records if r.spoken.strip())
    if begun:
        lines.append(_BEGUN.format(begun))
    lines.append(_answer_now(records))
    if request is not None:
        lines.append(f"Follow these instructions in the same reply: {request}")
    return clean("\n".join(lines))


def remind(records: Sequence[Record]) -> str:
    """What is put before a model that was told a result and stayed silent."""
    lines = [_WAITING]
    lines += [result_line(r.call, r.result) for r in records if r.result is not None]
    return "\n".join([*lines, _answer_now(records)])


def _answer_now(records: Sequence[Record]) -> str:
    """Ask for a reply; a call that failed may be made again."""
    failed = any(r.result is not None and r.result.is_error for r in records)
    return f"{_ANSWER_NOW} {_UNMENTIONED if failed else _NOT_AGAIN}"


def reply_now(instructions: str | None) -> str:
    """A marked user turn that asks for a reply.

    Placeholders such as a lone dot are answered by an empty turn on some families (observed).
    """
    if instructions is None:
        return f"{MARK} Please go on with the conversation."
    return clean(f"{MARK} Reply now, following these instructions: {instructions}")


def answer_now(begun: str) -> str:
    """A marked user turn for a model that owes the caller an answer, or the rest of one.

    Args:
        begun: What it had said before it stopped.
    """
    return clean(f"{_WAITING} {_BEGUN.format(begun)}") if begun else _WAITING


def is_echo(words: str, written: Iterable[str]) -> bool:
    """Whether what "the caller" was heard to say is realtime text that we wrote ourselves."""
    heard = "".join(words.split())
    return bool(heard) and any("".join(text.split()).startswith(heard) for text in written)
