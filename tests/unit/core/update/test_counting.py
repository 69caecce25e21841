"""A system is counted at one of its parents: the first that is not silent; what it says decides for its neighbors."""

import pytest

from messiahs.core.interface.actions import Action, Decision, SendVector
from messiahs.core.interface.events import LinkDown, LinkUp, VectorReceived
from messiahs.core.interface.messages import StatusVector, SystemStatusQuery, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.queries import own_sums
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, OTHER_CHILD, SIBLING, Rig, only, view

FIRST, SECOND_ONE, THIRD = map(SystemId, ("primary", "another", "third"))
NEIGHBORS = (
    Neighbor(system=SECOND_ONE, is_parent=True),
    Neighbor(system=FIRST, is_parent=True, is_primary_parent=True),
    Neighbor(system=THIRD, is_parent=True),
    Neighbor(system=SIBLING, is_sibling=True),
    Neighbor(system=CHILD, is_child=True, is_primary_child=True),
    Neighbor(system=OTHER_CHILD, is_child=True),
)
SILENCE_NS = 6 * SECOND
"""Three periods: the time without a link after which a parent is silent."""


@pytest.fixture
def rig(module: ModuleFactory) -> Rig:
    """Make a module with three parents, all linked."""
    made = module(neighbors=NEIGHBORS)
    made.greet(FIRST, SECOND_ONE, THIRD, SIBLING, CHILD, OTHER_CHILD)
    return made


def hear(rig: Rig, system: SystemId, kind: VectorKind, /, *, counted: bool | None = None) -> tuple[Action, ...]:
    message = StatusVector(kind=kind, vector=view(), period_ns=2 * SECOND, age_ns=0, counted=counted)
    return rig.handle(VectorReceived(sender=system, message=message))


def said(actions: tuple[Action, ...]) -> dict[SystemId, bool | None]:
    """Return the last that each neighbor reads about where the module is counted."""
    return {each.to: each.message.counted for each in only(actions, SendVector)}


def said_to(rig: Rig, *systems: SystemId) -> list[bool | None]:
    return [said(rig.hear(system, SystemStatusQuery()))[system] for system in systems]


