"""Which neighbor to ask first (MESSIAHS 6.2 sched_request: the most likely candidate)."""

from messiahs.core.interface.limits import ASKS
from messiahs.core.interface.policies import Candidate, Need, Randomness
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.task_filter.matching import fitting
from messiahs.policy.weighted_order import weighted_order

_RELATIONS = (Relation.CHILD, Relation.SIBLING, Relation.PARENT)


_Group = tuple[bool, bool, int]
"""Where tasks were lost, what is not sure, and how far away in the hierarchy: the lesser goes first."""


def by_free_slots(candidates: tuple[Candidate, ...], need: Need, randomness: Randomness, /) -> tuple[SystemId, ...]:
    """Order candidates at random, weighted by their free slots: views are old, and who is asked first should vary.

    Those that surely have room come before those that only could, and among equals children before siblings before
    parents. Those through which tasks were lost lately come last, and those that could not hold the task not at all.
    No more are drawn than a search may ask; whoever is left follows as it came.
    """
    groups: dict[_Group, list[tuple[SystemId, int]]] = {}
    for candidate in candidates:
        surely, could = fitting(need, candidate.view)
        if could:
            group = (candidate.has_lost, not surely, _RELATIONS.index(candidate.relation))
            groups.setdefault(group, []).append((candidate.system, candidate.view.free_slots(could)))
    order: list[SystemId] = []
    for group in sorted(groups):
        systems, weights = zip(*groups[group], strict=True)
        order.extend([systems[place] for place in weighted_order(weights, randomness, drawn=ASKS - len(order))])
    return tuple(order)
