"""MESSIAHS 7, the formal model of update vectors: a test for each statement, in the paper's small examples.

The federation is like that of figure 2: `a` above `b` and `c`, and `d` with its child `e` below both of them.
"""

from dataclasses import fields

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.update.sums import Views, vector_for_children, vector_for_parents, vector_for_siblings, view_of
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import EMPTY, Interval, MachineClass, Vector, coalesce, hull_of
from tests.unit.core import sent_vectors

KEYS = ("is",)
UP, DOWN, ACROSS = VectorKind.FOR_PARENTS, VectorKind.FOR_CHILDREN, VectorKind.FOR_SIBLINGS


def bag(names: str) -> Vector:
    return coalesce((Vector((MachineClass(count=1, attributes=(("is", name),)),)) for name in names), keys=KEYS)


def child(name: str, *, is_primary: bool = True) -> Neighbor:
    return Neighbor(system=SystemId(name), is_child=True, is_primary_child=is_primary)


def parent(name: str, *, is_primary: bool = True) -> Neighbor:
    return Neighbor(system=SystemId(name), is_parent=True, is_primary_parent=is_primary)


def sibling(name: str) -> Neighbor:
    return Neighbor(system=SystemId(name), is_sibling=True)


def heard(kind: VectorKind, **said: Vector) -> Views:
    return {(SystemId(name), kind): vector for name, vector in said.items()}


def up(own: str, *children: Neighbor, views: Views) -> Vector:
    return vector_for_parents(bag(own), children, views=views, keys=KEYS)


def down(own: str, *above: Neighbor, views: Views) -> Vector:
    return vector_for_children(bag(own), above, views=views, keys=KEYS)


def up_to_the_root(*, is_d_primary_at_c: bool) -> Vector:
    """Give U of `a`; `b` is the primary parent of `d`, and `c` is a parent that is one too, or is not."""
    u_d = up("d", child("e"), views=heard(UP, e=bag("e")))
    u_b = up("b", child("d"), views=heard(UP, d=u_d))
    u_c = up("c", child("d", is_primary=is_d_primary_at_c), views=heard(UP, d=u_d))
    return up("a", child("b"), child("c"), views=heard(UP, b=u_b, c=u_c))


def test_7_1_the_sum_is_a_union_that_keeps_duplicates() -> None:
    assert coalesce([bag("ab"), bag("ac")], keys=KEYS) == bag("aabc")


def test_7_1_machines_that_are_alike_are_counted_and_not_listed() -> None:
    (stations,) = coalesce([bag("w")] * 40, keys=KEYS).classes
    assert stations.count == 40


def test_7_1_the_sum_is_an_upper_bound_of_what_both_can_do() -> None:
    slow = MachineClass(count=1, attributes=(("speed", Interval(3, 3)),))
    fast = MachineClass(count=1, attributes=(("speed", Interval(9, 9)),))
    assert hull_of((slow, fast)) == MachineClass(count=2, attributes=(("speed", Interval(3, 9)),))


def test_7_1_a_vector_holds_descriptions_and_no_identity() -> None:
    assert {field.name for field in fields(Vector) if field.compare} == {"classes"}
    assert set(MachineClass.__dataclass_fields__) == {"count", "attributes", "some_lack"}


def test_7_2_at_a_leaf_all_three_vectors_hold_the_system_alone() -> None:
    for each in (vector_for_parents, vector_for_children, vector_for_siblings):
        assert each(bag("e"), (), views={}, keys=KEYS) == bag("e")


def test_7_2_equation_10_u_is_the_system_and_the_u_of_its_children() -> None:
    assert up("a", child("b"), child("c"), views=heard(UP, b=bag("bx"), c=bag("c"))) == bag("abcx")


def test_7_2_equation_11_d_is_the_system_the_d_of_its_parent_and_the_s_of_its_siblings() -> None:
    views = {**heard(DOWN, a=bag("az")), **heard(ACROSS, c=bag("cy"))}
    assert down("b", parent("a"), sibling("c"), views=views) == bag("bazcy")


def test_7_2_equation_12_s_equals_u() -> None:
    neighbors, views = (child("b"), parent("z"), sibling("s")), heard(UP, b=bag("bx"))
    ups = vector_for_parents(bag("a"), neighbors, views=views, keys=KEYS)
    assert vector_for_siblings(bag("a"), neighbors, views=views, keys=KEYS) == ups == bag("abx")


def test_7_2_equation_13_a_view_is_what_the_neighbor_sent_for_its_relation() -> None:
    views = {**heard(UP, c=bag("c")), **heard(DOWN, p=bag("p")), **heard(ACROSS, s=bag("s"))}
    assert view_of(child("c"), views) == bag("c")
    assert view_of(parent("p"), views) == bag("p")
    assert view_of(sibling("s"), views) == bag("s")


