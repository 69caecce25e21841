"""What the classes of a vector say of one attribute, in order, so that one look judges all of them."""

import pytest

from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.columns import Judged, chosen
from messiahs.core.vectors.indexed import IndexedVector, Indexes
from messiahs.core.vectors.vectors import EMPTY, VARIOUS, ClassValue, Interval, MachineClass, Vector

NONE, FIRST, SECOND, BOTH = 0, 0b01, 0b10, 0b11


def _vector(*values: ClassValue | None, some_lack: tuple[str, ...] = ()) -> IndexedVector:
    """Return a vector of one class for each value of `a`; None is not said."""
    said: list[tuple[tuple[str, ClassValue], ...]] = [(("a", value),) if value is not None else () for value in values]
    return IndexedVector(Vector(tuple(MachineClass(count=1, attributes=pairs, some_lack=some_lack) for pairs in said)))


def _between(lowest: int, highest: int) -> Interval:
    return Interval(bucket_of(lowest), bucket_of(highest))


@pytest.mark.parametrize(
    ("value", "at_least"),
    [
        (2, (BOTH, BOTH)),
        (3, (SECOND, BOTH)),
        (4, (SECOND, BOTH)),
        (5, (SECOND, SECOND)),
        (6, (NONE, SECOND)),
        (7, (NONE, SECOND)),
        (8, (NONE, NONE)),
    ],
)
def test_a_number_is_compared_with_the_ends_of_all_classes(value: int, at_least: Judged) -> None:
    assert _vector(_between(2, 4), _between(5, 7)).attribute_columns("a")[0].numbers.at_least(value) == at_least


def test_two_attributes_of_all_classes_are_compared_by_their_ends() -> None:
    classes = [
        MachineClass(count=1, attributes=(("a", _between(*a)), ("b", _between(*b))))
        for a, b in (((4, 6), (2, 4)), ((2, 4), (4, 6)))
    ]
    vector = IndexedVector(Vector(tuple(classes)))
    a, b = vector.attribute_columns("a")[0].numbers, vector.attribute_columns("b")[0].numbers
    assert (a.at_least_that_of(b), a.above_that_of(b)) == ((FIRST, BOTH), (NONE, FIRST))


def test_strings_are_in_the_order_of_their_code_points() -> None:
    strings = _vector("b", "B").attribute_columns("a")[0].strings
    assert strings.at_least("b") == (FIRST, FIRST)
    assert strings.at_least("A") == (BOTH, BOTH)


@pytest.mark.parametrize("value", [None, VARIOUS])
def test_what_is_not_said_or_differs_is_unclear_in_both_types(value: ClassValue | None) -> None:
    said = _vector("b", value).attribute_columns("a")[0]
    assert (said.strings.known, said.strings.unclear, said.strings.possible) == (FIRST, SECOND, BOTH)
    assert (said.numbers.known, said.numbers.unclear, said.numbers.possible) == (NONE, SECOND, SECOND)
    assert said.numbers.at_least(-(2**63)) == (NONE, SECOND)


def test_what_some_machines_lack_is_unclear() -> None:
    numbers = _vector(_between(2, 4), some_lack=("a",)).attribute_columns("a")[0].numbers
    assert (numbers.known, numbers.unclear) == (NONE, FIRST)


def test_classes_with_different_attributes_are_distinguished() -> None:
    both = MachineClass(count=1, attributes=(("a", _between(1, 1)), ("b", _between(2, 2))))
    only_b = MachineClass(count=1, attributes=(("b", _between(3, 3)),))
    vector = IndexedVector(Vector((both, only_b, both)))
    assert vector.attribute_columns("b")[0].ends == ((2, 2), (3, 3), (2, 2))
    assert vector.attribute_columns("a")[0].ends == ((1, 1), None, (1, 1))


def test_an_attribute_is_put_in_order_once_and_of_what_nobody_says_not_much_is_kept() -> None:
    vector = _vector(_between(2, 4))
    for asked in (vector, IndexedVector(EMPTY)):
        for number in range(100):
            asked.attribute_columns(f"unknown{number}")
        assert len(asked._columns) < 40
    assert vector.attribute_columns("a")[0] is vector.attribute_columns("a")[0]
    assert vector == _vector(_between(2, 4))


def test_what_is_chosen_stands_at_the_places_of_a_set() -> None:
    assert list(chosen(range(5), 0b10010)) == [1, 4]
    assert list(chosen(range(5), 0)) == []


def test_only_the_latest_verdicts_are_kept() -> None:
    vector = _vector(_between(2, 4))
    for number in range(1000):
        vector.remember(number, (NONE, FIRST))
        assert vector.verdict(number) == (NONE, FIRST)
    assert vector.verdict(0) is None
    assert vector == _vector(_between(2, 4))


def test_the_free_slots_of_classes_are_what_their_machines_have_at_least() -> None:
    machines = [(3, _between(2, 4)), (5, _between(0, 9)), (7, None)]
    classes = [
        MachineClass(count=count, attributes=(("free_slots", slots),) if slots else ()) for count, slots in machines
    ]
    vector = IndexedVector(Vector(tuple(classes)))
    assert [vector.free_slots(chosen) for chosen in (0b001, 0b010, 0b100, 0b111, 0b101)] == [6, 5, 7, 18, 13]


def test_slots_of_willing_machines_weigh_more_and_unstated_willingness_is_full() -> None:
    stated = [(3, 2, _between(-9, 0)), (5, 1, _between(40, 90)), (7, 1, None), (2, 1, _between(10**9, 10**9))]
    classes = [
        MachineClass(
            count=count,
            attributes=(("free_slots", _between(slots, slots)), *((("willingness", willing),) if willing else ())),
        )
        for count, slots, willing in stated
    ]
    vector = IndexedVector(Vector(tuple(classes)))
    assert [vector.willing_slots(chosen) for chosen in (0b001, 0b010, 0b100, 0b111, 0b1000)] == [6, 205, 707, 918, 202]


def test_what_was_found_out_is_kept_while_a_vector_is_the_latest_of_its_owner() -> None:
    indexes, one, other = Indexes(), Vector(), Vector((MachineClass(count=1, attributes=()),))
    indexed = indexes.of("here", one)
    assert indexes.of("here", one) is indexed
    assert indexes.of("there", one) is not indexed
    assert indexes.of("here", other).vector is other
    assert indexes.of("here", one) is not indexed
    indexes.drop("here")
    indexes.drop("nowhere")
    assert len(indexes._of) == 1
