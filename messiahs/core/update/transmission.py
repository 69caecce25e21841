"""One vector for one neighbor, with its annotations (MESSIAHS 5.3.1, 6.2 status_vector)."""

from dataclasses import dataclass, replace

from messiahs.core.interface.actions import SendVector
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import Account, Snapshot, Sources, Sums
from messiahs.core.update.annotations import account_of, age_ns, annotations_for
from messiahs.core.update.counting import counting_of, is_counted, settling_in
from messiahs.core.update.link_costs import probe_for
from messiahs.core.update.outgoing import sum_up
from messiahs.core.update.pacing import TURN_NS
from messiahs.core.vectors.division import Division
from messiahs.core.vectors.vectors import Vector


@dataclass(slots=True, kw_only=True)
class Turn:
    """One turn in which vectors are sent to neighbors, with the facts known in it (mutable)."""

    now: Instant
    sums: Sums
    account: Account
    work_ns: int = 0
    """The work counted in this turn."""


@dataclass(frozen=True, slots=True)
class Summed:
    """An outgoing vector, with the origin time of its oldest part (None: it holds only the own machine)."""

    vector: Vector
    oldest: Instant | None
    sources: Sources


def turn_of(state: ModuleState, now: Instant) -> Turn:
    """Return a turn with the present facts."""
    return Turn(now=now, sums=sum_up(state), account=account_of(state, state.updates.views))


def sources_of(sums: Sums) -> Sources:
    """Return the vectors from which sums are computed."""
    return Sources(own=sums.own, heard=sums.heard)


def snapshot_of(state: ModuleState, turn: Turn) -> Snapshot:
    """Return a snapshot of the present facts for further turns."""
    return Snapshot(own=state.updates.own, views=dict(state.updates.views), sums=turn.sums, settling=settling_in(state))


def is_summed_up(turn: Turn, snapshot: Snapshot, division: Division, /) -> bool:
    """Work on the division of a snapshot as long as a turn allows; return whether it is done.

    The result depends only on the number of turns spent on it, not on results computed before.
    """
    if division.work(until_ns=snapshot.turns * TURN_NS):
        return True
    begun_ns = snapshot.turns * TURN_NS
    snapshot.turns += 1
    is_done = division.work(until_ns=begun_ns + TURN_NS)
    turn.work_ns += division.work_ns - begun_ns if is_done else TURN_NS
    return is_done


def kinds_for(neighbor: Neighbor) -> tuple[VectorKind, ...]:
    """Return the kinds of vectors that a neighbor receives: U as a parent, D as a child, S as a sibling."""
    kinds = (
        (neighbor.is_parent, VectorKind.FOR_PARENTS),
        (neighbor.is_child, VectorKind.FOR_CHILDREN),
        (neighbor.is_sibling, VectorKind.FOR_SIBLINGS),
    )
    return tuple(kind for is_so, kind in kinds if is_so)


def message_to(state: ModuleState, turn: Turn, neighbor: Neighbor, /, kind: VectorKind, summed: Summed) -> StatusVector:
    """Return the message with a vector for a neighbor."""
    annotations = annotations_for(state, turn.account, neighbor, kind)
    return StatusVector(
        kind=kind,
        vector=summed.vector,
        period_ns=state.policy.timeouts.update_period_ns,
        age_ns=age_ns(summed.oldest, turn.now),
        hears=_hears(state, neighbor.system, kind),
        waiting=annotations.waiting,
        makes_room=annotations.makes_room,
        lets_go=annotations.lets_go,
        missing=annotations.missing,
        counted=is_counted(counting_of(state), neighbor.system, kind),
        handovers=_handovers(state, kind),
        settling=state.updates.settling if kind is VectorKind.FOR_PARENTS else (),
        demand=annotations.demand,
        behind=annotations.behind,
    )


def send(
    state: ModuleState, turn: Turn, neighbor: Neighbor, message: StatusVector, /, *, summed: Summed, only_changed: bool
) -> tuple[SendVector, ...]:
    """Send a neighbor a vector; with `only_changed`, only if it differs from the last one in more than its age."""
    key = neighbor.system, message.kind
    sent = state.updates.sent.get(key)
    state.updates.oldest_sent[key], state.updates.sent_from[key] = summed.oldest, summed.sources
    if only_changed and sent is not None and _is_unchanged(sent, message):
        return ()
    state.updates.sent[key], state.updates.sent_to_at[key] = message, turn.now
    probed = replace(message, probe=probe_for(state, neighbor.system, turn.now))
    return (SendVector(to=neighbor.system, message=probed),)


def forget_sent(state: ModuleState, system: SystemId, kind: VectorKind, /) -> None:
    """Forget the last vector sent to a neighbor."""
    state.updates.sent.pop((system, kind), None)
    state.updates.oldest_sent.pop((system, kind), None)
    state.updates.sent_from.pop((system, kind), None)
    state.updates.sent_to_at.pop((system, kind), None)


def _is_unchanged(sent: StatusVector, message: StatusVector) -> bool:
    return (
        sent.vector == message.vector
        and sent.hears == message.hears
        and (sent.counted, sent.handovers, sent.settling) == (message.counted, message.handovers, message.settling)
        and bool(sent.waiting) == bool(message.waiting)
        and sent.makes_room == message.makes_room
        and sent.lets_go == message.lets_go
        and sent.missing_links == message.missing_links
    )


def _handovers(state: ModuleState, kind: VectorKind) -> int:
    handover = state.membership.handover
    return handover.number if handover is not None and kind is VectorKind.FOR_PARENTS else 0


def _hears(state: ModuleState, parent: SystemId, kind: VectorKind) -> tuple[SystemId, ...]:
    """Return the siblings whose vectors are counted here, in a vector for the primary parent, which is theirs too.

    Another parent could not use the names, and a border may have to hide them from it.
    """
    neighbors = counting_of(state).neighbors
    if kind is not VectorKind.FOR_PARENTS or not (parent in neighbors and neighbors[parent].is_primary_parent):
        return ()
    heard = (system for system, kind in state.updates.views if kind is VectorKind.FOR_SIBLINGS)
    return tuple(sorted(system for system in heard if neighbors[system].is_sibling))
