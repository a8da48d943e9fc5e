"""Which part of the conversation does this connection not know?

A fresh session knows nothing; a resumed one knows what its handle covers, a *snapshot* of what
the server had consumed when it issued it (observed). Only the difference is sent, each item once.
Tool exchanges travel as text, since function parts in client content close the connection with
1007 (observed); every turn has an explicit role, since newer families refuse one without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import wording
from .events import HistoryItem, ItemKind, ToolCall, Turn


class History:
    """What the server has, on the present connection and by the newest handle.

    A message goes by its item id, a tool exchange by its call id.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._covered: set[str] = set()
        self._sent: set[str] = set()

    def sent(self, ids: Iterable[str]) -> None:
        """These were written; they are taken as consumed when the model next speaks."""
        self._sent.update(ids)

    def consumed(self) -> None:
        """The model spoke: what had been written before is in its context."""
        self._known |= self._sent
        self._sent.clear()

    def heard(self, known_as: str) -> None:
        """The server heard, said or was told this itself."""
        self._known.add(known_as)

    def handle_received(self) -> None:
        """A usable handle arrived; it covers what the server has consumed."""
        self._covered = set(self._known)

    def handle_supplied(self, items: Sequence[HistoryItem]) -> None:
        """The caller's own handle is taken to cover the context that it came with.

        Results after the model's last words are left out: no handle holds an open call (observed),
        and to be told a result twice as history is better than never.
        """
        spoke = [n for n, item in enumerate(items) if item.role == "model"]
        for number, item in enumerate(items):
            if item.result is None:
                self.heard(item.item_id)
            elif spoke and number < spoke[-1]:
                self.heard(item.result.call_id)
        self.handle_received()

    def connection_opened(self, *, resumed: bool) -> None:
        """A connection begins with what its handle covers, or with nothing."""
        self._known = set(self._covered) if resumed else set()
        self._sent.clear()
        if not resumed:
            self._covered.clear()

    @property
    def is_covered(self) -> bool:
        """Whether the newest handle covers all that the server has."""
        return self._known <= self._covered

    def has(self, known_as: str) -> bool:
        """Whether the present connection has it or is about to."""
        return known_as in self._known or known_as in self._sent

    def missing(
        self, items: Sequence[HistoryItem], *, skip: frozenset[str]
    ) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
        """What the present connection has to be told of these items.

        Args:
            items: The chat context, oldest first.
            skip: Ids of calls whose outputs reach the model by another way.

        Returns:
            The turns, and the ids for ``sent``.
        """
        calls = {item.call.call_id: item.call for item in items if item.call is not None}
        turns: dict[str, Turn] = {}
        for item in items:
            known_as = item.result.call_id if item.result is not None else item.item_id
            if self.has(known_as) or known_as in skip or known_as in turns:
                continue
            turn = _turn(item, calls)
            if turn is not None:
                turns[known_as] = turn
        return tuple(turns.values()), tuple(turns)


def _turn(item: HistoryItem, calls: dict[str, ToolCall]) -> Turn | None:
    if item.kind is ItemKind.MESSAGE and item.parts:
        parts = tuple(wording.clean(p) if isinstance(p, str) else p for p in item.parts)
        return Turn(role=item.role, parts=parts)
    if item.result is not None:
        result = item.result
        unnamed = ToolCall(call_id=result.call_id, name=result.name, arguments="")
        call = calls.get(result.call_id, unnamed)
        return Turn(role="user", parts=(wording.exchange(call, result),))
    return None
