"""Count the machines of a pool that match a task, and find the demands that exclude the others.

The pool is a vector, so machines are known by classes only: results are given as certain and as possible (MESSIAHS
7.1).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from messiahs.core.interface.policies import Asker
from messiahs.core.model.attributes import MACHINE_ATTRIBUTES, TASK_ATTRIBUTES, Kind, Unit
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.columns import Judged
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.predicate.syntax import Comparison, Order, Variable
from messiahs.language.runtime.acceptance import SENDERS, AcceptRules
from messiahs.language.runtime.class_explanation import ClassPart, Machines, explain_classes, machines_in
from messiahs.language.runtime.conditions import Condition, condition_of
from messiahs.language.runtime.readings import HERE, MACHINE, TASK, Facts, Reading
from messiahs.language.syntax.written import Compound, Joint, Term, text_of

_NEEDS: Final = (("free_slots", "cpus", 1), ("avail_mem", "mem", 0), ("avail_disk", "disk", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Conditions of which a machine must satisfy one; `scope` refers to a class of the pool."""

    conditions: tuple[Condition, ...]
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A part of the demands, as written, and the machines that do not satisfy it, regardless of the other parts."""

    text: str
    machines: Machines


def demands_of(rules: AcceptRules, asker: Asker, /) -> tuple[Demand, ...]:
    """Return the demands on a machine: room for the task, and the rules of the `accept` block for the asking system.

    A neighbor without a block is refused, so no machine matches.
    """
    demands = [
        room_demand(offered, stated, default, unit=(MACHINE_ATTRIBUTES[offered].unit, TASK_ATTRIBUTES[stated].unit))
        for offered, stated, default in _NEEDS
    ]
    block = rules.block_for(asker)
    if block is None and asker.relation is not Relation.SELF:
        missing = _never(f"a missing block: accept from {SENDERS[asker.relation]}")
        demands.append(Demand(conditions=(missing,), scope=HERE))
    if block is not None:
        demands += [Demand(conditions=(each.condition,), scope=HERE) for each in block.requirements]
        demands += [Demand(conditions=tuple(each.condition for each in block.occasions), scope=HERE)]
    return tuple(demand for demand in demands if demand.conditions)


def room_demand(
    offered: str, stated: str, default: int, /, *, unit: tuple[Unit, Unit] = (Unit.NONE, Unit.NONE), text: str = ""
) -> Demand:
    """Return that a machine offers as much of one attribute as a task states in another, or by default.

    It reads as `text`, or as that comparison.
    """
    machine = Reading(scope=MACHINE, name=offered, kind=Kind.INTEGER, unit=unit[0])
    task = Reading(scope=TASK, name=stated, kind=Kind.INTEGER, default=default, unit=unit[1])
    left, right = Variable(machine.key), Variable(task.key)
    room = Comparison(kind=Kind.INTEGER, left=left, order=Order.GREATER_OR_EQUAL, right=right)
    text = text or f"{machine} >= {task}"
    condition = condition_of(room, (machine, task), text=text, written=Term(text=text, start=0, expression=room))
    return Demand(conditions=(condition,), scope=MACHINE)


def judge_pool(demands: Iterable[Demand], facts: Facts, pool: IndexedVector, /) -> Judged:
    """Return the classes that satisfy all demands."""
    surely = could = pool.every_class
    for demand in demands:
        judged = [condition.over(facts, demand.scope, pool) for condition in demand.conditions]
        surely &= reduce(or_, [each for each, _ in judged])
        could &= reduce(or_, [each for _, each in judged])
    return surely, could


def losses_in(demands: Iterable[Demand], facts: Facts, pool: IndexedVector, /) -> tuple[Loss, ...]:
    """Return every part of the demands that excludes machines, in the order of the rules."""
    losses = []
    for demand in demands:
        parts = [explain_classes(condition, facts, demand.scope, pool) for condition in demand.conditions]
        alone = list(_conjuncts(parts[0])) if len(parts) == 1 else []
        losses += [_loss(text_of(part.written), part.judged, pool) for part in alone]
        if len(parts) > 1:
            judged = reduce(or_, [part.judged[0] for part in parts]), reduce(or_, [part.judged[1] for part in parts])
            losses.append(_loss(" or ".join(f"({text_of(part.written)})" for part in parts), judged, pool))
    return tuple(loss for loss in losses if loss.machines.could)


def _conjuncts(part: ClassPart) -> Iterator[ClassPart]:
    if isinstance(part.written, Compound) and part.written.joint is Joint.AND:
        for each in part.parts:
            yield from _conjuncts(each)
    else:
        yield part


def _loss(text: str, judged: Judged, pool: IndexedVector) -> Loss:
    met, machines = machines_in(judged, pool), pool.vector.machines
    return Loss(text=text, machines=Machines(surely=machines - met.could, could=machines - met.surely))


def _never(text: str) -> Condition:
    wrong = Comparison(kind=Kind.INTEGER, left=0, order=Order.EQUAL, right=1)
    return condition_of(wrong, (), text=text, written=Term(text=text, start=0, expression=wrong))
