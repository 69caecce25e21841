"""The slots of a task, and the places granted of a request: the one file in which slots are allotted."""

from dataclasses import dataclass, replace

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import AllocationQuery, Asker, Need
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import decide
from messiahs.core.task_filter.local_facts import own_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotted:
    """The needs of one task of a request at this executor, and the number of places to grant if they fit."""

    need: Need
    places: int


def allot(
    state: ModuleState, request: SchedRequest, need: Need, /, *, asker: Asker, wanted: int, now: Instant
) -> Allotted:
    """Return how the policy grants `wanted` places for tasks of one need; nothing is reserved yet."""
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
