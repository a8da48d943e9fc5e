"""Is a function output in the chat context owed to the model, or is it history?

It is owed if its call was issued in this conversation; if it arrives *alone* after the first
context, since an ``AgentTask`` or a swap of models hands a session the output of a call that it
never issued; or if another session was closed before the caller heard a reply to it. Outputs of
the first context otherwise, pairs of call and output that arrive together (LiveKit makes such
pairs, with ids of its own), and what wants no reply of a session that never asked, are history.

Every output is made fit to be told before anything else sees it, so that none can close a
connection, by whatever route it is told.
"""

from __future__ import annotations

from dataclasses import replace

from . import wording
from .delivery import Ledger
from .events import HistoryItem, ToolCall, ToolResult


class Intake:
    """The chat contexts that a session was given, one after the other.

    Args:
        max_result_bytes: The largest output in UTF-8 bytes that is passed on.
    """

    def __init__(self, *, max_result_bytes: int) -> None:
        self.items: tuple[HistoryItem, ...] = ()
        """The newest context, oldest item first."""
        self._seen: set[str] = set()
        self._taken: set[str] = set()
        self._had_context = False
        self._max_result_bytes = max_result_bytes

    def taken(self, call_id: str) -> None:
        """A result was handed over apart from any context, which may hold it all the same."""
        self._taken.add(call_id)

    def connected(self, items: tuple[HistoryItem, ...]) -> None:
        """The context as it stands when a connection opens; everything in it was handed over."""
        self.items = tuple(map(self._fitting, items))
        self._seen.update(item.item_id for item in items)

    def updated(
        self,
        items: tuple[HistoryItem, ...],
        ledger: Ledger,
        *,
        due: frozenset[str] = frozenset(),
    ) -> tuple[list[tuple[ToolResult, ToolCall | None]], list[ToolResult]]:
        """Take a context.

        Args:
            items: The context, oldest item first.
            ledger: Knows the calls that were issued here.
            due: Ids of calls to whose results another session owed a reply when it was closed.

        Returns:
            The outputs in it that are new: those that are owed, each with its call if that is
            known, and those that are history.
        """
        first, self._had_context = not self._had_context, True
        seen = frozenset(self._seen)
        self.connected(items)
        new = [item for item in self.items if item.item_id not in seen]
        arriving = {item.call.call_id for item in new if item.call is not None}
        calls = {item.call.call_id: item.call for item in self.items if item.call is not None}
        owed: list[tuple[ToolResult, ToolCall | None]] = []
        history: list[ToolResult] = []
        for result in (item.result for item in new if item.result is not None):
            if result.call_id in self._taken:
                self._taken.discard(result.call_id)
                continue
            issued_here = ledger.get(result.call_id) is not None
            alone = not first and result.call_id not in arriving and result.reply_required
            if issued_here or alone or result.call_id in due:
                owed.append((result, calls.get(result.call_id)))
            else:
                history.append(result)
        return owed, history

    def _fitting(self, item: HistoryItem) -> HistoryItem:
        if item.result is None:
            return item
        fitting = wording.fitting(item.result, max_bytes=self._max_result_bytes)
        return replace(item, result=fitting)
