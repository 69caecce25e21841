"""Books of claims: what is entered, reported and acknowledged, and what a neighbor cannot make of them."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Forget, Report, ReportCode, Store
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.events import LinkDown, TransferReceived
from messiahs.core.interface.ledger_messages import ClaimUsage, UsageReport, UsageReportAck
from messiahs.core.interface.ledger_rows import ClaimBookRow
from messiahs.core.interface.messages import ClaimEnd, SchedAccept, SchedDeny, SchedRequest, TaskStatusAck
from messiahs.core.interface.rows import RowKind
from messiahs.core.invariants import violations
from messiahs.core.ledger.accounts import balance_with, neighbor_accounts, usage_rows
from messiahs.core.ledger.books import CLOSED_LIMIT, KEPT_NS
from messiahs.core.ledger.reports import REPORT_AFTER_NS
from messiahs.core.model.ids import ClaimId, Epoch
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.usage import Usage
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    ME,
    ORIGIN,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    attempt,
    message_in,
    only,
    remote,
    request,
    sent,
    status,
    statuses,
    tdv,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

RUN_NS = 7 * SECOND


@pytest.fixture
def books(rig: Rig) -> Rig:
    rig.shows_ledger = True
    return rig


@pytest.fixture
def claim(books: Rig) -> SchedAccept:
    """Grant a claim of two places of two slots, asked for through the parent."""
    books.measure()
    return message_in(books.hear(PARENT, request(count=2, tdv=tdv(cpus=2, account="lab"))), SchedAccept)


def bring(rig: Rig, claim: SchedAccept) -> None:
    message = transfer(claim.claim, claim.ticket, remote())
    rig.handle(TransferReceived(sender=ORIGIN, message=message))


def usage(claim: ClaimId, processor_ns: int, *, used_ns: int = 0, is_final: bool = False) -> UsageReport:
    stated = ClaimUsage(claim=claim, processor_ns=processor_ns, used_ns=used_ns, is_final=is_final)
    return UsageReport(usages=(stated,))


def test_an_end_is_stored_with_the_processor_time_that_it_held(books: Rig, claim: SchedAccept) -> None:
    bring(books, claim)
    actions = books.end(AttemptEnded(attempt=remote(), exit_code=0, ran_ns=RUN_NS))
    (book,) = (each.row for each in only(actions, Store) if isinstance(each.row, ClaimBookRow))
    assert (book.processor_ns, book.parties.user, book.parties.account) == (2 * RUN_NS, "ann", "lab")
    assert (book.parties.source, book.parties.sink, book.parties.origin) == (ME, PARENT, ORIGIN)
    again = books.end(AttemptEnded(attempt=remote(), exit_code=0, ran_ns=RUN_NS))
    assert books.state.ledger.own[claim.claim] == book
    assert again == ()


@pytest.mark.parametrize(
    ("measured", "used_ns"),
    [
        (Usage(cpu_ns=3 * SECOND), 3 * SECOND),
        (Usage(cpu_ns=99 * SECOND), 2 * RUN_NS),
        (Usage(cpu_ns=None), 0),
        (None, 0),
    ],
)
def test_what_an_attempt_used_is_counted_up_to_what_it_held(
    books: Rig, claim: SchedAccept, measured: Usage | None, used_ns: int
) -> None:
    bring(books, claim)
    books.end(AttemptEnded(attempt=remote(), exit_code=0, ran_ns=RUN_NS, usage=measured))
    books.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))
    reported = usage(claim.claim, 2 * RUN_NS, used_ns=used_ns)
    assert sent(books.wait(REPORT_AFTER_NS), UsageReport) == ((PARENT, reported),)
    (account,) = neighbor_accounts(books.state)
    assert (account.given_ns, account.given_used_ns) == (2 * RUN_NS, used_ns)
    (day,) = usage_rows(books.state)
    assert (day.processor_ns, day.used_ns) == (2 * RUN_NS, used_ns)


def test_a_growing_book_is_reported_after_a_while_and_a_final_one_at_once(books: Rig, claim: SchedAccept) -> None:
    bring(books, claim)
    books.end(AttemptEnded(attempt=remote(), exit_code=0, ran_ns=RUN_NS))
    books.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))
    assert sent(books.wait(REPORT_AFTER_NS), UsageReport) == ((PARENT, usage(claim.claim, 2 * RUN_NS)),)
    assert balance_with(books.state, PARENT) == 14
    ended = books.hear(PARENT, ClaimEnd(claim=claim.claim))
    assert sent(ended, UsageReport) == ((PARENT, usage(claim.claim, 2 * RUN_NS, is_final=True)),)
    forgotten = books.hear(PARENT, UsageReportAck(claims=(claim.claim,)))
    assert forgotten == (Forget(key=(RowKind.OWN_BOOK, claim.claim)),)


def test_what_was_not_acknowledged_is_reported_again_when_the_link_is_back(books: Rig, claim: SchedAccept) -> None:
    books.handle(LinkDown(neighbor=PARENT))
    books.handle(LinkDown(neighbor=SIBLING))
    books.wait(16 * MINUTE)
    assert claim.claim in books.state.ledger.own
    final = usage(claim.claim, 0, is_final=True)
    assert sent(books.greet(PARENT), UsageReport) == ((PARENT, final),)
    assert sent(books.greet(SIBLING), UsageReport) == ()
    books.handle(LinkDown(neighbor=PARENT))
    assert sent(books.greet(PARENT), UsageReport) == ((PARENT, final),)


def test_attempts_that_end_after_their_claim_are_in_its_final_sum(books: Rig, claim: SchedAccept) -> None:
    bring(books, claim)
    assert sent(books.hear(PARENT, ClaimEnd(claim=claim.claim)), UsageReport) == ()
    actions = books.end(AttemptEnded(attempt=remote(), signal=9, ran_ns=RUN_NS))
    assert sent(actions, UsageReport) == ((PARENT, usage(claim.claim, 2 * RUN_NS, is_final=True)),)


def held(rig: Rig, *, places: int = 1) -> None:
    """Hold a claim through the parent since now."""
    asked = message_in(rig.submit(members=places), SchedRequest)
    rig.hear(PARENT, accept(asked.id, places=places))
    assert CLAIM in rig.state.origin.claims


@pytest.fixture
def holding(books: Rig, policy: ScriptedPolicy) -> Rig:
    policy.order = (PARENT, CHILD, OTHER_CHILD, SIBLING)
    held(books)
    return books


def test_a_sum_counts_once_however_often_it_is_reported(holding: Rig) -> None:
    holding.wait(10 * SECOND)
    for processor_ns in (3 * SECOND, 3 * SECOND, 2 * SECOND, 4 * SECOND):
        assert only(holding.hear(PARENT, usage(CLAIM, processor_ns)), Report) == ()
    (account,) = neighbor_accounts(holding.state)
    assert (account.system, account.given_ns, account.taken_ns) == (PARENT, 0, 4 * SECOND)
    (day,) = usage_rows(holding.state)
    assert (day.parties.user, day.parties.source, day.parties.sink) == ("ann", PARENT, ME)
    assert (day.processor_ns, balance_with(holding.state, PARENT)) == (4 * SECOND, -4)


def test_no_more_is_taken_as_used_than_as_held_and_neither_falls(holding: Rig) -> None:
    holding.wait(10 * SECOND)
    for held, used in ((3, 2), (2, 1), (4, 99), (1_000, 1_000)):
        holding.hear(PARENT, usage(CLAIM, held * SECOND, used_ns=used * SECOND))
        (account,) = neighbor_accounts(holding.state)
        assert (account.taken_ns, account.taken_used_ns) == {
            3: (3 * SECOND, 2 * SECOND),
            2: (3 * SECOND, 2 * SECOND),
            4: (4 * SECOND, 4 * SECOND),
            1_000: (11 * SECOND, 11 * SECOND),
        }[held]
    (day,) = usage_rows(holding.state)
    assert (day.processor_ns, day.used_ns) == (11 * SECOND, 11 * SECOND)


def test_no_sum_exceeds_the_places_times_the_time_observed_here(holding: Rig) -> None:
    holding.wait(10 * SECOND)
    (report,) = only(holding.hear(PARENT, usage(CLAIM, 1_000 * SECOND)), Report)
    assert (report.neighbor, report.code) == (PARENT, ReportCode.OVERSTATED)
    (account,) = neighbor_accounts(holding.state)
    assert account.taken_ns == 11 * SECOND


def test_a_claim_that_has_ended_cannot_grow_with_time(holding: Rig) -> None:
    holding.wait(10 * SECOND)
    holding.hear(PARENT, statuses(status(attempt(member=1)), window=0))
    holding.hear(PARENT, ClaimEnd(claim=CLAIM))
    assert CLAIM not in holding.state.origin.claims
    holding.wait(10 * MINUTE)
    actions = holding.hear(PARENT, usage(CLAIM, 1_000 * SECOND, is_final=True))
    assert message_in(actions, UsageReportAck).claims == (CLAIM,)
    (account,) = neighbor_accounts(holding.state)
    assert account.taken_ns == 11 * SECOND
    assert CLAIM not in holding.state.ledger.others
    again = holding.hear(PARENT, usage(CLAIM, 1_000 * SECOND, is_final=True))
    assert message_in(again, UsageReportAck).claims == (CLAIM,)
    assert neighbor_accounts(holding.state) == (account,)


def test_only_the_neighbor_of_a_claim_states_its_usage(holding: Rig) -> None:
    holding.wait(10 * SECOND)
    (report,) = holding.hear(CHILD, usage(CLAIM, SECOND))
    assert isinstance(report, Report)
    assert (report.neighbor, report.code) == (CHILD, ReportCode.NO_SUCH_CLAIM)
    assert neighbor_accounts(holding.state) == ()


def test_an_acknowledgment_of_another_neighbor_or_before_the_end_forgets_nothing(
    books: Rig, claim: SchedAccept
) -> None:
    bring(books, claim)
    for sender in (PARENT, CHILD):
        books.hear(sender, UsageReportAck(claims=(claim.claim,)))
    books.hear(PARENT, ClaimEnd(claim=claim.claim))
    books.end(AttemptEnded(attempt=remote(), signal=9, ran_ns=RUN_NS))
    books.hear(CHILD, UsageReportAck(claims=(claim.claim,)))
    assert books.state.ledger.own[claim.claim].is_final


def close(rig: Rig, number: int) -> None:
    granted = message_in(rig.hear(CHILD, request(number, count=1, search=bytes((number,)) * 16)), SchedAccept)
    rig.hear(CHILD, ClaimEnd(claim=granted.claim))


def test_closed_books_are_forgotten_after_a_day_and_within_their_bound(books: Rig, claim: SchedAccept) -> None:
    books.handle(LinkDown(neighbor=PARENT))
    books.wait(16 * MINUTE)
    (waiting,) = (each for each in books.state.ledger.own.values() if each.parties.sink == PARENT)
    for number in range(CLOSED_LIMIT - 1):
        other = replace(waiting, id=ClaimId(ME, Epoch(7), number))
        books.state.ledger.own[other.id] = other
        books.state.ledger.closed[True, other.id] = None
    close(books, 3)
    assert waiting.id not in books.state.ledger.own
    assert len(books.state.ledger.closed) <= CLOSED_LIMIT
    with books.checked_at_the_end():
        books.wait(KEPT_NS)
    close(books, 4)
    assert all(book.parties.sink == CHILD for book in books.state.ledger.own.values())
    assert violations(books.state) == ()


def test_a_policy_lets_neighbors_in_by_their_balance(module: ModuleFactory) -> None:
    text = 'accept from any { require $peer.balance < 10s else "it was given enough"; limit 9 tasks; }'
    rig = module(policy=parse_policy(text, file="m.policy"))
    rig.greet(PARENT, CHILD)
    rig.measure()
    claim = message_in(rig.hear(PARENT, request(count=1)), SchedAccept)
    bring(rig, claim)
    rig.end(AttemptEnded(attempt=remote(), exit_code=0, ran_ns=11 * SECOND))
    rig.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))
    rig.wait(REPORT_AFTER_NS)
    refused = message_in(rig.hear(PARENT, request(2, search=b"2" * 16)), SchedDeny)
    assert [reason.text for reason in refused.reasons] == ["it was given enough"]
    assert message_in(rig.hear(CHILD, request(2, search=b"3" * 16)), SchedAccept).places == 1
