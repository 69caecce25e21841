"""The sums for parents, children and siblings, as one module computes them from what it heard."""

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.update.sums import vector_for_children, vector_for_parents, vector_for_siblings, view_of
from messiahs.core.vectors.vectors import EMPTY, MachineClass, Vector
from tests.unit.core.sent_vectors import state_with, vector_sent

KEYS = ("is",)


def bag(names: str) -> Vector:
    return Vector(
        tuple(MachineClass(count=names.count(name), attributes=(("is", name),)) for name in sorted(set(names)))
    )


PARENT = Neighbor(system=SystemId("parent"), is_parent=True, is_primary_parent=True)
OTHER_PARENT = Neighbor(system=SystemId("other-parent"), is_parent=True)
CHILD = Neighbor(system=SystemId("child"), is_child=True, is_primary_child=True)
SECOND_CHILD = Neighbor(system=SystemId("second-child"), is_child=True, is_primary_child=True)
STEPCHILD = Neighbor(system=SystemId("stepchild"), is_child=True)
SIBLING = Neighbor(system=SystemId("sibling"), is_sibling=True)
SIBLING_AND_PARENT = Neighbor(system=SystemId("both-up"), is_sibling=True, is_parent=True)
SIBLING_AND_CHILD = Neighbor(system=SystemId("both-down"), is_sibling=True, is_child=True)

NEIGHBORS = (
    PARENT, OTHER_PARENT, CHILD, SECOND_CHILD, STEPCHILD, SIBLING, SIBLING_AND_PARENT, SIBLING_AND_CHILD,
)  # fmt: skip
OWN = bag("x")
VIEWS = {
    (PARENT.system, VectorKind.FOR_CHILDREN): bag("pq"),
    (OTHER_PARENT.system, VectorKind.FOR_CHILDREN): bag("o"),
    (CHILD.system, VectorKind.FOR_PARENTS): bag("cd"),
    (SECOND_CHILD.system, VectorKind.FOR_PARENTS): bag("e"),
    (STEPCHILD.system, VectorKind.FOR_PARENTS): bag("f"),
    (SIBLING.system, VectorKind.FOR_SIBLINGS): bag("s"),
    (SIBLING_AND_PARENT.system, VectorKind.FOR_SIBLINGS): bag("t"),
    (SIBLING_AND_PARENT.system, VectorKind.FOR_CHILDREN): bag("tp"),
    (SIBLING_AND_CHILD.system, VectorKind.FOR_SIBLINGS): bag("u"),
    (SIBLING_AND_CHILD.system, VectorKind.FOR_PARENTS): bag("u"),
}


def for_child(child: Neighbor, hears: tuple[Neighbor, ...] = ()) -> Vector:
    names = {child.system: [each.system for each in hears]}
    state = state_with(OWN, NEIGHBORS, keys=KEYS, views=VIEWS, hears=names)
    return vector_sent(state, child.system, VectorKind.FOR_CHILDREN)


def test_parents_get_the_own_machine_and_what_primary_children_say() -> None:
    state = state_with(OWN, NEIGHBORS, keys=KEYS, views=VIEWS, hears={})
    assert vector_sent(state, PARENT.system, VectorKind.FOR_PARENTS) == bag("xcde")
    assert vector_for_parents(OWN, NEIGHBORS, views=VIEWS, keys=KEYS) == bag("xcde")


def test_siblings_get_the_same_as_parents() -> None:
    state = state_with(OWN, NEIGHBORS, keys=KEYS, views=VIEWS, hears={})
    assert vector_sent(state, SIBLING.system, VectorKind.FOR_SIBLINGS) == bag("xcde")
    assert vector_for_siblings(OWN, NEIGHBORS, views=VIEWS, keys=KEYS) == bag("xcde")


def test_children_get_the_own_machine_the_primary_parents_vector_and_what_siblings_say() -> None:
    assert vector_for_children(OWN, NEIGHBORS, views=VIEWS, keys=KEYS) == bag("xpqstu")


def test_a_child_that_hears_no_sibling_gets_the_other_primary_children_too() -> None:
    assert for_child(CHILD) == bag("xpqstu" + "e")
    assert for_child(SECOND_CHILD) == bag("xpqstu" + "cd")


def test_a_child_never_gets_from_its_parent_what_it_hears_itself() -> None:
    assert for_child(CHILD, hears=(SECOND_CHILD,)) == bag("xpqstu")


def test_a_child_that_says_it_hears_itself_or_a_stranger_changes_nothing() -> None:
    assert for_child(CHILD, hears=(CHILD, OTHER_PARENT, STEPCHILD)) == for_child(CHILD)


def test_a_child_that_is_not_primary_gets_all_primary_children_and_not_itself() -> None:
    assert for_child(STEPCHILD) == bag("xpqstu" + "cde")


def test_a_system_without_a_machine_adds_nothing_of_its_own() -> None:
    assert vector_for_parents(EMPTY, NEIGHBORS, views=VIEWS, keys=KEYS) == bag("cde")
    assert vector_for_children(EMPTY, (), views={}, keys=KEYS) == EMPTY


def test_neighbors_that_said_nothing_yet_count_as_nothing() -> None:
    assert vector_for_parents(OWN, NEIGHBORS, views={}, keys=KEYS) == OWN
    assert vector_for_children(OWN, NEIGHBORS, views={}, keys=KEYS) == OWN
    assert view_of(PARENT, {}) == EMPTY


def test_the_sums_do_not_depend_on_the_order_of_neighbors() -> None:
    for one in (vector_for_parents, vector_for_children):
        assert one(OWN, NEIGHBORS[::-1], views=VIEWS, keys=KEYS) == one(OWN, NEIGHBORS, views=VIEWS, keys=KEYS)


def test_views_are_what_the_relation_says() -> None:
    views = {neighbor.system: view_of(neighbor, VIEWS) for neighbor in NEIGHBORS}
    assert views == {
        "parent": bag("pq"),
        "other-parent": bag("o"),
        "child": bag("cd"),
        "second-child": bag("e"),
        "stepchild": bag("f"),
        "sibling": bag("s"),
        "both-up": bag("tp"),
        "both-down": bag("u"),
    }


def test_of_a_sibling_that_is_a_parent_too_only_the_siblings_vector_is_summed() -> None:
    only = (SIBLING_AND_PARENT,)
    assert vector_for_children(OWN, only, views=VIEWS, keys=KEYS) == bag("xt")
    assert vector_for_parents(OWN, only, views=VIEWS, keys=KEYS) == OWN
