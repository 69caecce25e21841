"""Which of the known machines could ever take a task, and what would have to change so that more could."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from messiahs.core.model.attributes import MACHINE_ATTRIBUTES, TASK_ATTRIBUTES, Kind
from messiahs.core.model.counted import free, uses_in
from messiahs.core.model.counts import counted
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.environments import environment_in
from messiahs.core.model.images import image_in
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import Vector
from messiahs.language.explaining.pool import Demand, Loss, judge_pool, losses_in, room_demand
from messiahs.language.explaining.relaxing import Change, Effort, changes_for
from messiahs.language.explaining.requirements import demands_apart, demands_of_task
from messiahs.language.predicate.predicates import ParsedPredicate
from messiahs.language.runtime.class_explanation import Machines, machines_in
from messiahs.language.runtime.readings import TASK

_SIZES: Final = (("slots", "cpus", 1), ("total_mem", "mem", 0), ("total_disk", "disk", 0))
_CHANGED_CHARACTERS: Final = 1_024
"""Longest requirement in which changes are looked for, which evaluates it for each value that is tried."""
EVALUATIONS: Final = 5_000
"""Comparisons that are evaluated to find changes; values beyond that are not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingMachines:
    """Of so many `known` machines, those that could take a task if they were idle and their owners let them.

    `losses` are the demands that exclude others, and `changes` of a single value that would let more of them fit.
    """

    known: int
    fitting: Machines
    losses: tuple[Loss, ...]
    changes: tuple[Change, ...]


def fitting_machines(tdv: TDV, requirement: ParsedPredicate, known: Vector, /) -> FittingMachines:
    """Match all machines, as large as they are, with what a task states and requires."""
    pool, facts = IndexedVector(known), {TASK: tdv.description()}
    size = _demands_of_size(tdv)
    demands, apart = (*size, *demands_of_task(requirement)), (*size, *demands_apart(requirement))
    losses = {loss.text: loss for loss in losses_in(demands, facts, pool)}
    return FittingMachines(
        known=known.machines,
        fitting=machines_in(judge_pool(demands, facts, pool), pool),
        losses=tuple(_losses_of_things(losses, tdv, pool)),
        changes=()
        if len(requirement.text) > _CHANGED_CHARACTERS
        else changes_for(apart, facts, pool, effort=Effort(EVALUATIONS), fixed=_fixed_by(tdv)),
    )


def _demands_of_size(tdv: TDV) -> tuple[Demand, ...]:
    stated = [
        room_demand(offered, wanted, default, unit=(MACHINE_ATTRIBUTES[offered].unit, TASK_ATTRIBUTES[wanted].unit))
        for offered, wanted, default in _SIZES
    ]
    return tuple(
        stated + [room_demand(name, name, 0, text=f"${name} >= {amount}") for name, amount in uses_in(tdv.pairs)]
    )


def _losses_of_things(losses: dict[str, Loss], tdv: TDV, pool: IndexedVector) -> Iterator[Loss]:
    """Yield the losses without what clients add to a requirement; one says how many machines count no such things.

    A machine that says nothing of them may have some: a policy can withhold it.
    """
    for name, amount in uses_in(tdv.pairs):
        losses.pop(f"${free(name)} >= 0", None)
        (column,) = pool.columns(Kind.INTEGER, name)
        text, silent = f"${name} >= {amount}", machines_in((column.unclear, column.unclear), pool).could
        if text in losses and silent:
            unknown = f"not known of {counted(silent, 'machine')}"
            why = unknown if column.values else "no machine known here says that it has any"
            losses[text] = replace(losses[text], text=f"{text} ({why})")
    yield from losses.values()


def _fixed_by(tdv: TDV) -> frozenset[str]:
    """Return the attributes of machines on which a task depends whose requirement could be changed in vain.

    An image or an environment runs nowhere else, and an environment has programs for one architecture.
    """
    if environment_in(tdv.pairs):
        return frozenset(("isolation", "arch"))
    return frozenset(("isolation",) if image_in(tdv.pairs) else ())
