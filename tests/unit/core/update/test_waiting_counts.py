"""How many tasks wait behind a neighbor: counted by the same sums as machines, beside them in every vector."""

from collections.abc import Iterable, Mapping

import pytest

from messiahs.core.interface.actions import Action, SendVector
from messiahs.core.interface.events import AnswerTo, CancelRequested, VectorReceived
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.neighbors import Neighbor
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, NEIGHBORS, OTHER_CHILD, PARENT, SIBLING, START, TASK, Rig, only, view
from tests.unit.core.scripted_policy import ScriptedPolicy

KINDS = {
    CHILD: VectorKind.FOR_PARENTS,
    OTHER_CHILD: VectorKind.FOR_PARENTS,
    PARENT: VectorKind.FOR_CHILDREN,
    SIBLING: VectorKind.FOR_SIBLINGS,
}


def counts_sent(actions: Iterable[Action]) -> dict[SystemId, int]:
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


def test_each_neighbor_receives_the_waiting_count_of_the_systems_in_its_vector(module: ModuleFactory) -> None:
    rig = linked(module)
    rig.submit(members=3)
    for system, waiting in ((CHILD, 10), (OTHER_CHILD, 20), (PARENT, 100), (SIBLING, 1_000)):
        hear(rig, system, waiting=waiting)
    assert counts_sent(rig.wait(2 * SECOND)) == {
        CHILD: 3 + 20 + 100 + 1_000,
        OTHER_CHILD: 3 + 10 + 100 + 1_000,
        PARENT: 3 + 10 + 20,
        SIBLING: 3 + 10 + 20,
    }


def test_the_first_and_last_waiting_task_are_sent_at_once_and_other_counts_with_the_period(
    module: ModuleFactory,
) -> None:
    rig = linked(module)
    rig.wait(2 * SECOND - (rig.now - START) % (2 * SECOND) + SECOND)
    rig.submit(members=2)
    assert counts_sent(rig.wait(60 * MILLISECOND)) == {CHILD: 2, OTHER_CHILD: 2, PARENT: 2, SIBLING: 2}
    rig.handle(CancelRequested(answer_to=AnswerTo(1), task=TASK._replace(member=1)))
    assert counts_sent(rig.wait(60 * MILLISECOND)) == {}
    cancel(rig)
    assert counts_sent(rig.wait(60 * MILLISECOND)) == {CHILD: 0, OTHER_CHILD: 0, PARENT: 0, SIBLING: 0}


