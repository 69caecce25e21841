"""Which neighbor to ask first (MESSIAHS 6.2 sched_request: the most likely candidate)."""

from dataclasses import dataclass

from messiahs.core.buckets import lowest_in
from messiahs.core.fitting import could_fit, surely_fits
from messiahs.core.ids import SystemId
from messiahs.core.neighbors import Relation
from messiahs.core.ports import Candidate, Need, Randomness
from messiahs.core.vectors import Interval, MachineClass

_RELATIONS = (Relation.CHILD, Relation.SIBLING, Relation.PARENT)
_WEIGHT_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    candidate: Candidate
    is_sure: bool
    free_slots: int


def by_free_slots(candidates: tuple[Candidate, ...], need: Need, randomness: Randomness, /) -> tuple[SystemId, ...]:
    """Order candidates at random, weighted by their free slots: views are old, and who is asked first should vary.

    Those that surely have room come before those that only could, and among equals children before siblings before
    parents. Those through which tasks were lost lately come last, and those that could not hold the task not at all.
    """
    ranked = [judged for candidate in candidates if (judged := _judge(candidate, need)) is not None]
    order: list[SystemId] = []
    groups = sorted({_group(judged) for judged in ranked})
    for group in groups:
        order.extend(_shuffled([judged for judged in ranked if _group(judged) == group], randomness))
    return tuple(order)


def _judge(candidate: Candidate, need: Need) -> _Ranked | None:
    fitting = [machine_class for machine_class in candidate.view.classes if could_fit(need, machine_class)]
    if not fitting:
        return None
    return _Ranked(
        candidate=candidate,
        is_sure=any(surely_fits(need, machine_class) for machine_class in fitting),
        free_slots=sum(machine_class.count * _least_free(machine_class) for machine_class in fitting),
    )


def _least_free(machine_class: MachineClass) -> int:
    value = dict(machine_class.attributes).get("free_slots")
    return max(1, lowest_in(value.low)) if isinstance(value, Interval) else 1


def _group(judged: _Ranked) -> tuple[bool, bool, int]:
    return (judged.candidate.has_lost, not judged.is_sure, _RELATIONS.index(judged.candidate.relation))


def _shuffled(ranked: list[_Ranked], randomness: Randomness) -> list[SystemId]:
    left = list(ranked)
    order: list[SystemId] = []
    while left:
        point = randomness.bits(_WEIGHT_BITS) % sum(judged.free_slots for judged in left) if len(left) > 1 else 0
        for place, judged in enumerate(left):
            point -= judged.free_slots
            if point < 0 or len(left) == 1:
                order.append(left.pop(place).candidate.system)
                break
    return order
