"""Comparing what a task needs with what machines offer (MESSIAHS 5.1, table 1; 6.2 sched_request)."""

from messiahs.core.buckets import highest_in, lowest_in
from messiahs.core.descriptions import TDV, Description
from messiahs.core.messages import DenyCode
from messiahs.core.ports import Need, Predicate
from messiahs.core.vectors import Interval, MachineClass, Vector


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


def surely_fits(need: Need, machine_class: MachineClass) -> bool:
    """Say whether every machine of a class can hold the task now."""
    return _holds_amounts(machine_class, _free(need), surely=True) and need.requirement.surely(machine_class)


def could_fit(need: Need, machine_class: MachineClass) -> bool:
    """Say whether some machine of a class may be able to hold the task now."""
    return _holds_amounts(machine_class, _free(need), surely=False) and need.requirement.could(machine_class)


def could_hold(need: Need, view: Vector) -> bool:
    """Say whether some machine behind a view may be able to hold the task now."""
    return any(could_fit(need, machine_class) for machine_class in view.classes)


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
    classes = [machine_class for view in views for machine_class in view.classes]
    large_enough = [c for c in classes if _holds_amounts(c, _total(need), surely=False)]
    if not large_enough:
        return DenyCode.NO_CLASS
    if not any(need.requirement.could(c) for c in large_enough):
        return DenyCode.REQUIREMENT_UNMET
    return DenyCode.NO_CAPACITY


def _free(need: Need) -> tuple[tuple[str, int], ...]:
    return (("free_slots", need.slots), ("avail_mem", need.mem_bytes), ("avail_disk", need.disk_bytes))


def _total(need: Need) -> tuple[tuple[str, int], ...]:
    return (("slots", need.slots), ("total_mem", need.mem_bytes), ("total_disk", need.disk_bytes))


def _holds_amounts(machine_class: MachineClass, amounts: tuple[tuple[str, int], ...], *, surely: bool) -> bool:
    said = dict(machine_class.attributes)
    for name, amount in amounts:
        value = said.get(name)
        if not isinstance(value, Interval) or name in machine_class.some_lack:
            # What is withheld or lacking could be anything, and is never sure.
            if surely:
                return False
        elif (lowest_in(value.low) if surely else highest_in(value.high)) < amount:
            return False
    return True
