"""The algebra of update vectors (MESSIAHS 7.1): the sum of multisets, and the guarantees of compaction."""

from collections.abc import Iterator, Sequence
from functools import reduce
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.attributes import EXTENSION_LIMIT, MACHINE_ATTRIBUTES, Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.vectors.compaction import compact, encoded_size
from messiahs.core.vectors.vectors import (
    EMPTY,
    VARIOUS,
    ClassValue,
    Interval,
    MachineClass,
    Vector,
    coalesce,
    hull_of,
    places_of,
    vector_of,
)
from messiahs.wire.descriptions import read_vector, write_vector
from messiahs.wire.v1 import descriptions_pb2
from tests.property.budget import examples
from tests.property.seating import can_hold_all

KEYS = ("arch", "speed")
NAMES = ("arch", "load", "nproc", "speed", "x")
VALUES: st.SearchStrategy[ClassValue] = st.one_of(
    st.tuples(st.integers(-12, 12), st.integers(0, 5)).map(lambda pair: Interval(pair[0], sum(pair))),
    st.sampled_from(["linux", "sparc", "é" * 20]),
    st.just(VARIOUS),
)


@st.composite
def classes(draw: st.DrawFn) -> MachineClass:
    said = draw(st.dictionaries(st.sampled_from(NAMES), VALUES))
    lacking = draw(st.sets(st.sampled_from(sorted(said)))) if said else ()
    return MachineClass(
        count=draw(st.integers(1, 2**30)), attributes=tuple(sorted(said.items())), some_lack=tuple(sorted(lacking))
    )


VECTORS = st.lists(classes(), max_size=6).map(lambda drawn: Vector(tuple(drawn)))
CLASS_LISTS = st.lists(classes(), min_size=1, max_size=40)
MACHINE_VALUES: dict[str, st.SearchStrategy[Value]] = {
    "arch": st.sampled_from(["arm", "sparc", "x86_64"]),
    "speed": st.integers(-(2**63), 2**63 - 1),
    "nproc": st.integers(0, 200),
    "x": st.sampled_from(["a", "b", 3]),
}
MACHINES = st.lists(
    st.fixed_dictionaries({}, optional=MACHINE_VALUES).map(lambda said: SDV(sorted_pairs(said))), max_size=40
)


def _said_of(machine_class: MachineClass, keys: tuple[str, ...]) -> tuple[tuple[ClassValue | None, bool], ...]:
    said = dict(machine_class.attributes)
    return tuple((said.get(key), key in machine_class.some_lack) for key in keys)


@given(VECTORS, VECTORS)
def test_the_sum_is_commutative(one: Vector, other: Vector) -> None:
    assert coalesce([one, other], keys=KEYS) == coalesce([other, one], keys=KEYS)


@given(VECTORS, VECTORS, VECTORS)
def test_the_sum_is_associative(one: Vector, two: Vector, three: Vector) -> None:
    left = coalesce([coalesce([one, two], keys=KEYS), three], keys=KEYS)
    right = coalesce([one, coalesce([two, three], keys=KEYS)], keys=KEYS)
    assert left == right == coalesce([one, two, three], keys=KEYS)


@given(VECTORS)
def test_the_empty_vector_is_the_unit_of_the_sum(vector: Vector) -> None:
    coalesced = coalesce([vector], keys=KEYS)
    assert coalesce([coalesced, EMPTY], keys=KEYS) == coalesced == coalesce([EMPTY, coalesced], keys=KEYS)


@given(VECTORS, VECTORS)
def test_the_sum_counts_every_machine_of_both(one: Vector, other: Vector) -> None:
    assert coalesce([one, other], keys=KEYS).machines == one.machines + other.machines


@given(VECTORS)
def test_two_classes_of_a_sum_differ_in_a_key(vector: Vector) -> None:
    said = [_said_of(machine_class, KEYS) for machine_class in coalesce([vector], keys=KEYS).classes]
    assert len(set(said)) == len(said)


@given(classes(), classes(), st.lists(st.sampled_from(NAMES), unique=True))
def test_places_are_equal_exactly_if_the_keys_are(one: MachineClass, other: MachineClass, keys: list[str]) -> None:
    place, other_place = places_of((one, other), tuple(keys))
    assert (place == other_place) == (_said_of(one, tuple(keys)) == _said_of(other, tuple(keys)))


@given(CLASS_LISTS)
def test_the_hull_of_many_equals_the_hull_of_successive_pairs(many: list[MachineClass]) -> None:
    assert hull_of(many) == reduce(lambda one, other: hull_of((one, other)), many) == hull_of(many[::-1])


@given(MACHINES)
def test_every_machine_is_inside_a_class_of_the_sum_that_counts_it(machines: list[SDV]) -> None:
    assert can_hold_all(machines, coalesce(map(vector_of, machines), keys=KEYS))


@given(MACHINES, st.integers(1, 8), st.integers(120, 400))
def test_every_machine_is_inside_a_class_after_compaction(machines: list[SDV], limit: int, byte_limit: int) -> None:
    vector = coalesce(map(vector_of, machines), keys=KEYS)
    compacted = compact(vector, keys=KEYS, class_limit=limit, byte_limit=byte_limit)
    assert len(compacted.classes) <= limit
    assert encoded_size(compacted) <= byte_limit
    assert can_hold_all(machines, compacted)


