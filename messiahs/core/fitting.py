"""Comparing what a task needs with what machines offer (MESSIAHS 5.1, table 1; 6.2 sched_request)."""

from bisect import bisect_left

from messiahs.core.columns import NO_CLASS, Judged
from messiahs.core.descriptions import TDV, Description
from messiahs.core.messages import DenyCode
from messiahs.core.ports import Need, Predicate
from messiahs.core.vectors import Vector


def need_of(tdv: TDV, requirement: Predicate) -> Need:
    """Read what a task takes from its TDV: at least one slot; unstated sizes are nothing."""
    said = tdv.description()
    return Need(
        slots=max(1, _size(said, "cpus")),
        mem_bytes=_size(said, "mem"),
        disk_bytes=_size(said, "disk"),
        requirement=requirement,
    )


def _size(said: Description, name: str) -> int:
    value = said.get(name, 0)
    return max(0, value) if isinstance(value, int) else 0


def has_room(need: Need, here: Description) -> bool:
    """Say whether one machine, exactly described, can hold one more task now."""
    return all(_size(here, name) >= amount for name, amount in _free(need))


def fitting(need: Need, view: Vector) -> Judged:
    """Say of which classes every machine can surely hold the task now, and of which some machine could."""
    question = (need.requirement.text, need.slots, need.mem_bytes, need.disk_bytes)
    verdict = view.verdict(question)
    if verdict is None:
        verdict = _fitting(need, view)
        view.remember(question, verdict)
    return verdict


def could_hold(need: Need, view: Vector) -> bool:
    """Say whether some machine behind a view may be able to hold the task now."""
    _, could = fitting(need, view)
    return could != 0


def why_not_here(need: Need, here: Description) -> tuple[DenyCode, str]:
    """Say why one machine, exactly described, does not hold the task now."""
    if any(_size(here, name) < amount for name, amount in _total(need) if name in here):
        return DenyCode.NO_CLASS, ""
    unset = need.requirement.unset_in(here)
    if unset:
        return DenyCode.REQUIREMENT_UNMET, f"this machine does not say {', '.join(f'${name}' for name in unset)}"
    if not need.requirement.holds(here):
        return DenyCode.REQUIREMENT_UNMET, ""
    return DenyCode.NO_CAPACITY, ""


def why_not(need: Need, views: tuple[Vector, ...]) -> DenyCode:
    """Say why no view could hold the task: its size, its requirement, or machines that are busy."""
    is_large_enough = False
    for view in views:
        _, could = _large_enough(view, _total(need))
        if not could:
            continue
        is_large_enough = True
        _, could_meet = need.requirement.over(view)
        if could & could_meet:
            return DenyCode.NO_CAPACITY
    return DenyCode.REQUIREMENT_UNMET if is_large_enough else DenyCode.NO_CLASS


def _fitting(need: Need, view: Vector) -> Judged:
    surely, could = _large_enough(view, _free(need))
    if not could:
        return NO_CLASS
    meets_surely, could_meet = need.requirement.over(view)
    return surely & meets_surely, could & could_meet


def _free(need: Need) -> tuple[tuple[str, int], ...]:
    return (("free_slots", need.slots), ("avail_mem", need.mem_bytes), ("avail_disk", need.disk_bytes))


def _total(need: Need) -> tuple[tuple[str, int], ...]:
    return (("slots", need.slots), ("total_mem", need.mem_bytes), ("total_disk", need.disk_bytes))


def _large_enough(view: Vector, amounts: tuple[tuple[str, int], ...]) -> Judged:
    surely = could = view.every_class
    names, least = zip(*amounts, strict=True)
    for said, amount in zip(view.said(*names), least, strict=True):
        values, cells, width = said.numbers
        cell = cells[bisect_left(values, amount)]
        surely &= cell
        # What is withheld, lacking or of another type could be anything, and is never sure.
        could &= cell >> width | ~cells[0]
    return surely, could