def test_that_tasks_begin_to_wait_behind_a_neighbor_is_passed_on_at_once(module: ModuleFactory) -> None:
    rig = linked(module)
    hear(rig, CHILD, waiting=0)
    rig.wait(SECOND // 2)
    hear(rig, CHILD, waiting=5)
    assert counts_sent(rig.wait(60 * MILLISECOND)) == {OTHER_CHILD: 5, PARENT: 5, SIBLING: 5}
    hear(rig, CHILD, waiting=6)
    assert counts_sent(rig.wait(60 * MILLISECOND)) == {}


def test_a_count_beyond_all_bounds_is_cut(module: ModuleFactory) -> None:
    rig = linked(module)
    hear(rig, CHILD, waiting=2**40 - 1)
    assert counts_sent(rig.wait(2 * SECOND))[PARENT] == 1_000_000_000


def test_whoever_is_told_nothing_of_machines_is_told_nothing_of_tasks(module: ModuleFactory) -> None:
    rig = linked(module, ScriptedPolicy(silent_to=(PARENT,)))
    rig.submit(members=3)
    assert {system: count for system, count in counts_sent(rig.wait(2 * SECOND)).items() if not count} == {PARENT: 0}


STEPCHILD = SystemId("stepchild")
WITH_STEPCHILD = (*NEIGHBORS, Neighbor(system=STEPCHILD, is_child=True))


def with_stepchild(module: ModuleFactory) -> Rig:
    rig = module(neighbors=WITH_STEPCHILD)
    rig.greet(*(neighbor.system for neighbor in WITH_STEPCHILD))
    rig.wait(SECOND)
    return rig


def hear_all(rig: Rig, kinds: Mapping[SystemId, VectorKind], **said: object) -> None:
    for system, kind in kinds.items():
        given = {"vector": view(), "period_ns": 2 * SECOND, "age_ns": 0, **said}
        rig.handle(VectorReceived(sender=system, message=StatusVector(kind=kind, **given)))  # type: ignore[arg-type]


def test_a_child_of_another_primary_parent_receives_what_waits_here_and_below_and_not_its_own_count(
    module: ModuleFactory,
) -> None:
    rig = with_stepchild(module)
    rig.submit(members=3)
    for system, waiting in ((CHILD, 10), (OTHER_CHILD, 20), (PARENT, 100), (SIBLING, 1_000)):
        hear(rig, system, waiting=waiting)
    assert counts_sent(rig.wait(2 * SECOND))[STEPCHILD] == 3 + 10 + 20


def test_an_only_task_that_waits_at_a_child_does_not_come_back_to_it_from_its_second_parent(
    module: ModuleFactory,
) -> None:
    rig = with_stepchild(module)
    # The child's primary parent is a sibling of this module, or its parent: either tells of the task.
    hear_all(rig, {STEPCHILD: VectorKind.FOR_PARENTS}, waiting=1)
    hear_all(rig, {SIBLING: VectorKind.FOR_SIBLINGS, PARENT: VectorKind.FOR_CHILDREN}, waiting=1)
    assert counts_sent(rig.wait(2 * SECOND)) == {STEPCHILD: 0, CHILD: 2, OTHER_CHILD: 2, PARENT: 0, SIBLING: 0}


def test_a_task_that_a_child_of_a_child_has_told_of_itself_is_not_told_to_it_as_anothers(module: ModuleFactory) -> None:
    rig = with_stepchild(module)
    # This module is above the child's primary parent, too.
    hear_all(rig, {STEPCHILD: VectorKind.FOR_PARENTS, CHILD: VectorKind.FOR_PARENTS}, waiting=1)
    assert counts_sent(rig.wait(2 * SECOND))[STEPCHILD] == 0
    hear(rig, OTHER_CHILD, waiting=5)
    assert counts_sent(rig.wait(2 * SECOND))[STEPCHILD] == 5


def test_a_child_of_another_primary_parent_keeps_the_classes_of_all_others(module: ModuleFactory) -> None:
    rig = with_stepchild(module)
    for system in (CHILD, OTHER_CHILD, PARENT, SIBLING, STEPCHILD):
        rig.see(system)
    machines = {each.to: each.message.vector.machines for each in only(rig.wait(3 * SECOND), SendVector)}
    assert machines == {STEPCHILD: 4, CHILD: 3, OTHER_CHILD: 3, PARENT: 2, SIBLING: 2}


@pytest.mark.parametrize("said", ["makes_room", "lets_go"])
def test_offers_and_possible_room_above_are_not_sent_to_a_child_of_another_primary_parent(
    module: ModuleFactory, said: str
) -> None:
    rig = with_stepchild(module)
    hear_all(rig, {SIBLING: VectorKind.FOR_SIBLINGS, STEPCHILD: VectorKind.FOR_PARENTS}, **{said: True})
    answers = {each.to: getattr(each.message, said) for each in only(rig.wait(3 * SECOND), SendVector)}
    assert answers == {STEPCHILD: False, CHILD: True, OTHER_CHILD: True, PARENT: False, SIBLING: False}
    hear_all(rig, {CHILD: VectorKind.FOR_PARENTS}, **{said: True})
    answers = {each.to: getattr(each.message, said) for each in only(rig.wait(3 * SECOND), SendVector)}
    assert answers == {STEPCHILD: True, CHILD: True, OTHER_CHILD: True, PARENT: True, SIBLING: True}
