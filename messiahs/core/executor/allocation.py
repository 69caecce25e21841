"""The slots and counted things of a task, and the places granted of a request: the one file in which they are allotted.

A claim is granted as many counted things as its places need; which ones is decided for each attempt as it arrives, and
is stored with it, so that it survives restarts. An attempt has them until all of its processes have ended.
"""

from dataclasses import dataclass, replace

from messiahs.core.interface.messages import SchedRequest, TaskState
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import AllocationQuery, Asker, Need
from messiahs.core.interface.rows import AttemptRow
from messiahs.core.model.counted import Counted, free, unassigned
from messiahs.core.model.descriptions import layout_of
from messiahs.core.model.instants import Instant
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import decide
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.task_filter.local_resources import free_here
from messiahs.core.task_filter.matching import has_room


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotted:
    """The needs of one task of a request at this executor, and the number of places to grant if they fit."""

    need: Need
    places: int


def allot(
    state: ModuleState, request: SchedRequest, need: Need, /, *, asker: Asker, wanted: int, now: Instant
) -> Allotted:
    """Return how the policy grants `wanted` places for tasks of one need; nothing is reserved yet.

    Of what the task states, the things that this machine counts are needed, and will be assigned.
    """
    if not wanted:
        return Allotted(need=need, places=0)
    query = AllocationQuery(
        tdv=request.tdv,
        asker=asker,
        slots=need.slots,
        wanted=wanted,
        here=own_facts(state, now),
        at=now,
    )
    answer = decide(state, PartKind.ALLOCATION, state.policy.allocation, query)
    counted = {things.name for things in state.updates.counted}
    need = replace(need, slots=answer.slots, uses=tuple([use for use in need.uses if use[0] in counted]))
    return Allotted(need=need, places=min(wanted, answer.places))


def places_for(state: ModuleState, need: Need, wanted: int, /, *, uses_reserved: bool = False) -> int:
    """Return how many of the wanted places are free on the own machine, including reserved ones if `uses_reserved`."""
    here = free_here(state, uses_reserved=uses_reserved)
    if here is None:
        return 0
    sizes = (("free_slots", need.slots), ("avail_mem", need.mem_bytes), ("avail_disk", need.disk_bytes))
    takes = (*sizes, *((free(name), amount) for name, amount in need.uses))
    places = 0
    is_met = need.requirement.bound_to(layout_of(here))
    while places < wanted and has_room(need, here) and is_met(tuple(here.values())):
        places += 1
        for name, amount in takes:
            value = here.get(name)
            if isinstance(value, int):
                here[name] = value - amount
    return places


def assign(state: ModuleState, claim: GrantedClaim) -> tuple[Counted, ...] | None:
    """Return the counted things for a further attempt of a claim, the least numbers first; None if too few are free.

    None too if the claim has as many attempts as places. Things of running attempts are never among them, also if the
    machine has lost them by a new configuration.
    """
    if not claim.need.uses:
        return ()
    if claim.live >= claim.row.places:
        return None
    taken = [each for row in state.executor.attempts.values() for each in assigned_to(row)]
    machine = {things.name: things for things in state.updates.counted}
    assigned: list[Counted] = []
    for name, amount in claim.need.uses:
        numbers = unassigned(machine[name], taken)[:amount] if name in machine else ()
        if len(numbers) < amount:
            return None
        assigned.append(Counted(name=name, numbers=numbers))
    return tuple(assigned)


def assigned_to(row: AttemptRow) -> tuple[Counted, ...]:
    """Return the counted things that an attempt has now; none once it has ended."""
    return row.status.assigned if row.status.state is TaskState.EXECUTING else ()
