"""What of the wire says that a result arrived, and that the caller heard a reply to it?

A result is known once a generation that began after it was told has completed. Nothing else is
evidence: not

* a generation that began before the telling, or on another connection;
* an empty turn, or a call without a word, which may have crossed the result;
* where tools do not block, an answer to the caller's own words in between;
* where they do, what trails a batch of which another call is still open;
* a connection that ended first: what was told there, and not seen to arrive, is untold.

A reply that nobody took, since an agent is being replaced by another, is due once more, in words,
to whoever listens next; a call that nobody took is answered with an error.

The evidence of a generation is the ids of the results it speaks about, named when it begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .delivery import Ledger
from .effects import Outcome
from .record import Known, Record, Reply, Route

_UNHEARD_LIMIT = 3
"""Replies to one result that may find nobody who takes them: a session that nothing listens to is
not told the same result for ever."""


def expects_reply(ledger: Ledger, connection: int) -> bool:
    """Whether the next words of the model are about what it was told in words of ours."""
    told = (r for r in ledger if r.is_told_on(connection))
    return any(r.waits_for_reply and r.route is not Route.RESPONSE for r in told)


def generation_started(ledger: Ledger, connection: int, *, about_other: bool) -> tuple[str, ...]:
    """The model begins to speak.

    Args:
        ledger: What was told.
        connection: Where it does.
        about_other: It speaks to words of the caller where tools do not block. A result that
            wants no reply has no other sign than that the model went on.

    Returns:
        Ids of the results that this generation is evidence for, once it completes.
    """
    told = [r for r in ledger if r.is_told_on(connection)]
    if about_other:
        told = [r for r in told if r.reply is Reply.NONE and r.route is not Route.SETTLE]
    for record in told:
        if record.reply is Reply.DUE:
            record.reply = Reply.STARTED
    return tuple(r.call.call_id for r in told)


def exchanges_closed(ledger: Ledger, call_ids: Iterable[str]) -> None:
    """A generation ended that began after the responses to these calls: they have arrived."""
    for record in filter(None, map(ledger.get, call_ids)):
        record.is_closed = True


def generation_completed(ledger: Ledger, evidence: Iterable[str]) -> list[tuple[str, Outcome]]:
    """A generation ended by itself; the outcomes that this decides."""
    return _close(ledger, evidence, interrupted=False)


def generation_interrupted(ledger: Ledger, evidence: Iterable[str]) -> list[tuple[str, Outcome]]:
    """The caller interrupted a generation: its reply is not owed any more."""
    return _close(ledger, evidence, interrupted=True)


def generation_cut(ledger: Ledger, evidence: Iterable[str], spoken: str) -> None:
    """A generation broke off in the middle: the reply is due again, and says so."""
    for record in _told_among(ledger, evidence):
        if record.reply is Reply.STARTED:
            record.reply = Reply.DUE
            record.spoken = spoken or record.spoken


def reply_unheard(
    ledger: Ledger, evidence: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Nobody took the generation that spoke about these: the reply is due once more.

    Returns:
        Ids of results that it is evidence for all the same, since no reply to them is wanted;
        and ids of those whose replies nobody took ``_UNHEARD_LIMIT`` times, and are given up.
    """
    proven: list[str] = []
    lost: list[str] = []
    for record in _told_among(ledger, evidence):
        if record.reply is not Reply.STARTED:
            proven.append(record.call.call_id)
            continue
        record.unheard += 1
        if record.unheard < _UNHEARD_LIMIT:
            record.known, record.reply = Known.NO, Reply.DUE
        else:
            record.known, record.reply = Known.KNOWN, Reply.DONE
            lost.append(record.call.call_id)
    return tuple(proven), tuple(lost)


def settle_failed(ledger: Ledger, connection: int) -> None:
    """The responses that settled had no effect: what they carried is untold."""
    for record in ledger:
        untouched = record.route is Route.SETTLE and record.reply is not Reply.STARTED
        if untouched and record.is_told_on(connection):
            record.known = Known.NO


def connection_closed(ledger: Ledger, connection: int) -> None:
    """What was told there and not seen to arrive is untold."""
    for record in ledger:
        if record.is_told_on(connection):
            record.known = Known.NO
            if record.reply is Reply.STARTED:
                record.reply = Reply.DUE


def _told_among(ledger: Ledger, evidence: Iterable[str]) -> Iterator[Record]:
    records = map(ledger.get, evidence)
    return (r for r in records if r is not None and r.known is Known.TOLD)


def _close(
    ledger: Ledger, evidence: Iterable[str], *, interrupted: bool
) -> list[tuple[str, Outcome]]:
    outcomes: list[tuple[str, Outcome]] = []
    for record in _told_among(ledger, evidence):
        record.known = Known.KNOWN
        wanted = record.reply is Reply.STARTED
        record.reply = Reply.DONE if wanted else record.reply
        outcome = Outcome.REPLIED if wanted and not interrupted else Outcome.KNOWN
        outcomes.append((record.call.call_id, outcome))
    return outcomes