@given(CLASS_LISTS, st.randoms(use_true_random=False), st.integers(1, 8), st.integers(120, 700))
def test_compaction_does_not_depend_on_the_order_of_classes(
    many: list[MachineClass], random: Random, limit: int, byte_limit: int
) -> None:
    shuffled = list(many)
    random.shuffle(shuffled)
    one = compact(Vector(tuple(many)), keys=KEYS, class_limit=limit, byte_limit=byte_limit)
    other = compact(Vector(tuple(shuffled)), keys=KEYS[::-1], class_limit=limit, byte_limit=byte_limit)
    assert one == other


@given(CLASS_LISTS, st.integers(1, 8))
def test_compaction_counts_exactly_and_is_idempotent(many: list[MachineClass], limit: int) -> None:
    vector = Vector(tuple(many))
    compacted = compact(vector, keys=KEYS, class_limit=limit)
    assert compacted.machines == vector.machines
    assert compact(compacted, keys=KEYS, class_limit=limit) == compacted


PLAIN_CLASSES = st.builds(
    lambda count, arch, os, speed, load: MachineClass(
        count=count,
        attributes=(("arch", arch), ("load", Interval(load, load)), ("os", os), ("speed", Interval(speed, speed))),
    ),
    count=st.integers(1, 9),
    arch=st.sampled_from("abc"),
    os=st.sampled_from("abc"),
    speed=st.integers(-9, 30),
    load=st.integers(0, 30),
)


def _loss(groups: Sequence[MachineClass]) -> int:
    """Return the loss of some classes, less the sum of the low ends of all machines, which is always the same."""
    loss = 0
    for group in groups:
        for _, value in group.attributes:
            loss += group.count * (8 * (value is VARIOUS) - (value.low if isinstance(value, Interval) else 0))
    return loss


def _is_below(value: ClassValue, other: ClassValue) -> bool:
    if isinstance(value, Interval) and isinstance(other, Interval):
        return value.low < other.low
    return value == other


def _divisions(many: list[MachineClass]) -> Iterator[list[MachineClass]]:
    """Return every way to divide classes by a value of a key."""
    yield [hull_of(many)]
    for place in range(4):
        for _, value in dict.fromkeys(machine_class.attributes[place] for machine_class in many):
            inside = [_is_below(machine_class.attributes[place][1], value) for machine_class in many]
            if any(inside) and not all(inside):
                one = [machine_class for machine_class, is_in in zip(many, inside, strict=True) if is_in]
                other_ones = [machine_class for machine_class, is_in in zip(many, inside, strict=True) if not is_in]
                yield [hull_of(one), hull_of(other_ones)]


@given(st.lists(PLAIN_CLASSES, min_size=3, max_size=12))
def test_no_other_division_into_two_classes_loses_less(many: list[MachineClass]) -> None:
    keys = ("arch", "load", "os", "speed")
    vector = coalesce([Vector(tuple(many))], keys=keys)
    if len(vector.classes) > 2:
        chosen = compact(vector, keys=keys, class_limit=2)
        assert _loss(chosen.classes) == min(map(_loss, _divisions(many)))


@given(st.integers(0, 2**32), st.integers(60, 300))
@examples(10)
def test_large_vectors_of_long_strings_keep_both_limits(seed: int, size: int) -> None:
    many = [
        MachineClass(
            count=1 + (seed + number) % 1000,
            attributes=(
                ("arch", f"{(seed >> number % 16) % 97:064}"),
                (f"e{(seed + number) % 13:060}", Interval(0, number)),
                ("speed", Interval(seed * number % 101, 200)),
            ),
        )
        for number in range(size)
    ]
    compacted = compact(Vector(tuple(many)), keys=KEYS)
    assert len(compacted.classes) <= 64
    assert encoded_size(compacted) <= 4096
    assert compacted.machines == sum(machine_class.count for machine_class in many)
    names = {name for machine_class in compacted.classes for name, _ in machine_class.attributes}
    assert len(names - MACHINE_ATTRIBUTES.keys()) <= EXTENSION_LIMIT


WIRE_VALUES: st.SearchStrategy[ClassValue] = st.one_of(
    st.tuples(st.integers(-248, 247), st.integers(-248, 247)).map(lambda pair: Interval(min(pair), max(pair))),
    st.text("aé", max_size=32),
    st.just(VARIOUS),
)


@st.composite
def wire_classes(draw: st.DrawFn) -> MachineClass:
    names = st.sampled_from([*sorted(MACHINE_ATTRIBUTES), *(f"e{number}" * 20 for number in range(EXTENSION_LIMIT))])
    said = draw(st.dictionaries(names, WIRE_VALUES, max_size=24))
    lacking = draw(st.sets(st.sampled_from(sorted(said)))) if said else ()
    return MachineClass(
        count=draw(st.integers(1, 2**30)), attributes=tuple(sorted(said.items())), some_lack=tuple(sorted(lacking))
    )


@given(st.lists(wire_classes(), max_size=20))
def test_the_size_of_a_vector_is_never_estimated_below_what_the_wire_takes(many: list[MachineClass]) -> None:
    wire = descriptions_pb2.Vector()
    vector = compact(Vector(tuple(many)), keys=("arch", "e0" * 20, "speed"), class_limit=16)
    write_vector(wire, vector)
    assert len(wire.SerializeToString()) <= encoded_size(vector)
    assert read_vector(wire) == vector
