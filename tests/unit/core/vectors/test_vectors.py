"""Vectors: how a machine enters one, and what the sum makes of classes that are alike."""

import pytest

from messiahs.core.model.descriptions import SDV
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

KEYS = ("os", "speed")


def kind(count: int = 1, *, lack: tuple[str, ...] = (), **said: ClassValue) -> MachineClass:
    return MachineClass(count=count, attributes=tuple(sorted(said.items())), some_lack=lack)


def test_a_machine_enters_as_the_buckets_of_its_numbers() -> None:
    vector = vector_of(SDV((("os", "Linux"), ("speed", 9))))
    assert vector == Vector((kind(os="Linux", speed=Interval(8, 8)),))
    assert vector.machines == 1


def test_the_empty_vector_stands_for_no_machine() -> None:
    assert EMPTY.machines == 0
    assert coalesce([]) == EMPTY


def test_classes_that_are_equal_in_all_keys_become_one() -> None:
    one = Vector((kind(2, os="Linux", speed=Interval(3, 3), load=Interval(1, 2)),))
    other = Vector((kind(5, os="Linux", speed=Interval(3, 3), load=Interval(7, 9)),))
    assert coalesce([one, other], keys=KEYS) == Vector(
        (kind(7, os="Linux", speed=Interval(3, 3), load=Interval(1, 9)),)
    )


@pytest.mark.parametrize(
    "different",
    [
        kind(os="SunOS", speed=Interval(3, 3)),
        kind(os="Linux", speed=Interval(3, 4)),
        kind(os=VARIOUS, speed=Interval(3, 3)),
        kind(os="Linux"),
        kind(os="Linux", speed=Interval(3, 3), lack=("os",)),
    ],
)
def test_classes_that_differ_in_a_key_stay_apart(different: MachineClass) -> None:
    vector = Vector((kind(os="Linux", speed=Interval(3, 3)),))
    assert len(coalesce([vector, Vector((different,))], keys=KEYS).classes) == 2


def test_with_no_keys_everything_becomes_one_class() -> None:
    vector = Vector((kind(os="Linux"), kind(os="SunOS"), kind(3, speed=Interval(1, 1))))
    assert coalesce([vector], keys=()) == Vector((kind(5, os=VARIOUS, speed=Interval(1, 1), lack=("os", "speed")),))


def test_the_order_of_classes_and_vectors_does_not_matter() -> None:
    classes = (kind(os="Linux"), kind(os=VARIOUS), kind(os=Interval(1, 1)), kind(2, speed=Interval(1, 1)))
    vector = Vector(classes)
    assert coalesce([vector], keys=KEYS) == coalesce([Vector(classes[2:]), Vector(classes[1::-1])], keys=KEYS)


def test_classes_are_sorted_alike_whether_their_values_compare_or_not() -> None:
    comparable = [kind(os=Interval(low, 9), speed=Interval(0, 0)) for low in (3, -2, 5)]
    expected = coalesce([Vector((comparable[1], comparable[0], comparable[2]))], keys=KEYS).classes
    mixed = coalesce([Vector((*comparable, kind(os="Linux", speed=Interval(0, 0))))], keys=KEYS).classes
    assert mixed[:3] == expected


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        (Interval(1, 2), Interval(4, 5), Interval(1, 5)),
        (Interval(1, 9), Interval(4, 5), Interval(1, 9)),
        ("Linux", "Linux", "Linux"),
        ("Linux", "SunOS", VARIOUS),
        ("Linux", VARIOUS, VARIOUS),
        (VARIOUS, VARIOUS, VARIOUS),
        ("Linux", Interval(1, 1), VARIOUS),
        (Interval(1, 1), VARIOUS, VARIOUS),
    ],
)
def test_the_hull_of_two_values_holds_both(one: ClassValue, other: ClassValue, joined: ClassValue) -> None:
    assert hull_of((kind(os=one), kind(os=other))) == kind(2, os=joined)
    assert hull_of((kind(os=other), kind(os=one))) == kind(2, os=joined)


def test_what_only_one_of_two_classes_says_is_lacking_for_some() -> None:
    assert hull_of((kind(os="Linux"), kind(2))) == kind(3, os="Linux", lack=("os",))


def test_what_some_of_one_class_lack_some_of_the_hull_lack() -> None:
    assert hull_of((kind(os="Linux", lack=("os",)), kind(os="Linux"))) == kind(2, os="Linux", lack=("os",))


def test_the_hull_of_one_class_is_that_class() -> None:
    assert hull_of([kind(4, os="Linux")]) == kind(4, os="Linux")


def test_the_hull_of_a_thousand_classes_is_the_hull_of_all_of_them() -> None:
    classes = [kind(os="Linux", speed=Interval(number, number)) for number in range(1000)]
    assert hull_of(classes) == kind(1000, os="Linux", speed=Interval(0, 999))


def test_the_place_of_a_class_tells_its_keys_and_which_of_them_some_lack() -> None:
    same = [kind(1, os="Linux", load=Interval(1, 1)), kind(2, os="Linux", lack=("load",), load=Interval(2, 2))]
    one, other = places_of(same, ("os",))
    assert one == other
    assert len(set(places_of(same, ("load",)))) == 2
