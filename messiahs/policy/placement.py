"""Which neighbor to ask first (MESSIAHS 6.2 sched_request: the most likely candidate)."""

from dataclasses import dataclass

from messiahs.core.columns import ClassSet, chosen
from messiahs.core.fitting import fitting
from messiahs.core.ids import SystemId
from messiahs.core.neighbors import Relation
from messiahs.core.ports import Candidate, Need, Randomness
from messiahs.core.vectors import Vector
from messiahs.policy.weighted_order import weighted_order

_RELATIONS = (Relation.CHILD, Relation.SIBLING, Relation.PARENT)


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
        alike = [judged for judged in ranked if _group(judged) == group]
        places = weighted_order([judged.free_slots for judged in alike], randomness)
        order.extend(alike[place].candidate.system for place in places)
    return tuple(order)


def _judge(candidate: Candidate, need: Need) -> _Ranked | None:
    surely, could = fitting(need, candidate.view)
    if not could:
        return None
    return _Ranked(candidate=candidate, is_sure=surely != 0, free_slots=_free_slots(candidate.view, could))


def _free_slots(view: Vector, classes: ClassSet) -> int:
    """Give how many slots some classes have at least; each machine counts for one or more."""
    least = zip(view.classes, view.said("free_slots").least, strict=True)
    return sum([each.count * (slots if slots and slots > 1 else 1) for each, slots in chosen(least, classes)])


def _group(judged: _Ranked) -> tuple[bool, bool, int]:
    return (judged.candidate.has_lost, not judged.is_sure, _RELATIONS.index(judged.candidate.relation))
