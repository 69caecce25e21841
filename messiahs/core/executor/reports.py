"""Reports of an executor on the attempts of a claim (MESSIAHS 5.3.2 task_status).

An attempt is reported once it has run for a while, and as soon as it has ended. A report may be lost with a link, so
each renewal of the lease reports all attempts that run, and a *page* of those that have ended and are not acknowledged.
The next page begins with the attempts reported least recently. It follows at the next renewal, or once the origin has
acknowledged half of a page: so all are reported soon to an origin that takes them, and one that takes none gets little.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from typing import Final

from messiahs.core.executor.kept_results import is_closed, size_of
from messiahs.core.executor.revocation import revocation
from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.limits import RENEWALS_PER_LEASE
from messiahs.core.interface.messages import AttemptStatus, ClaimEnd, TaskStatus
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, ClaimId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant, after
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState

REPORT_AFTER_NS: Final = 200 * MILLISECOND
"""A start is reported only if the attempt is still running then: short tasks cost one message, not two."""
_PAGE_BYTES: Final = 256 * 1_024
"""Size of a message with statuses, and of a page; a larger status has one of its own."""
_ANSWER_BYTES: Final = 2 * _PAGE_BYTES
"""Size of all statuses that answer one message of the origin that names attempts."""
_QUERIED_NS: Final = 10 * SECOND
"""A query without names is answered once in this time, or once in each period of renewals that are more frequent."""
_AHEAD_NS: Final = 100 * MILLISECOND
"""Work that may be queued beyond the places, so that no slot waits for the network."""
_AHEAD_LIMIT: Final = 256
_RENEWALS_REMEMBERED: Final = 2 * RENEWALS_PER_LEASE


def window_of(state: ModuleState, claim: GrantedClaim) -> int:
    """Return how many attempts may be bound to a claim at once: its places, and work for the next 100 ms."""
    if claim.is_ending or claim.phase is GrantedPhase.YIELDING:
        return 0
    if claim.phase is GrantedPhase.SHRINKING or is_closed(state, claim.row.via):
        return claim.live
    if not claim.mean_run_ns or claim.suspended or claim.need.uses:
        # Work behind a suspended attempt could wait for long; counted things are assigned to tasks as they arrive.
        return claim.row.places
    return claim.row.places + min(claim.row.places * _AHEAD_NS // claim.mean_run_ns, _AHEAD_LIMIT)


def status_actions(
    state: ModuleState, claim: GrantedClaim, statuses: tuple[AttemptStatus, ...], /, *, renewal: int = 0
) -> tuple[SendControl, ...]:
    """Report attempts to the origin, in messages of bounded size; only the last one renews the lease."""
    parts: list[list[AttemptStatus]] = [[]]
    size = 0
    for status in statuses:
        size += size_of(status)
        if parts[-1] and size > _PAGE_BYTES:
            parts.append([])
            size = size_of(status)
        parts[-1].append(status)
    window = window_of(state, claim)
    *earlier, last = [TaskStatus(claim=claim.row.id, attempts=tuple(part), window=window) for part in parts]
    return tuple(SendControl(to=claim.row.via, message=each) for each in (*earlier, replace(last, renewal=renewal)))


def answer_actions(
    state: ModuleState, claim: GrantedClaim, statuses: Iterable[AttemptStatus], /
) -> tuple[SendControl, ...]:
    """Report the first attempts among those that the origin named, up to a bounded size.

    It names the others again, or a renewal reports them.
    """
    page = _first(statuses, _ANSWER_BYTES)
    return status_actions(state, claim, page) if page else ()


def renew(state: ModuleState, claim: GrantedClaim, now: Instant) -> tuple[Action, ...]:
    """Report the attempts of a claim, which asks for a longer lease; repeat the end of an ending claim.

    An expired lease is no longer renewed: its results are reported when a link opens, and when the origin asks.
    """
    claim.renewals += 1
    claim.renewal_sent_at[claim.renewals] = now
    claim.renewal_sent_at.pop(claim.renewals - _RENEWALS_REMEMBERED, None)
    if claim.phase is GrantedPhase.EXPIRED:
        state.timers.cancel(TimerKind.RENEWAL, claim.row.id)
    else:
        state.timers.set(TimerKind.RENEWAL, claim.row.id, after(now, claim.row.lease_ns // RENEWALS_PER_LEASE))
    page = _next_page(claim)
    listed = [each for each in claim.attempts if each in page or each not in claim.ended]
    end = SendControl(to=claim.row.via, message=ClaimEnd(claim=claim.row.id))
    revoked = revocation(state, claim)
    return (
        *status_actions(state, claim, _statuses(state, listed), renewal=claim.renewals),
        *((SendControl(to=claim.row.via, message=revoked),) if revoked.attempts else ()),
        *((end,) if claim.is_ending else ()),
    )


def on_query_of_all(state: ModuleState, claim: GrantedClaim, now: Instant) -> tuple[Action, ...]:
    """Renew a claim because its origin, or a hop, asks for all its attempts; soon after an answer, renew it earlier."""
    period_ns = min(_QUERIED_NS, claim.row.lease_ns // RENEWALS_PER_LEASE)
    if claim.queried_at is None or now >= after(claim.queried_at, period_ns):
        claim.queried_at = now
        return renew(state, claim, now)
    due_at, next_at = after(claim.queried_at, period_ns), state.timers.deadline_of(TimerKind.RENEWAL, claim.row.id)
    if next_at is None or due_at < next_at:
        state.timers.set(TimerKind.RENEWAL, claim.row.id, due_at)
    return ()


def on_renewal_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Renew the lease of a claim; it is renewed `RENEWALS_PER_LEASE` times per lease."""
    claim = state.executor.claims.get(claim_id)
    return renew(state, claim, now) if claim is not None else ()


