"""Which calls a connection has issued, and which of them a response is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from .records import Connection, Entry, IssuedCall
from .script import Call
from .service import Service


class ConnectionCalls:
    """The calls of one connection.

    Args:
        service: what is shared with the other connections.
        connection: the connection, its setup accepted.
        new_id: returns an id in the family's style; empty if calls carry none.
    """

    def __init__(self, service: Service, connection: Connection, new_id: Callable[[], str]) -> None:
        self.lost = service.lost.setdefault(connection.conversation, [])
        """The calls of the conversation that were open when an earlier connection ended, and
        that no response has closed since."""
        self._service = service
        self._connection = connection
        self._new_id = new_id
        self._issued: list[IssuedCall] = []

    @property
    def open(self) -> list[IssuedCall]:
        """The calls that wait for an answer."""
        return [call for call in self._issued if call.open]

    @property
    def blocking(self) -> list[IssuedCall]:
        """The open calls that keep the model silent."""
        return [call for call in self.open if call.blocking]

    def issue(self, steps: Iterable[Call]) -> list[IssuedCall]:
        """Issue calls, and let the model know them."""
        number = self._connection.number
        calls = [
            IssuedCall(self._new_id(), step.name, self._args(step), number, self._blocks(step.name))
            for step in steps
        ]
        for call in calls:
            self._connection.context.append(Entry("call", f"{call.name} {call.args}", call.key))
            if call.name not in self._connection.declared_tools:
                self._breach(f"the script calls {call.name}, which is not declared")
        self._issued += calls
        self._service.calls += calls
        return calls

    def restore(self, pending: Iterable[IssuedCall]) -> None:
        """Wait again for calls that were open when the handle was issued."""
        for call in pending:
            # An answer that came after the handle is forgotten with all that came after it.
            restored = call if call.open else replace(call, answered=False, cancelled=False)
            self._issued.append(restored)
            self.lost[:] = [other for other in self.lost if other.key != call.key]

    def lose(self) -> None:
        """Leave the open calls to the connections that will resume the conversation."""
        known = {call.key for call in self.lost}
        self.lost += [call for call in self.open if call.key not in known]

    def find(self, call_id: str, name: str) -> IssuedCall | None:
        """Return the call of this connection that a response is for."""
        return self._match(self._issued, call_id, name)

    def find_lost(self, call_id: str, name: str) -> IssuedCall | None:
        """Return the lost call that a response is for."""
        return self._match(self.lost, call_id, name)

    def _match(self, calls: list[IssuedCall], call_id: str, name: str) -> IssuedCall | None:
        if self._service.profile.call_ids != "none":
            return next((c for c in reversed(calls) if c.id and c.id == call_id), None)
        named = [call for call in calls if call.name == name]
        return next((call for call in named if call.open), named[-1] if named else None)

    def _args(self, step: Call) -> dict[str, Any]:
        if not step.again:
            return step.args
        earlier = [call for call in self._service.calls if call.name == step.name]
        if not earlier:
            self._breach(f"the script calls {step.name} again, which was never called")
            return {}
        return earlier[-1].args

    def _blocks(self, name: str) -> bool:
        profile = self._service.profile
        behavior: str = profile.default_behavior
        if profile.other_behavior == "honoured":
            behavior = self._connection.behaviors.get(name, behavior)
        return behavior == "BLOCKING"

    def _breach(self, what: str) -> None:
        self._service.journal.breach(self._connection.number, what)
