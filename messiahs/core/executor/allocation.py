"""How many slots a task gets here, and how much of a request is granted: the one place where slots are given."""

from dataclasses import dataclass, replace

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import AllocationQuery, Asker, Need
from messiahs.core.model.instants import Instant
from messiahs.core.state.deciding import decide
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_facts import own_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotted:
    """What one task of a request takes here, and how many places are granted if so many fit."""

    need: Need
    places: int


def allot(
    state: ModuleState, request: SchedRequest, need: Need, /, *, asker: Asker, wanted: int, now: Instant
) -> Allotted:
    """Ask the policy how `wanted` places for tasks of one need are granted; none of it is granted yet."""
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
    need = need if answer.slots == need.slots else replace(need, slots=answer.slots)
    return Allotted(need=need, places=min(wanted, answer.places))
