"""When a claim that keeps its machine full takes no more tasks, because others wait (not in the papers).

Whoever has used less gets more: while somebody waits who has used no more than the user of the claim, its quantum is
the shortest one; while only such wait that have used more, it is the longest one. So usage becomes equal in time,
whoever came first, and nobody waits longer than for a longest quantum. It is the decayed usage of the ledger
(core/ledger): that of each user of this site, and that of all users behind a neighbor of another site together, which
could otherwise have a new name for each task.
"""

from collections.abc import Iterator
from typing import Final

from messiahs.core.executor.allocation import places_for
from messiahs.core.interface.rows import GrantedClaimRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.ledger.accounts import consumer_usage, neighbor_usage
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Duration, Instant, after
from messiahs.core.state.executor import QUANTUM_NS, Consumer, GrantedClaim
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.task_order import is_outranked, sent_facts

LONGEST_QUANTUM_NS: Final = Duration(30 * SECOND)
TRANSIT_NS: Final = 250 * MILLISECOND
"""Grace period for tasks already in transit when the quantum ends."""
_WAITING_NS: Final = 40 * SECOND
"""How long somebody who was denied, or whose quantum has ended, counts as waiting, unless places are granted before.

It is longer than a quantum, since nobody asks a full machine for one slot. Who finds places elsewhere does not say so.
"""
_YIELDED_LIMIT: Final = 256
_WEIGHED_NS: Final = 1 * SECOND
"""Usage is compared this often for each claim."""


def end_quantum(state: ModuleState, claim: GrantedClaim, now: Instant) -> None:
    """Begin to end a claim that has kept the machine full for a quantum, since other origins may be waiting.

    The quantum ends at once if the policy ranks waiting tasks above those of the claim. Its origin may ask again a
    little later than those that wait. Tasks that it has bound already still run here.
    """
    assert claim.quantum_began_at is not None, "a claim has a quantum from `watch` on"
    if claim.is_ending or claim.phase is GrantedPhase.YIELDING:
        return
    is_long = now - claim.quantum_began_at >= _quantum_ns(state, claim, now)
    if not is_long and not is_outranked(state, sent_facts(state, claim.row.via, claim.row.tdv), now):
        return
    if places_for(state, claim.need, 1):
        claim.quantum_began_at = now
        return
    claim.enter(GrantedPhase.YIELDING)
    state.executor.quantum_before = claim.row.origin, claim.row.tdv
    _note_yielded(state, claim.row, now)
    state.timers.set(TimerKind.IDLE, claim.row.id, after(now, TRANSIT_NS))


def count_quantum(state: ModuleState, row: GrantedClaimRow) -> None:
    """Lengthen quanta as long as the same origin and TDV take them one after the other; a new claim has this row."""
    executor = state.executor
    executor.yielded.pop(_consumer_of(row), None)
    if executor.quantum_before is not None:
        is_alone = executor.quantum_before == (row.origin, row.tdv)
        longer_ns = Duration(min(2 * executor.quantum_ns, LONGEST_QUANTUM_NS))
        executor.quantum_ns = longer_ns if is_alone else QUANTUM_NS
        executor.quantum_before = None


def _quantum_ns(state: ModuleState, claim: GrantedClaim, now: Instant) -> Duration:
    """Return the present length of the quantum of a claim; no quantum is shorter than `QUANTUM_NS`."""
    assert claim.quantum_began_at is not None, "a claim has a quantum from `watch` on"
    # While slots are gathered for a reservation, a task is known to wait.
    if state.executor.reservation is not None or now - claim.quantum_began_at < QUANTUM_NS:
        return QUANTUM_NS
    if claim.weighed_at is None or now - claim.weighed_at >= _WEIGHED_NS:
        claim.quantum_ns, claim.weighed_at = _weighed_ns(state, claim, now), now
    return claim.quantum_ns


def _weighed_ns(state: ModuleState, claim: GrantedClaim, now: Instant) -> Duration:
    own = _consumer_of(claim.row)
    waiting = dict.fromkeys(each for each in _waiting(state, now) if each != own)
    if not waiting:
        return state.executor.quantum_ns
    used_ns = _usage(state, own, now)
    return QUANTUM_NS if any(_usage(state, each, now) <= used_ns for each in waiting) else LONGEST_QUANTUM_NS


def _note_yielded(state: ModuleState, row: GrantedClaimRow, now: Instant) -> None:
    yielded, consumer = state.executor.yielded, _consumer_of(row)
    yielded.pop(consumer, None)
    yielded[consumer] = now
    if len(yielded) > _YIELDED_LIMIT:
        del yielded[next(iter(yielded))]


def _waiting(state: ModuleState, now: Instant) -> Iterator[Consumer]:
    """Yield those that wait, as far as this module knows."""
    yield from (consumer for consumer, at in state.executor.yielded.items() if now - at <= _WAITING_NS)
    for (asker, origin, tdv, _), starved in state.executor.starved.items():
        if now - starved.asked_at <= _WAITING_NS:
            yield _consumer(asker, origin, tdv, is_foreign=starved.is_foreign)


def _consumer_of(row: GrantedClaimRow) -> Consumer:
    return _consumer(row.via, row.origin, row.tdv, is_foreign=row.is_foreign)


def _consumer(asker: SystemId, origin: SystemId, tdv: TDV, *, is_foreign: bool) -> Consumer:
    return asker if is_foreign else (asker, origin, str(tdv.description().get("user", "")))


def _usage(state: ModuleState, consumer: Consumer, now: Instant) -> int:
    if isinstance(consumer, tuple):
        sink, origin, user = consumer
        return consumer_usage(state, sink, origin=origin, user=user, now=now)
    return neighbor_usage(state, consumer, now)
