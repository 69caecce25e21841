"""Machines and the classes in which they were sent."""

from messiahs.recount.facts import Machines, Value, Vector
from messiahs.recount.matching import Difference, Part, difference

SMALL: dict[str, Value] = {"slots": (2, 2), "arch": "x86_64"}
LARGE: dict[str, Value] = {"slots": (8, 8), "arch": "x86_64"}


def machines(count: int, values: dict[str, Value], *lacking: str) -> Machines:
    return Machines(count, tuple(sorted(values.items())), lacking)


def vector(*classes: Machines) -> Vector:
    return frozenset((each, 1) for each in classes)


def test_a_class_holds_machines_whose_attributes_are_all_within_it() -> None:
    wide = machines(2, {"slots": (2, 8), "arch": "x86_64"})
    assert wide.holds(machines(1, SMALL))
    assert wide.holds(wide)
    assert not wide.holds(machines(1, {**SMALL, "slots": (1, 2)}))
    assert not wide.holds(machines(1, {**SMALL, "arch": "riscv64"}))
    assert not wide.holds(machines(1, {**SMALL, "slots": "many"}))
    assert not wide.holds(machines(1, {"slots": (2, 2), "arch": None}))
    assert machines(1, {"arch": None}).holds(machines(1, SMALL))


def test_an_attribute_that_machines_lack_is_lacking_in_their_class() -> None:
    some_have = machines(2, {**SMALL, "gpus": (1, 1)}, "gpus")
    all_have = machines(2, {**SMALL, "gpus": (1, 1)})
    assert some_have.holds(machines(1, SMALL))
    assert some_have.holds(all_have)
    assert not all_have.holds(machines(1, SMALL))
    assert not all_have.holds(some_have)
    # What a class does not say, a policy may have withheld.
    assert machines(1, {"slots": (2, 2)}).holds(all_have)


def test_machines_that_overlap_are_matched_where_that_leaves_none_over() -> None:
    parts = [Part(source="x", vector=vector(machines(1, SMALL))), Part(source="c", vector=vector(machines(3, LARGE)))]
    # The first machine fits both classes, and the others only the first of them.
    sent = vector(machines(3, {"slots": (2, 8)}), machines(1, {"slots": (1, 2)}))
    assert difference(parts, sent) == Difference()


def test_of_machines_that_fit_several_classes_those_are_over_for_which_no_class_has_room() -> None:
    wide, narrow = machines(2, {"slots": (2, 8)}), machines(2, {"slots": (2, 2)})
    parts = [Part(source="c", vector=vector(machines(3, LARGE))), Part(source="d", vector=vector(machines(3, SMALL)))]
    found = difference(parts, vector(wide, narrow))
    assert (found.lost_count, found.extra) == (2, ())
    # The large ones fit one class alone.
    assert {source: count for source, _, count in found.lost} == {"c": 1, "d": 1}


def test_what_is_lost_and_what_is_counted_twice_is_named() -> None:
    own, below = machines(1, SMALL), machines(3, LARGE)
    parts = [Part(source="x", vector=vector(own)), Part(source="c", vector=vector(below))]
    assert difference(parts, vector(own)) == Difference(lost=(("c", below, 3),))
    assert difference(parts, vector(own, machines(5, LARGE))) == Difference(extra=((machines(5, LARGE), 2),))
    changed = machines(1, {**SMALL, "slots": (4, 4)})
    assert difference(parts, vector(changed, below)) == Difference(lost=(("x", own, 1),), extra=((changed, 1),))
    # Two neighbors may report the same class, and both count.
    twin = [*parts, Part(source="d", vector=vector(below))]
    assert difference(twin, vector(own, machines(6, LARGE))) == Difference()
    assert difference(twin, vector(own, below)).lost_count == 3


def test_a_count_that_was_lowered_to_the_largest_one_stands_for_any_number() -> None:
    largest = machines(2**40 - 1, LARGE)
    parts = [Part(source="c", vector=vector(largest)), Part(source="d", vector=vector(machines(7, LARGE)))]
    assert difference(parts, vector(largest)) == Difference()
