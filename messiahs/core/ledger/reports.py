"""Reports on the books of claims, from each module on their path to the next one toward the origin."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Report, ReportCode, SendControl
from messiahs.core.interface.ledger_messages import ClaimUsage, UsageReport, UsageReportAck
from messiahs.core.interface.ledger_rows import ClaimBookRow
from messiahs.core.interface.limits import USAGES
from messiahs.core.interface.timers import TimerKind
from messiahs.core.ledger.books import allowed_ns, change, enter_rest, finish, follow_claims, forget, forget_old, table
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.state.module import ModuleState

REPORT_AFTER_NS: Final = 5 * SECOND
"""A book that grows is reported this long after it began to; a final one at once."""


def follow(state: ModuleState, actions: tuple[Action, ...], now: Instant) -> tuple[Action, ...]:
    """Return the rows of the ledger that a step has changed, and the reports on the books that it made final."""
    ledger = state.ledger
    follow_claims(state, actions, now)
    if ledger.running and not state.timers.is_set(TimerKind.LEDGER, state.system):
        state.timers.set(TimerKind.LEDGER, state.system, after(now, REPORT_AFTER_NS))
    if not ledger.finals and not ledger.writes:
        return ()
    finals = [table(state, is_own=is_own)[claim] for is_own, claim in ledger.finals]
    ledger.finals = {}
    writes, ledger.writes = tuple(ledger.writes.values()), {}
    return (*writes, *_reports(state, finals))


def on_ledger_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Enter and report all books that have grown."""
    running, state.ledger.running = state.ledger.running, {}
    books = [enter_rest(state, table(state, is_own=is_own)[claim], now) for is_own, claim in running]
    forget_old(state, now)
    return tuple(_reports(state, books))


def on_link_open(state: ModuleState, neighbor: SystemId) -> tuple[Action, ...]:
    """Report again what a neighbor has not acknowledged, and what may have grown while there was no link."""
    books = [book for each in (state.ledger.own, state.ledger.others) for book in each.values()]
    return tuple(_reports(state, (book for book in books if book.parties.sink == neighbor)))


def on_usage_report(state: ModuleState, report: UsageReport, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Enter what a neighbor states about the claims that lead through it, and acknowledge what is final.

    A claim without a book was acknowledged before, or has waited for too long.
    """
    actions: list[Action] = []
    for usage in report.usages:
        book = state.ledger.others.get(usage.claim)
        if book is None:
            continue
        if book.parties.source != sender:
            actions.append(Report(neighbor=sender, code=ReportCode.NO_SUCH_CLAIM, text=str(usage.claim)))
        elif not book.is_final:
            actions.extend(_on_usage(state, book, usage, now))
    finals = tuple(usage.claim for usage in report.usages if usage.is_final)
    return (*actions, SendControl(to=sender, message=UsageReportAck(claims=finals))) if finals else tuple(actions)


def on_usage_report_ack(state: ModuleState, ack: UsageReportAck, *, sender: SystemId) -> tuple[Action, ...]:
    """Forget the closed books whose final sum a neighbor has stored."""
    for claim in ack.claims:
        for book in _shown_as(state, claim):
            if book.parties.sink != sender or not book.is_final:
                continue
            if book.closed_at is not None:
                forget(state, book)
            else:
                change(state, replace(book, is_acknowledged=True))
    return ()


def _on_usage(state: ModuleState, book: ClaimBookRow, usage: ClaimUsage, now: Instant) -> tuple[Action, ...]:
    most_ns = allowed_ns(state, book, now)
    processor_ns = max(book.processor_ns, min(usage.processor_ns, most_ns))
    used_ns = max(book.used_ns, min(usage.used_ns, processor_ns))
    if processor_ns > book.processor_ns or used_ns > book.used_ns:
        book = replace(book, processor_ns=processor_ns, used_ns=used_ns)
        change(state, book)
        book = enter_rest(state, book, now)
        if book.parties.sink != state.system:
            state.ledger.running[False, book.id] = None
    if usage.is_final:
        finish(state, book, now)
    if usage.processor_ns <= most_ns:
        return ()
    text = f"{usage.claim}: {usage.processor_ns // SECOND} processor seconds, of at most {most_ns // SECOND}"
    return (Report(neighbor=book.parties.source, code=ReportCode.OVERSTATED, text=text),)


def _usage_of(book: ClaimBookRow) -> ClaimUsage:
    return ClaimUsage(
        claim=book.shown or book.id,
        processor_ns=book.processor_ns,
        used_ns=book.used_ns,
        is_final=book.is_final,
    )


def _shown_as(state: ModuleState, claim: ClaimId) -> Iterator[ClaimBookRow]:
    """Yield the books that a neighbor toward the origin may know by an id."""
    known = state.ledger.shown.get(claim, claim)
    for book in (state.ledger.own.get(claim), state.ledger.others.get(known)):
        if book is not None and claim == (book.shown or book.id):
            yield book


def _reports(state: ModuleState, books: Iterable[ClaimBookRow]) -> Iterator[SendControl]:
    """Yield reports on those of some books whose sink is linked, and has not acknowledged them."""
    usages: dict[SystemId, list[ClaimUsage]] = {}
    for book in books:
        sink = book.parties.sink
        has_news = book.is_final or book.processor_ns > 0
        if has_news and not book.is_acknowledged and state.updates.links.get(sink):
            usages.setdefault(sink, []).append(_usage_of(book))
    for sink, of_it in usages.items():
        for begin in range(0, len(of_it), USAGES):
            yield SendControl(to=sink, message=UsageReport(usages=tuple(of_it[begin : begin + USAGES])))
