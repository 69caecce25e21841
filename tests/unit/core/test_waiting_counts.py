"""How many tasks wait behind a neighbor: counted by the same sums as machines, beside them in every vector."""

from collections.abc import Iterable

from messiahs.core.actions import Action, SendVector
from messiahs.core.events import AnswerTo, CancelRequested, VectorReceived
from messiahs.core.ids import SystemId
from messiahs.core.instants import MILLISECOND, SECOND
from messiahs.core.messages import StatusVector, VectorKind
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    NEIGHBORS,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    START,
    TASK,
    Rig,
    ScriptedPolicy,
    only,
    view,
)

KINDS = {
    CHILD: VectorKind.FOR_PARENTS,
    OTHER_CHILD: VectorKind.FOR_PARENTS,
    PARENT: VectorKind.FOR_CHILDREN,
    SIBLING: VectorKind.FOR_SIBLINGS,
}


def told(actions: Iterable[Action]) -> dict[SystemId, int]:
    return {action.to: action.message.waiting for action in only(actions, SendVector)}


def hear(rig: Rig, system: SystemId, *, waiting: int) -> tuple[Action, ...]:
    message = StatusVector(kind=KINDS[system], vector=view(), period_ns=2 * SECOND, age_ns=0, waiting=waiting)
    return rig.handle(VectorReceived(sender=system, message=message))


def linked(module: ModuleFactory, policy: ScriptedPolicy | None = None) -> Rig:
    rig = module(policy=policy)
    rig.greet(*(neighbor.system for neighbor in NEIGHBORS))
    rig.wait(SECOND)
    return rig


def cancel(rig: Rig) -> None:
    rig.handle(CancelRequested(answer_to=AnswerTo(1), task=TASK))


def test_each_neighbor_is_told_what_waits_where_the_machines_of_its_vector_are(module: ModuleFactory) -> None:
    rig = linked(module)
    rig.submit(members=3)
    for system, waiting in ((CHILD, 10), (OTHER_CHILD, 20), (PARENT, 100), (SIBLING, 1_000)):
        hear(rig, system, waiting=waiting)
    assert told(rig.wait(2 * SECOND)) == {
        CHILD: 3 + 20 + 100 + 1_000,
        OTHER_CHILD: 3 + 10 + 100 + 1_000,
        PARENT: 3 + 10 + 20,
        SIBLING: 3 + 10 + 20,
    }


def test_that_tasks_begin_to_wait_or_end_it_is_told_at_once_and_other_counts_with_the_period(
    module: ModuleFactory,
) -> None:
    rig = linked(module)
    rig.wait(2 * SECOND - (rig.now - START) % (2 * SECOND) + SECOND)
    rig.submit(members=2)
    assert told(rig.wait(60 * MILLISECOND)) == {CHILD: 2, OTHER_CHILD: 2, PARENT: 2, SIBLING: 2}
    rig.handle(CancelRequested(answer_to=AnswerTo(1), task=TASK._replace(member=1)))
    assert told(rig.wait(60 * MILLISECOND)) == {}
    cancel(rig)
    assert told(rig.wait(60 * MILLISECOND)) == {CHILD: 0, OTHER_CHILD: 0, PARENT: 0, SIBLING: 0}


def test_that_tasks_begin_to_wait_behind_a_neighbor_is_passed_on_at_once(module: ModuleFactory) -> None:
    rig = linked(module)
    hear(rig, CHILD, waiting=0)
    rig.wait(SECOND // 2)
    hear(rig, CHILD, waiting=5)
    assert told(rig.wait(60 * MILLISECOND)) == {OTHER_CHILD: 5, PARENT: 5, SIBLING: 5}
    hear(rig, CHILD, waiting=6)
    assert told(rig.wait(60 * MILLISECOND)) == {}


def test_a_count_beyond_all_bounds_is_cut(module: ModuleFactory) -> None:
    rig = linked(module)
    hear(rig, CHILD, waiting=2**40 - 1)
    assert told(rig.wait(2 * SECOND))[PARENT] == 1_000_000_000


def test_whoever_is_told_nothing_of_machines_is_told_nothing_of_tasks(module: ModuleFactory) -> None:
    rig = linked(module, ScriptedPolicy(silent_to=(PARENT,)))
    rig.submit(members=3)
    assert {system: count for system, count in told(rig.wait(2 * SECOND)).items() if not count} == {PARENT: 0}
