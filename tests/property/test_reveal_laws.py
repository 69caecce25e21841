"""Revealed vectors are true: counts, classes, and certain values (MESSIAHS 5, 7.1)."""

from hypothesis import example, given
from hypothesis import strategies as st

from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.core.vectors.columns import chosen
from messiahs.core.vectors.compaction import compact, encoded_size
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY, Vector, coalesce, vector_of
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.language.runtime.reveal_rules import Disclosure, Revealing
from messiahs.wire.descriptions import read_vector, write_vector
from messiahs.wire.v1 import descriptions_pb2
from tests.property.seating import can_hold_all

KEYS = ("arch", "cpu", "speed")
NAMES = ("arch", "cpu", "load", "speed")
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "arch": st.sampled_from(["arm", "sparc", "x86_64"]),
    "cpu": st.sampled_from(["a", "b", 3]),
    "load": st.integers(0, 10_000),
    "speed": st.integers(0, 200),
}
MACHINES = st.lists(st.fixed_dictionaries({}, optional=VALUES).map(lambda said: SDV(sorted_pairs(said))), max_size=30)
NAME_SETS = st.sets(st.sampled_from(NAMES)).map(lambda names: tuple(sorted(names)))
DISCLOSURES = st.builds(
    Disclosure,
    is_nothing=st.sampled_from([False, False, False, True]),
    only=st.none() | NAME_SETS,
    withheld=NAME_SETS,
    least_count=st.integers(0, 12),
)
PREDICATES = tuple(
    map(parse_predicate, ("$speed >= 50", "not ($load < 500)", '$arch eq "arm" or $speed = 7', '$cpu eq "a"'))
)
CHILD_AND_SIBLING = Neighbor(system=SystemId("both"), is_child=True, is_sibling=True)


def _vector(machines: list[SDV]) -> Vector:
    return compact(coalesce(map(vector_of, machines), keys=KEYS), keys=KEYS)


def _less(machine: SDV, disclosure: Disclosure) -> SDV:
    return SDV(tuple(pair for pair in machine.pairs if disclosure.allows(pair[0])))


@given(MACHINES, DISCLOSURES)
@example([SDV(()), SDV((("speed", 3),))], Disclosure(least_count=2))
@example([SDV((("speed", 3),))], Disclosure(only=()))
def test_every_machine_is_in_exactly_one_revealed_class_and_counts_are_exact(
    machines: list[SDV], disclosure: Disclosure
) -> None:
    revealed = disclosure.of(_vector(machines), keys=KEYS)
    if disclosure.is_nothing or len(machines) < disclosure.least_count:
        assert revealed == EMPTY
        return
    assert can_hold_all([_less(machine, disclosure) for machine in machines], revealed)
    assert all(each.count >= disclosure.least_count for each in revealed.classes)
    assert all(disclosure.allows(name) for each in revealed.classes for name, _ in each.attributes)


@given(MACHINES, DISCLOSURES)
def test_a_revealed_vector_is_within_the_limits_of_the_wire(machines: list[SDV], disclosure: Disclosure) -> None:
    revealed = disclosure.of(_vector(machines), keys=KEYS)
    assert revealed == coalesce([revealed], keys=KEYS)
    assert len(revealed.classes) <= 64
    assert encoded_size(revealed) <= 4096
    wire = descriptions_pb2.Vector()
    write_vector(wire, revealed)
    assert read_vector(wire) == revealed


@given(MACHINES, DISCLOSURES)
def test_certain_never_exceeds_the_truth_and_possible_never_omits_a_machine(
    machines: list[SDV], disclosure: Disclosure
) -> None:
    revealed = disclosure.of(_vector(machines), keys=KEYS)
    judged = IndexedVector(revealed)
    for predicate in PREDICATES:
        holds = sum(predicate.holds(machine.description()) for machine in machines)
        surely, could = predicate.over(judged)
        assert sum(each.count for each in chosen(revealed.classes, surely & judged.every_class)) <= holds
        if revealed != EMPTY:
            assert sum(each.count for each in chosen(revealed.classes, could & judged.every_class)) >= holds


@given(MACHINES, DISCLOSURES, DISCLOSURES)
def test_a_neighbor_with_two_relations_receives_no_attribute_that_one_of_them_withholds(
    machines: list[SDV], one: Disclosure, other: Disclosure
) -> None:
    revealing = Revealing(by_relation=((Relation.CHILD, one), (Relation.SIBLING, other)))
    revealed = revealing.to(CHILD_AND_SIBLING).of(_vector(machines), keys=KEYS)
    names = {name for each in revealed.classes for name, _ in each.attributes}
    assert all(one.allows(name) and other.allows(name) for name in names)
    assert all(each.count >= max(one.least_count, other.least_count) for each in revealed.classes)
    if one.is_nothing or other.is_nothing:
        assert revealed == EMPTY
