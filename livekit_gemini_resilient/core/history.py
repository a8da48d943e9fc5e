"""Which part of the conversation does this connection not know?

A fresh session knows nothing; a resumed one knows what its handle covers, a *snapshot* of what
the server had consumed when it issued it (observed). Only the difference is sent, each item once.
Tool exchanges travel as text, since function parts in client content close the connection with
1007 (observed); every turn has an explicit role, since newer families refuse one without it.

What the server has cannot be taken back from it. Where the framework removes or edits a message
that was heard, only a fresh session forgets it, and no handle of the old one may be used again.
Replies that were never played, or were cut short, were not heard as the server has them: the
framework never records the former and records the latter as they were heard, so that neither
counts. Function items are told by ways of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

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
        self._recorded: dict[str, str] = {}
        self.is_replaced = False
        """Whether the server has something that is not part of the conversation any more."""

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

    def recorded(self, item_id: str, text: str) -> None:
        """The framework recorded a message as it was heard."""
        self._recorded[item_id] = text

    def replace(self, items: Sequence[HistoryItem]) -> bool:
        """The framework handed over its context.

        Returns:
            Whether a message that was heard, and that the server has, is missing or was edited.
        """
        texts = {item.item_id: item.text for item in items if item.kind is ItemKind.MESSAGE}
        replaced = any(
            texts.get(item_id) != text
            for item_id, text in self._recorded.items()
            if self.has(item_id) or item_id in self._covered
        )
        # a reply of the server's own may be in the context before it is heard
        told = {i: text for i, text in texts.items() if i in self._recorded or i not in self._known}
        self._recorded = told
        self.is_replaced = self.is_replaced or replaced
        return replaced

    def handle_received(self) -> None:
        """A usable handle arrived; it covers what the server has consumed."""
        self._covered = set(self._known)

    def handle_supplied(self, items: Sequence[HistoryItem]) -> None:
        """The caller's own handle covers the context that it came with, to the model's last words.

        A handle is issued when a turn has ended (observed). What follows the last words of the
        model may be newer, and to be told it twice as history is better than never.
        """
        spoke = [number for number, item in enumerate(items) if item.role == "model"]
        for item in items[: spoke[-1] + 1] if spoke else ():
            self.heard(item.known_as)
        self.handle_received()

    def connection_opened(self, *, resumed: bool) -> None:
        """A connection begins with what its handle covers, or with nothing."""
        self._known = set(self._covered) if resumed else set()
        self._sent.clear()
        if not resumed:
            self._covered.clear()
            self.is_replaced = False

    @property
    def is_covered(self) -> bool:
        """Whether the newest handle covers all that the server has."""
        return self._known <= self._covered

    def has(self, known_as: str) -> bool:
        """Whether the present connection has it or is about to."""
        return known_as in self._known or known_as in self._sent

    def missing(
        self,
        items: Sequence[HistoryItem],
        *,
        skip: frozenset[str],
        bare: frozenset[str] = frozenset(),
    ) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
        """What the present connection has to be told of these items.

        Args:
            items: The chat context, oldest first.
            skip: Ids of what is not told, or reaches the model by another way.
            bare: Ids of messages of which only the text is told.

        Returns:
            The turns, and the ids for ``sent``.
        """
        calls = {item.call.call_id: item.call for item in items if item.call is not None}
        turns: dict[str, Turn] = {}
        for item in items:
            known_as = item.known_as
            if self.has(known_as) or known_as in skip or known_as in turns:
                continue
            if known_as in bare:
                item = replace(item, parts=tuple(p for p in item.parts if isinstance(p, str)))
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
