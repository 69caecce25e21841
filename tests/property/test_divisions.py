"""One compaction for many children: without some of them, it keeps the guarantees of a compacted vector."""

from collections.abc import Mapping, Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND
from messiahs.core.vectors.compaction import compact, encoded_size
from messiahs.core.vectors.division import Division
from messiahs.core.vectors.split_tree import Memory
from messiahs.core.vectors.vectors import Vector, coalesce, vector_of
from tests.property.budget import examples
from tests.property.seating import can_hold_all

KEYS = ("arch", "site", "speed")
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "arch": st.sampled_from(["arm", "sparc", "x86_64"]),
    "speed": st.integers(-9, 400),
    "load": st.integers(0, 300),
    "site": st.sampled_from(["a", "b", 3]),
}
MACHINES = st.fixed_dictionaries({}, optional=VALUES).map(lambda said: SDV(sorted_pairs(said)))
BROODS = st.lists(st.lists(MACHINES, max_size=4), max_size=8)


def _name(number: int) -> SystemId:
    return SystemId(f"child-{number}")


def _vectors(brood: Sequence[Sequence[SDV]]) -> dict[SystemId, Vector]:
    return {_name(number): coalesce(map(vector_of, machines), keys=KEYS) for number, machines in enumerate(brood)}


def _divided(
    vectors: Mapping[SystemId, Vector],
    *others: Vector,
    keys: tuple[str, ...] = KEYS,
    memory: Memory | None = None,
) -> Division:
    division = Division(others, vectors, keys=keys, memory=memory)
    division.work()
    return division


def _many(seed: int, children: int) -> list[list[SDV]]:
    random = Random(seed)
    return [
        [
            SDV(
                sorted_pairs(
                    {
                        "arch": random.choice(("arm", "sparc")),
                        "speed": random.randrange(1 << random.randrange(16)),
                        "load": random.randrange(100),
                        f"e{random.randrange(12)}": f"{random.randrange(40):060}",
                    }
                )
            )
            for _ in range(random.randrange(3))
        ]
        for _ in range(children)
    ]


@given(st.lists(MACHINES, max_size=3), BROODS, st.sets(st.integers(0, 9)))
def test_a_sum_that_fits_has_no_loss(own: list[SDV], brood: list[list[SDV]], numbers: set[int]) -> None:
    vectors, fixed = _vectors(brood), coalesce(map(vector_of, own), keys=KEYS)
    kept = frozenset(map(_name, numbers))
    others = (vector for child, vector in vectors.items() if child not in kept)
    assert _divided(vectors, fixed).without(kept) == coalesce((fixed, *others), keys=KEYS)


@given(st.integers(0, 2**32), st.integers(60, 120), st.sets(st.integers(0, 80), max_size=40))
@examples(25)
def test_without_some_children_every_machine_of_the_others_is_in_a_class_that_counts_it(
    seed: int, children: int, numbers: set[int]
) -> None:
    brood, kept = _many(seed, children), frozenset(map(_name, numbers))
    keys = ("arch", "speed")
    left = _divided(_vectors(brood), keys=keys).without(kept)
    machines = [machine for number, some in enumerate(brood) if number not in numbers for machine in some]
    assert len(left.classes) <= 64
    assert encoded_size(left) <= 4096
    assert left == coalesce([left], keys=keys)
    # Extensions without room are left out of all classes, so they are not checked.
    names = {name for each in left.classes for name, _ in each.attributes}
    assert can_hold_all([_only(machine, names) for machine in machines], left)


@given(st.integers(0, 2**32), st.integers(60, 120), st.sets(st.integers(0, 80), max_size=40))
@examples(25)
def test_a_division_does_not_depend_on_the_order_of_children(seed: int, children: int, numbers: set[int]) -> None:
    vectors, kept = _vectors(_many(seed, children)), frozenset(map(_name, numbers))
    names = list(vectors)
    Random(seed).shuffle(names)
    one = _divided(vectors)
    other = _divided({name: vectors[name] for name in names}, keys=KEYS[::-1])
    assert one.vector == other.vector == compact(coalesce(vectors.values(), keys=KEYS), keys=KEYS)
    assert one.without(kept) == other.without(kept)


@given(st.integers(0, 2**32), st.integers(70, 120), st.lists(st.integers(0, 200), min_size=1, max_size=5))
@examples(25)
def test_a_division_with_a_memory_equals_one_without(seed: int, children: int, changes: list[int]) -> None:
    brood, memory = _many(seed, children), Memory()
    for change in changes:
        # Some children send other values, and one comes or goes.
        brood = [
            _many(seed + change, children)[number] if number % 97 == change % 97 else machines
            for number, machines in enumerate(brood)
        ][change % 3 :]
        vectors = _vectors(brood)
        remembering = _divided(vectors, memory=memory)
        forgetful = _divided(vectors)
        assert remembering.vector == forgetful.vector
        kept = frozenset(map(_name, range(change % 20)))
        assert remembering.without(kept) == forgetful.without(kept)


@given(st.integers(0, 2**32), st.integers(1, 120), st.integers(MILLISECOND // 2, 10 * MILLISECOND))
@examples(25)
def test_a_division_in_many_steps_is_the_same_while_others_use_its_memory(
    seed: int, children: int, enough_ns: int
) -> None:
    vectors, memory = _vectors(_many(seed, children)), Memory()
    in_steps = Division((), vectors, keys=KEYS, memory=memory)
    until_ns = enough_ns
    while not in_steps.work(until_ns=until_ns):
        until_ns += enough_ns
        # A newer sum begins before this one is done.
        _divided(_vectors(_many(seed + 1, children)), memory=memory)
    at_once = _divided(vectors)
    assert until_ns - enough_ns <= at_once.work_ns < until_ns
    assert in_steps.work(until_ns=at_once.work_ns + 1)
    assert not in_steps.work(until_ns=at_once.work_ns)
    assert in_steps.vector == at_once.vector
    assert in_steps.work_ns == at_once.work_ns
    assert in_steps.without(frozenset({_name(0)})) == at_once.without(frozenset({_name(0)}))


def _only(machine: SDV, names: set[str]) -> SDV:
    return SDV(tuple(pair for pair in machine.pairs if pair[0] in names))
