"""Books of claims: opened with the row of a claim, and closed when it is forgotten."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.ledger_rows import ClaimBookRow, Parties
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, HeldClaimRow, PassedClaimRow, Row, RowKind, key_of
from messiahs.core.ledger.accounts import drop, enter, keep
from messiahs.core.ledger.accounts import restore as restore_accounts
from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import HOUR, Instant, after
from messiahs.core.state.ledger import Books
from messiahs.core.state.module import ModuleState

KEPT_NS: Final = 25 * HOUR
"""A closed book waits this long for its final sum, or for the acknowledgment: results wait a day for their origin."""
CLOSED_LIMIT: Final = 8_192
"""Closed books; beyond it the neighbor with most of them has the oldest one forgotten."""
_CLAIMS: Final = (RowKind.GRANTED_CLAIM, RowKind.HELD_CLAIM, RowKind.PASSED_CLAIM)
_RUNS_ON_NS: Final = 1 * HOUR
"""How long attempts may run in a claim that a hop has forgotten: until their lease expires."""
_TOLERANCE: Final = 10
"""A sum may exceed what the own clock allows by this part: clocks are not synchronized."""


def follow_claims(state: ModuleState, actions: Iterable[Action], now: Instant) -> None:
    """Open and close books as the rows of claims are stored and forgotten."""
    for action in actions:
        if isinstance(action, Store):
            row = action.row
            if isinstance(row, GrantedClaimRow | HeldClaimRow | PassedClaimRow):
                _open(state, row, now)
        elif isinstance(action, Forget) and action.key[0] in _CLAIMS:
            kind, claim = action.key
            assert isinstance(claim, ClaimId), "claims are stored by their ids"
            _close(state, claim, is_own=kind is RowKind.GRANTED_CLAIM, now=now)


def note_run(state: ModuleState, claim: ClaimId, ended: AttemptEnded, now: Instant, /) -> None:
    """Enter an attempt that has ended on the own machine, once, when its end is accepted.

    What it used beyond what it held does not count: no other end of a link could tell it from an invention.
    """
    book = state.ledger.own.get(claim)
    if book is None:
        return
    held_ns = min(INTEGER_HIGHEST - book.processor_ns, book.slots * max(0, ended.ran_ns))
    if held_ns:
        cpu_ns = ended.usage.cpu_ns if ended.usage is not None else None
        used_ns = book.used_ns + min(held_ns, max(0, cpu_ns or 0))
        book = replace(book, processor_ns=book.processor_ns + held_ns, used_ns=used_ns)
        change(state, book)
        state.ledger.running[True, claim] = None
    left = state.ledger.leaving.pop(claim, None)
    if left == 1:
        finish(state, book, now)
    elif left is not None:
        state.ledger.leaving[claim] = left - 1


def allowed_ns(state: ModuleState, book: ClaimBookRow, now: Instant) -> int:
    """Return the greatest sum that a claim allows by the clock of this module."""
    until = now
    if book.closed_at is not None:
        runs_on_ns = 0 if book.parties.sink == state.system else _RUNS_ON_NS
        until = min(now, after(book.closed_at, runs_on_ns))
    elapsed_ns = max(0, until - book.began_at)
    return min(INTEGER_HIGHEST, book.slots * (elapsed_ns + elapsed_ns // _TOLERANCE))


def change(state: ModuleState, book: ClaimBookRow) -> None:
    """Replace a book."""
    table(state, is_own=book.is_own)[book.id] = book
    keep(state, book)


def has_rest(book: ClaimBookRow) -> bool:
    """Return whether a book has gained what is not in the accounts yet."""
    return book.processor_ns > book.entered_ns or book.used_ns > book.entered_used_ns


def enter_rest(state: ModuleState, book: ClaimBookRow, now: Instant) -> ClaimBookRow:
    """Enter what a book has gained into the accounts; return the book as it is then."""
    if not has_rest(book):
        return book
    gained_ns, used_ns = book.processor_ns - book.entered_ns, book.used_ns - book.entered_used_ns
    enter(state, book.parties, gained_ns, now, used_ns=used_ns)
    book = replace(book, entered_ns=book.processor_ns, entered_used_ns=book.used_ns)
    change(state, book)
    return book


def finish(state: ModuleState, book: ClaimBookRow, now: Instant) -> None:
    """Make a book final: its sum is entered, and reported to the neighbor toward the origin, if there is one."""
    book = replace(enter_rest(state, book, now), is_final=True)
    state.ledger.running.pop((book.is_own, book.id), None)
    change(state, book)
    if book.parties.sink == state.system:
        if book.closed_at is not None:
            forget(state, book)
    else:
        state.ledger.finals[book.is_own, book.id] = None


def forget(state: ModuleState, book: ClaimBookRow) -> None:
    """Forget a book; what it has gained is in the accounts."""
    ledger, key = state.ledger, (book.is_own, book.id)
    del table(state, is_own=book.is_own)[book.id]
    ledger.closed.pop(key, None)
    ledger.running.pop(key, None)
    ledger.finals.pop(key, None)
    if book.is_own:
        ledger.leaving.pop(book.id, None)
    elif book.shown is not None:
        ledger.shown.pop(book.shown, None)
    drop(state, key_of(book))


def forget_old(state: ModuleState, now: Instant) -> None:
    """Forget the books that have waited for too long, and the oldest ones beyond the limit."""
    ledger = state.ledger
    for is_own, claim in tuple(ledger.closed):
        book = table(state, is_own=is_own)[claim]
        assert book.closed_at is not None, "it is closed"
        if now - book.closed_at <= KEPT_NS:
            break
        forget(state, enter_rest(state, book, now))
    if len(ledger.closed) > CLOSED_LIMIT:
        waiting = Counter(awaited(state, each) for each in _closed(state))
        most = waiting.most_common(1)[0][0]
        oldest = next(each for each in _closed(state) if awaited(state, each) == most)
        forget(state, enter_rest(state, oldest, now))


def awaited(state: ModuleState, book: ClaimBookRow) -> SystemId:
    """Return the neighbor for which a closed book is kept."""
    return book.parties.sink if book.is_final or book.parties.source == state.system else book.parties.source


def unsettled_with(state: ModuleState, neighbor: SystemId) -> int:
    """Count the closed books whose final sum a neighbor has not stated, or has not acknowledged."""
    closed = ((book, book.parties) for book in _closed(state))
    return sum(
        parties.sink == neighbor or (parties.source == neighbor and not book.is_final) for book, parties in closed
    )


def table(state: ModuleState, *, is_own: bool) -> Books:
    """Return the books of claims on the own machine, or the others."""
    return state.ledger.own if is_own else state.ledger.others


def restore(state: ModuleState, rows: Iterable[Row], *, attempts: Iterable[AttemptRow], now: Instant) -> None:
    """Enter the stored rows, once the claims are entered, and open the books that were not stored.

    `attempts` are the stored ones, before any of them continues or ends.
    """
    rows = tuple(rows)
    restore_accounts(state, rows)
    books = sorted((row for row in rows if isinstance(row, ClaimBookRow)), key=lambda row: row.closed_at or 0)
    live = Counter(row.claim for row in attempts if row.status.state is TaskState.EXECUTING)
    for book in books:
        _enter_book(state, book)
    for granted in state.executor.claims.values():
        _open(state, granted.row, now)
    for held in state.origin.claims.values():
        _open(state, held.row, now)
    for passed in state.hop.passed.values():
        _open(state, passed, now)
    for book in books:
        is_closed = book.closed_at is not None
        if not is_closed and not _is_known(state, book):
            _close(state, book.id, is_own=book.is_own, now=now)
        elif is_closed and book.is_own and not book.is_final:
            _await_attempts(state, book, live[book.id], now)
        elif has_rest(book):
            state.ledger.running[book.is_own, book.id] = None


def _open(state: ModuleState, row: GrantedClaimRow | HeldClaimRow | PassedClaimRow, now: Instant) -> None:
    """Open the book of a new claim; one that passes here is stored, since its row has no instant."""
    is_own = isinstance(row, GrantedClaimRow)
    if row.id in table(state, is_own=is_own):
        return
    own = state.system
    match row:
        case GrantedClaimRow():
            parties, slots = _parties(row.tdv, source=own, sink=row.via, origin=row.origin), _own_slots(row)
            book = ClaimBookRow(id=row.id, is_own=True, parties=parties, slots=slots, began_at=now)
        case HeldClaimRow():
            if row.via == own:
                return
            slots = min(INTEGER_HIGHEST, row.places * _slots(row.tdv))
            parties = _parties(row.tdv, source=row.via, sink=own, origin=own)
            book = ClaimBookRow(id=row.id, is_own=False, parties=parties, slots=slots, began_at=row.answered_at)
        case PassedClaimRow():
            origin = row.origin or row.toward_origin
            parties = _parties(row.tdv, source=row.toward_executor, sink=row.toward_origin, origin=origin)
            book = ClaimBookRow(
                id=row.id, is_own=False, parties=parties, slots=row.slots, began_at=now, shown=row.shown
            )
            keep(state, book)
    _enter_book(state, book)


def _enter_book(state: ModuleState, book: ClaimBookRow) -> None:
    table(state, is_own=book.is_own)[book.id] = book
    if book.shown is not None:
        state.ledger.shown[book.shown] = book.id
    if book.closed_at is not None:
        state.ledger.closed[book.is_own, book.id] = None


def _close(state: ModuleState, claim: ClaimId, *, is_own: bool, now: Instant) -> None:
    book = table(state, is_own=is_own).get(claim)
    if book is None or book.closed_at is not None:
        return
    if book.is_final and (book.is_acknowledged or book.parties.sink == state.system):
        forget(state, book)
        return
    book = replace(book, closed_at=now)
    change(state, book)
    state.ledger.closed[is_own, claim] = None
    if is_own:
        released = state.executor.released.get(claim)
        _await_attempts(state, book, released.live if released is not None else 0, now)
    forget_old(state, now)


def _await_attempts(state: ModuleState, book: ClaimBookRow, live: int, now: Instant) -> None:
    """Finish the closed book of an own claim, unless attempts are still being ended."""
    if live:
        state.ledger.leaving[book.id] = live
    else:
        finish(state, book, now)


def _is_known(state: ModuleState, book: ClaimBookRow) -> bool:
    if book.is_own:
        return book.id in state.executor.claims
    return book.id in state.origin.claims or book.id in state.hop.passed


def _closed(state: ModuleState) -> Iterator[ClaimBookRow]:
    return (table(state, is_own=is_own)[claim] for is_own, claim in state.ledger.closed)


def _parties(tdv: TDV, *, source: SystemId, sink: SystemId, origin: SystemId) -> Parties:
    stated = tdv.description()
    user, account = str(stated.get("user", "")), str(stated.get("account", ""))
    return Parties(source=source, sink=sink, origin=origin, user=user, account=account)


def _slots(tdv: TDV) -> int:
    cpus = tdv.description().get("cpus", 1)
    return max(1, cpus) if isinstance(cpus, int) else 1


def _own_slots(row: GrantedClaimRow) -> int:
    """Return the slots of one task, without those that the policy gave beyond the request."""
    return min(row.slots or _slots(row.tdv), _slots(row.tdv))
