"""Which capacity the tasks of a denied round lacked, for the sums of unmet demand.

The codes of the denial say whether machines are busy, too small or refused; the views of neighbors, which of the needs
no machine meets. A machine is compared with one need after the other, and the first need that none meets together with
those before it is the one that lacks: architecture and operating system, counted things, the rest of the requirement,
processors, memory, disk.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final, NamedTuple

from messiahs.core.interface.messages import DenyCode, Reason
from messiahs.core.interface.policies import Need
from messiahs.core.model.attributes import Kind
from messiahs.core.model.counted import free
from messiahs.core.model.demand import (
    ARCH,
    CPUS,
    DISK,
    MEMORY,
    OS,
    OTHER,
    POLICY,
    REQUIREMENT,
    DemandKey,
    rounded_up,
    sendable,
    things_named,
)
from messiahs.core.model.ids import SystemId
from messiahs.core.task_filter.matching import met
from messiahs.core.vectors.columns import Classes, ClassSet, Judged
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.joined_views import Overview

_BUSY: Final = frozenset((DenyCode.NO_CAPACITY, DenyCode.DRAINING, DenyCode.NO_SPACE))
_REFUSED: Final = frozenset((DenyCode.REFUSED_BY_POLICY, DenyCode.LIMIT_REACHED))
_UNFIT: Final[Mapping[DenyCode, str]] = {DenyCode.REQUIREMENT_UNMET: REQUIREMENT, DenyCode.NO_CLASS: OTHER}


class _Step(NamedTuple):
    """One need: which classes have a machine that may meet it."""

    capacity: str
    amount: int
    could: Callable[[Classes], ClassSet]


_FirstUnmet = Callable[[Sequence[_Step]], _Step | None]


def lacked(
    need: Need,
    reasons: Iterable[Reason],
    /,
    *,
    here: IndexedVector,
    views: Mapping[SystemId, IndexedVector],
    overview: Overview,
) -> DemandKey | None:
    """Return what the tasks of a round lacked; None if it was denied for another cause, such as a lost link.

    `here` has the own machine, and `views` those behind the neighbors. A text that the requirement demands of `arch` or
    `os` is a part of the key.
    """
    codes = {reason.code for reason in reasons}
    first_unmet = partial(_first_unmet, here=here, views=views, overview=overview)
    lack = _lack_by(codes, need, first_unmet)
    if lack is None:
        return None
    arch, os = need.requirement.text_of(ARCH), need.requirement.text_of(OS)
    return sendable(lack._replace(arch=arch, os=os))


def _lack_by(codes: AbstractSet[DenyCode], need: Need, first_unmet: _FirstUnmet) -> DemandKey | None:
    fixed = [*_fixed_steps(need)]
    if codes & _BUSY:
        step = first_unmet([*fixed, *_free_steps(need)])
        is_known = step is not None and step not in fixed
        capacity, amount = (step.capacity, step.amount) if step is not None and is_known else (CPUS, need.slots)
        return DemandKey(capacity, is_busy=True, amount=rounded_up(amount))
    if codes & _REFUSED:
        return DemandKey(POLICY)
    unfit = next((capacity for code, capacity in _UNFIT.items() if code in codes), None)
    if unfit is None:
        return None
    step = first_unmet(fixed)
    return DemandKey(unfit) if step is None else DemandKey(step.capacity, amount=rounded_up(step.amount))


def _fixed_steps(need: Need) -> Iterator[_Step]:
    """Yield the needs that a machine meets or not, whatever runs on it."""
    for name in (ARCH, OS):
        text = need.requirement.text_of(name)
        if text:
            yield _Step(name, 0, partial(_equal, name=name, text=text))
    uses = dict(need.uses)
    variables = need.requirement.unset_in({}) if uses else ()
    for name in things_named(uses, variables):
        yield _Step(name, uses[name], partial(_known_at_least, name=name, amount=uses[name]))
    yield _Step(REQUIREMENT, 0, partial(_meeting, need))
    sizes = ((CPUS, "slots", need.slots), (MEMORY, "total_mem", need.mem_bytes), (DISK, "total_disk", need.disk_bytes))
    for capacity, name, amount in sizes:
        yield _Step(capacity, amount, partial(_at_least, name=name, amount=amount))


def _free_steps(need: Need) -> Iterator[_Step]:
    for name, amount in need.uses:
        yield _Step(name, amount, partial(_at_least, name=free(name), amount=amount))
    sizes = (
        (CPUS, "free_slots", need.slots),
        (MEMORY, "avail_mem", need.mem_bytes),
        (DISK, "avail_disk", need.disk_bytes),
    )
    for capacity, name, amount in sizes:
        yield _Step(capacity, amount, partial(_at_least, name=name, amount=amount))


def _first_unmet(
    steps: Sequence[_Step], /, *, here: IndexedVector, views: Mapping[SystemId, IndexedVector], overview: Overview
) -> _Step | None:
    """Return the first step that no class passes which has passed all before; None if some class passes all."""
    passed: dict[int, tuple[int, ClassSet]] = {}
    for count, step in enumerate(steps, 1):
        judge = partial(_passing, steps=steps[:count], passed=passed)
        if not any(could for _, could in (judge(here), *overview.judged(views, judge))):
            return step
    return None


def _passing(classes: Classes, *, steps: Sequence[_Step], passed: dict[int, tuple[int, ClassSet]]) -> Judged:
    """Return the classes that pass all steps; `passed` remembers by identity what passed the first ones."""
    done, could = passed.get(id(classes), (0, classes.every_class))
    for step in steps[done:]:
        could &= step.could(classes) if could else 0
    passed[id(classes)] = len(steps), could
    return 0, could


def _meeting(need: Need, classes: Classes) -> ClassSet:
    return met(need, classes)[1]


def _at_least(classes: Classes, *, name: str, amount: int) -> ClassSet:
    """Return the classes with a machine whose attribute may have that value; one without it may."""
    (column,) = classes.columns(Kind.INTEGER, name)
    return column.at_least(amount)[1] | ~column.known


def _known_at_least(classes: Classes, *, name: str, amount: int) -> ClassSet:
    """Return the same without classes that do not state the attribute: machines without such things state none."""
    (column,) = classes.columns(Kind.INTEGER, name)
    return column.at_least(amount)[1] & ~column.unclear


def _equal(classes: Classes, *, name: str, text: str) -> ClassSet:
    (column,) = classes.columns(Kind.STRING, name)
    return column.at_least(text)[1] & ~column.at_least(f"{text}\0")[0]