def on_taken(state: ModuleState, claim: GrantedClaim) -> tuple[Action, ...]:
    """Report the next page once the origin has acknowledged half of one that did not list all that have ended."""
    if not claim.page_length or len(claim.page) > claim.page_length // 2:
        return ()
    return status_actions(state, claim, _statuses(state, _next_page(claim)))


def on_status_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Report attempts that have ended and, once the first of them has run for a while, those that have started.

    Those beyond the first page are reported by the next event, so that none takes long.
    """
    claim = state.executor.claims.get(claim_id)
    if claim is None or not claim.unreported:
        return ()
    reported, claim.unreported = claim.unreported, {}
    running = [attempt for attempt in reported if attempt in claim.started]
    due_at = min((after(claim.started[attempt], REPORT_AFTER_NS) for attempt in running), default=now)
    if due_at > now:
        claim.unreported = dict.fromkeys(running)
        state.timers.set(TimerKind.STATUS, claim_id, due_at)
    due = [attempt for attempt in reported if attempt not in claim.unreported]
    page = _first(_statuses(state, due), _PAGE_BYTES)
    if later := due[len(page) :]:
        claim.unreported.update(dict.fromkeys(later))
        state.timers.set(TimerKind.STATUS, claim_id, now)
    return status_actions(state, claim, page) if page else ()


def _first(statuses: Iterable[AttemptStatus], size_bytes: int) -> tuple[AttemptStatus, ...]:
    """Return the first statuses, up to this size together, and at least one."""
    size = 0
    page: list[AttemptStatus] = []
    for status in statuses:
        size += size_of(status)
        if page and size > size_bytes:
            break
        page.append(status)
    return tuple(page)


def _next_page(claim: GrantedClaim) -> dict[AttemptId, None]:
    """Return the next attempts that have ended and are not acknowledged; they are the last to be reported again."""
    left = _PAGE_BYTES

    def fits(attempt: AttemptId) -> bool:
        nonlocal left
        is_first, left = left == _PAGE_BYTES, left - claim.ended[attempt]
        return is_first or left >= 0

    page = dict.fromkeys(takewhile(fits, claim.ended))
    is_all = len(page) == len(claim.ended)
    claim.page, claim.page_length = ({}, 0) if is_all else (dict(page), len(page))
    if not is_all:
        for attempt in page:
            claim.ended[attempt] = claim.ended.pop(attempt)
    return page


def _statuses(state: ModuleState, attempts: Iterable[AttemptId]) -> tuple[AttemptStatus, ...]:
    return tuple(state.executor.attempts[attempt].status for attempt in attempts)