def keep_heard(rig: Rig, duration_ns: int, *parents: SystemId) -> tuple[Action, ...]:
    """Let time pass in which some parents send their vectors."""
    actions: list[Action] = []
    for _ in range(duration_ns // SECOND):
        for parent in parents:
            hear(rig, parent, VectorKind.FOR_CHILDREN)
        actions.extend(rig.wait(SECOND))
    return tuple(actions)


def test_the_primary_parent_counts_a_system_and_the_others_and_siblings_know(rig: Rig) -> None:
    assert said_to(rig, FIRST, SECOND_ONE, THIRD, SIBLING, CHILD) == [True, False, False, True, None]


def test_a_system_without_parents_tells_its_siblings_that_it_is_in_its_place(module: ModuleFactory) -> None:
    rig = module(neighbors=(Neighbor(system=SIBLING, is_sibling=True),))
    rig.greet(SIBLING)
    assert said_to(rig, SIBLING) == [True]


def test_the_next_parent_counts_a_system_once_the_first_was_without_a_link_for_three_periods(rig: Rig) -> None:
    rig.handle(LinkDown(neighbor=FIRST))
    keep_heard(rig, SILENCE_NS - SECOND, SECOND_ONE, THIRD)
    assert said_to(rig, SECOND_ONE, THIRD, SIBLING) == [False, False, True]
    actions = keep_heard(rig, 2 * SECOND, SECOND_ONE, THIRD)
    assert Decision(what="counted_at", task=SECOND_ONE, text=f"before: {FIRST}") in actions
    assert said(actions)[SECOND_ONE] is True
    assert said_to(rig, SECOND_ONE, THIRD, SIBLING) == [True, False, False]


def test_after_the_first_the_parents_follow_by_name(rig: Rig) -> None:
    for parent in (FIRST, SECOND_ONE):
        rig.handle(LinkDown(neighbor=parent))
    keep_heard(rig, SILENCE_NS, THIRD)
    assert said_to(rig, THIRD) == [True]
    rig.greet(SECOND_ONE)
    assert said_to(rig, SECOND_ONE, THIRD) == [True, False]


def test_the_first_parent_counts_again_as_soon_as_it_is_linked_and_the_others_are_told(rig: Rig) -> None:
    rig.handle(LinkDown(neighbor=FIRST))
    keep_heard(rig, SILENCE_NS, SECOND_ONE, THIRD)
    actions = rig.greet(FIRST)
    assert said(actions) == {FIRST: True}
    assert Decision(what="counted_at", task=FIRST, text=f"before: {SECOND_ONE}") in actions
    told = said(rig.wait(SECOND // 10))
    assert (told[SECOND_ONE], told[SIBLING]) == (False, True)


def test_a_parent_that_connects_without_a_greeting_counts_nothing(rig: Rig) -> None:
    rig.handle(LinkDown(neighbor=FIRST))
    rig.handle(LinkUp(neighbor=FIRST))
    keep_heard(rig, SILENCE_NS, SECOND_ONE, THIRD)
    assert said_to(rig, SECOND_ONE) == [True]


def test_a_parent_that_is_linked_and_silent_counts_again_with_its_next_vector(rig: Rig) -> None:
    keep_heard(rig, SILENCE_NS, SECOND_ONE, THIRD)
    assert said_to(rig, FIRST, SECOND_ONE) == [True, False]
    keep_heard(rig, 2 * SECOND, SECOND_ONE, THIRD)
    assert said_to(rig, FIRST, SECOND_ONE) == [False, True]
    hear(rig, FIRST, VectorKind.FOR_CHILDREN)
    assert said_to(rig, FIRST, SECOND_ONE) == [True, False]


def test_a_parent_that_never_connects_is_waited_for_as_long(module: ModuleFactory) -> None:
    rig = module(neighbors=NEIGHBORS)
    rig.greet(SECOND_ONE)
    keep_heard(rig, SILENCE_NS - SECOND, SECOND_ONE)
    assert said_to(rig, SECOND_ONE) == [False]
    keep_heard(rig, 2 * SECOND, SECOND_ONE)
    assert said_to(rig, SECOND_ONE) == [True]


def test_other_parents_whose_links_come_and_go_do_not_prolong_the_wait(rig: Rig) -> None:
    rig.handle(LinkDown(neighbor=FIRST))
    for _ in range(6):
        keep_heard(rig, SECOND, SECOND_ONE)
        rig.handle(LinkDown(neighbor=THIRD))
        rig.greet(THIRD)
    keep_heard(rig, SECOND, SECOND_ONE)
    assert said_to(rig, SECOND_ONE) == [True]


def test_without_any_parent_the_primary_one_counts_a_system_as_soon_as_it_returns(rig: Rig) -> None:
    for parent in (FIRST, SECOND_ONE, THIRD):
        rig.handle(LinkDown(neighbor=parent))
    rig.wait(2 * SILENCE_NS)
    assert said_to(rig, SIBLING) == [True]
    rig.greet(FIRST)
    assert said_to(rig, FIRST) == [True]


def test_a_system_with_one_parent_is_counted_there_whatever_happens(module: ModuleFactory) -> None:
    rig = module(neighbors=NEIGHBORS[1:2])
    rig.greet(FIRST)
    rig.wait(5 * SILENCE_NS)
    assert said_to(rig, FIRST) == [True]


@pytest.mark.parametrize(
    ("counted", "is_primary_in_the_topology", "is_summed"),
    [
        (True, True, True),
        (True, False, True),
        (False, True, False),
        (False, False, False),
        (None, True, True),
        (None, False, False),
    ],
)
def test_a_parent_sums_the_children_that_say_so(
    rig: Rig, *, counted: bool | None, is_primary_in_the_topology: bool, is_summed: bool
) -> None:
    child = CHILD if is_primary_in_the_topology else OTHER_CHILD
    hear(rig, child, VectorKind.FOR_PARENTS, counted=counted)
    actions = rig.wait(SECOND // 10)
    assert own_sums(rig.state).up.machines == is_summed
    vectors = {each.to: each.message.vector.machines for each in only(actions, SendVector)}
    assert vectors.get(FIRST, 0) == is_summed
    # Placing tasks there does not depend on it.
    assert (child, VectorKind.FOR_PARENTS) in rig.state.updates.views


def test_a_child_that_is_counted_elsewhere_from_now_on_leaves_the_sums_at_once(rig: Rig) -> None:
    hear(rig, CHILD, VectorKind.FOR_PARENTS, counted=True)
    rig.wait(SECOND // 10)
    hear(rig, CHILD, VectorKind.FOR_PARENTS, counted=False)
    vectors = {each.to: each.message.vector.machines for each in only(rig.wait(SECOND // 10), SendVector)}
    assert vectors[FIRST] == 0
    hear(rig, CHILD, VectorKind.FOR_PARENTS, counted=True)
    vectors = {each.to: each.message.vector.machines for each in only(rig.wait(SECOND // 10), SendVector)}
    assert vectors[FIRST] == 1


def test_what_a_child_said_is_forgotten_with_its_link(rig: Rig) -> None:
    hear(rig, CHILD, VectorKind.FOR_PARENTS, counted=False)
    rig.handle(LinkDown(neighbor=CHILD))
    rig.greet(CHILD)
    hear(rig, CHILD, VectorKind.FOR_PARENTS)
    assert own_sums(rig.state).up.machines == 1


@pytest.mark.parametrize(("counted", "is_summed"), [(True, True), (None, True), (False, False)])
def test_a_sibling_that_is_counted_elsewhere_is_in_no_sum_and_the_parent_reports_it(
    rig: Rig, *, counted: bool | None, is_summed: bool
) -> None:
    hear(rig, SIBLING, VectorKind.FOR_SIBLINGS, counted=counted)
    assert own_sums(rig.state).down.machines == is_summed
    (action,) = only(rig.hear(FIRST, SystemStatusQuery()), SendVector)
    assert action.message.hears == ((SIBLING,) if is_summed else ())


def test_a_system_that_is_counted_elsewhere_hears_of_its_siblings_from_that_parent(rig: Rig) -> None:
    hear(rig, SIBLING, VectorKind.FOR_SIBLINGS, counted=True)
    rig.handle(LinkDown(neighbor=FIRST))
    for _ in range(8):
        hear(rig, SIBLING, VectorKind.FOR_SIBLINGS, counted=True)
        keep_heard(rig, SECOND, SECOND_ONE, THIRD)
    assert own_sums(rig.state).down.machines == 1
    (action,) = only(rig.hear(SECOND_ONE, SystemStatusQuery()), SendVector)
    assert (action.message.counted, action.message.hears) == (True, ())