def test_7_2_equation_13_whoever_is_no_neighbor_or_said_nothing_has_an_empty_view() -> None:
    assert view_of(child("c"), heard(UP, d=bag("d"))) == EMPTY


def test_7_3_without_a_primary_parent_two_paths_to_an_ancestor_count_a_system_twice() -> None:
    assert up_to_the_root(is_d_primary_at_c=True) == bag("abcddee")


def test_7_3_with_the_primary_parent_each_system_counts_once() -> None:
    assert up_to_the_root(is_d_primary_at_c=False) == bag("abcde")


def test_7_3_without_a_primary_parent_the_way_down_overestimates_too() -> None:
    d_b, d_c = bag("bac"), bag("cab")
    views = heard(DOWN, b=d_b, c=d_c)
    assert down("d", parent("b"), parent("c"), views=views) == bag("dbaccab")
    assert down("d", parent("b"), parent("c", is_primary=False), views=views) == bag("dbac")


def test_7_3_every_parent_gets_the_update_and_keeps_it_as_its_view() -> None:
    assert view_of(child("d", is_primary=False), heard(UP, d=bag("de"))) == bag("de")


def test_7_3_a_child_keeps_the_d_of_its_other_parents_as_views() -> None:
    assert view_of(parent("c", is_primary=False), heard(DOWN, c=bag("cab"))) == bag("cab")


def test_7_3_beyond_equation_20_a_parent_adds_those_primary_children_that_a_child_does_not_hear() -> None:
    neighbors = (child("d"), child("e"), child("f", is_primary=False), parent("a"))
    views = {**heard(UP, d=bag("d"), e=bag("e"), f=bag("f")), **heard(DOWN, a=bag("a"))}

    def sent_to(name: str, *hears: str) -> Vector:
        heard_by = {SystemId(name): [*map(SystemId, hears)]}
        state = sent_vectors.state_with(bag("b"), neighbors, keys=KEYS, views=views, hears=heard_by)
        return sent_vectors.vector_sent(state, SystemId(name), DOWN)

    assert vector_for_children(bag("b"), neighbors, views=views, keys=KEYS) == sent_to("d", "e") == bag("ba")
    assert sent_to("d") == bag("bae")
    # A child of another primary parent hears none of them as siblings.
    assert sent_to("f") == bag("bade")


def test_7_3_only_siblings_that_share_the_primary_parent_enter_d() -> None:
    # `f` shares only the other parent `c`, so it is no sibling at all, and what it says enters nothing.
    stranger = Neighbor(system=SystemId("f"))
    views = {**heard(ACROSS, s=bag("s"), f=bag("f")), **heard(DOWN, b=bag("b"))}
    assert down("d", parent("b"), sibling("s"), stranger, views=views) == bag("dbs")


def test_7_4_lemma_1_u_holds_a_system_and_its_primary_descendants_only() -> None:
    neighbors = (child("e"), child("f", is_primary=False), parent("b"), sibling("s"))
    views = {**heard(UP, e=bag("e"), f=bag("f")), **heard(DOWN, b=bag("b")), **heard(ACROSS, s=bag("s"))}
    assert vector_for_parents(bag("d"), neighbors, views=views, keys=KEYS) == bag("de")


def test_7_4_lemma_2_the_u_of_a_system_and_the_s_of_its_sibling_have_nothing_in_common() -> None:
    u_b = up("b", child("d"), views=heard(UP, d=bag("de")))
    s_c = up("c", child("d", is_primary=False), views=heard(UP, d=bag("de")))
    assert not set(u_b.classes) & set(s_c.classes)


def test_7_4_lemma_3_d_holds_no_primary_descendant() -> None:
    neighbors = (child("d"), parent("a"), sibling("c"))
    views = {**heard(UP, d=bag("de")), **heard(DOWN, a=bag("a")), **heard(ACROSS, c=bag("c"))}
    assert vector_for_children(bag("b"), neighbors, views=views, keys=KEYS) == bag("bac")


def test_7_4_at_the_root_d_holds_the_root_alone() -> None:
    assert down("a", child("b"), views=heard(UP, b=bag("bd"))) == bag("a")


def test_7_4_a_system_without_a_machine_of_its_own_is_represented_by_those_below_it() -> None:
    assert up("", child("b"), views=heard(UP, b=bag("bd"))) == bag("bd")


def test_8_a_vector_does_not_grow_with_the_number_of_processors() -> None:
    speeds = [MachineClass(count=1, attributes=(("speed", Interval(bucket_of(n), bucket_of(n))),)) for n in range(4096)]
    assert len(coalesce([Vector(tuple(speeds))], keys=("speed",)).classes) == bucket_of(4095) + 1 == 44
