"""Errors of the package.

::

    ResilienceError                 anything this package raises by itself
    ├── ConfigurationError          a wrong option; also a ValueError
    ├── ReplyRefused                a ``generate_reply`` that cannot be served
    ├── ResultUnanswered            the model never reacted to a tool result
    ├── CallerUnanswered            the model never answered the caller
    ├── MessagesLeftOut             messages that closed two connections are not told any more
    ├── ToolsUnusable               tools that cannot be declared were left out
    ├── SettingsRefused             settings cannot be used; those before stay in force
    ├── ConnectionFailed            no connection could be had or kept
    └── SessionFailed               a defect of this package, or of a listener, ended the session

Every error holds its data and builds its own text; nothing in this package reads the text of an
exception to decide something.
"""

from __future__ import annotations


class ResilienceError(Exception):
    """Base of all errors raised by this package."""


class ConfigurationError(ResilienceError, ValueError):
    """An option has a value that cannot work.

    Args:
        option: The name of the option.
        value: The value that was given.
        expected: What would have been accepted, as the end of "expected …".
    """

    def __init__(self, option: str, value: object, expected: str) -> None:
        super().__init__(option, value, expected)
        self.option = option
        self.value = value
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.option}={self.value!r}: expected {self.expected}"


class ReplyRefused(ResilienceError):
    """A ``generate_reply`` cannot be served, or was not answered.

    Args:
        reason: What stood in the way.
        advice: What the caller can do about it.
    """

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason, advice)
        self.reason = reason
        self.advice = advice

    def __str__(self) -> str:
        return f"generate_reply failed: {self.reason}; {self.advice}"


class ResultUnanswered(ResilienceError):
    """A tool result was put before the model twice and the model stayed silent.

    Args:
        call_ids: The calls whose results got no reply.
        seconds: How long the model was silent after it was asked for the second time.
    """

    def __init__(self, call_ids: tuple[str, ...], seconds: float) -> None:
        super().__init__(call_ids, seconds)
        self.call_ids = call_ids
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"the model gave no reply to the result of {len(self.call_ids)} tool call(s) "
            f"within {self.seconds:g} s, also not when it was asked a second time"
        )


class CallerUnanswered(ResilienceError):
    """The caller waits for words that did not come, although the model was asked for them.

    Args:
        seconds: How long the model was silent after it was asked for the last time.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"the model did not answer the caller within {self.seconds:g} s, "
            "also not when it was asked to on a fresh connection"
        )


class MessagesLeftOut(ResilienceError):
    """The server closed two connections over the same messages: the model does not know them.

    Args:
        ids: Ids of the items of the chat context. Which of them it was the close does not say.
    """

    def __init__(self, ids: frozenset[str]) -> None:
        super().__init__(ids)
        self.ids = ids

    def __str__(self) -> str:
        return (
            f"the server closed two connections over {len(self.ids)} item(s) of the chat context, "
            "which the model is not told any more; hand over a context without what it refuses"
        )


class ToolsUnusable(ResilienceError):
    """Tools that the service cannot be told of were left out; the others are declared.

    Args:
        names: The tools, by the names under which they would be declared.
        reason: What is wrong with the first of them.
    """

    def __init__(self, names: tuple[str, ...], reason: str) -> None:
        super().__init__(names, reason)
        self.names = names
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"left out tool(s) {', '.join(self.names)}, which cannot be declared ({self.reason}); "
            "simplify the schema of the parameters: no list of types, no $ref to itself"
        )


class SettingsRefused(ResilienceError):
    """Tools, instructions or options cannot be used; those before stay in force.

    Args:
        functions: The functions among them that are new or have changed, by name.
        reason: What the server, the SDK or the plugin said.
    """

    def __init__(self, functions: tuple[str, ...], reason: str) -> None:
        super().__init__(functions, reason)
        self.functions = functions
        self.reason = reason

    def __str__(self) -> str:
        blamed = f"tool(s) {', '.join(self.functions)}" if self.functions else "the options"
        return (
            f"the new settings cannot be used ({self.reason or 'no reason given'}) and those "
            f"before stay in force; change or remove {blamed}"
        )


class ConnectionFailed(ResilienceError):
    """No connection to Gemini Live could be had, or none lasted.

    Args:
        code: The websocket close code or HTTP status of the last failure, ``None`` if there was
            none (a time-out, a refused socket).
        reason: What the server or the network said, empty if nothing.
        attempts: How many dials were made since the conversation last made progress.
        advice: What the user can change, ``None`` if nothing is known.
    """

    def __init__(self, code: int | None, reason: str, attempts: int, advice: str | None) -> None:
        super().__init__(code, reason, attempts, advice)
        self.code = code
        self.reason = reason
        self.attempts = attempts
        self.advice = advice

    def __str__(self) -> str:
        code = None if self.code is None else f"code {self.code}"
        known = ", ".join(part for part in (code, self.reason) if part) or "no reason given"
        text = f"Gemini Live connection failed ({known}) after {self.attempts} attempt(s)"
        return f"{text}: {self.advice}" if self.advice else text


class SessionFailed(ResilienceError):
    """A defect of this package, or of a listener of its events, ended the session.

    Args:
        kind: The type of the exception; the exception itself is the ``__cause__``.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        return f"the session was ended by an unexpected {self.kind}; start a new one"
