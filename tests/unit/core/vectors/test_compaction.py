"""Compaction: where classes are split, where splitting stops, and that a bound in bytes is kept."""

from collections.abc import Mapping
from itertools import pairwise

from messiahs.core.model.attributes import EXTENSION_LIMIT, KEY_ATTRIBUTES, MACHINE_ATTRIBUTES
from messiahs.core.vectors.compaction import compact, encoded_size
from messiahs.core.vectors.vectors import EMPTY, VARIOUS, ClassValue, Interval, MachineClass, Vector, coalesce

KEYS = ("os", "speed")


def kind(count: int = 1, **said: ClassValue | int) -> MachineClass:
    return described(said, count=count)


def described(said: Mapping[str, ClassValue | int], *, count: int = 1) -> MachineClass:
    values = ((name, Interval(value, value) if isinstance(value, int) else value) for name, value in said.items())
    return MachineClass(count=count, attributes=tuple(sorted(values)))


def squeezed(*classes: MachineClass, to: int, keys: tuple[str, ...] = KEYS) -> tuple[MachineClass, ...]:
    return compact(Vector(classes), keys=keys, class_limit=to).classes


def test_the_empty_vector_stays_empty() -> None:
    assert compact(EMPTY, keys=KEYS) == EMPTY


def test_a_vector_that_fits_is_only_coalesced() -> None:
    vector = Vector((kind(os="SunOS", speed=3), kind(os="Linux", speed=3), kind(2, os="Linux", speed=3)))
    assert compact(vector, keys=KEYS) == coalesce([vector], keys=KEYS)


def test_with_one_class_everything_is_in_its_hull() -> None:
    assert squeezed(kind(os="Linux", speed=3), kind(2, os="SunOS", speed=5), to=1) == (
        kind(3, os=VARIOUS, speed=Interval(3, 5)),
    )


def test_the_first_split_is_where_most_machines_lie_furthest_above_the_low_end() -> None:
    # 10 machines at a distance of 8 weigh more than 1 machine at a distance of 30.
    assert squeezed(kind(speed=2), kind(10, speed=10), kind(speed=32), to=2) == (
        kind(speed=2),
        kind(11, speed=Interval(10, 32)),
    )


def test_a_split_counts_what_it_gains_in_every_key() -> None:
    # Speed alone would part 5 from 0 and 1; but memory differs where speed is 1 or more, and both count.
    classes = (kind(speed=0, mem=0), kind(speed=1, mem=9), kind(speed=5, mem=9))
    assert squeezed(*classes, to=2, keys=("mem", "speed")) == (
        kind(speed=0, mem=0),
        kind(2, speed=Interval(1, 5), mem=9),
    )


def test_a_string_that_differs_counts_as_eight_buckets_for_each_machine() -> None:
    linux, sun = kind(3, os="Linux", speed=0), kind(3, os="SunOS", speed=0)

    # To part the strings gains 8 * 9; to part the fast ones gains 8 * 3 and 3 times their distance.
    def fast(distance: int) -> MachineClass:
        return kind(3, os="SunOS", speed=distance)

    assert squeezed(linux, sun, fast(15), to=2) == (linux, kind(6, os="SunOS", speed=Interval(0, 15)))
    assert squeezed(linux, sun, fast(17), to=2) == (fast(17), kind(6, os=VARIOUS, speed=0))


def test_the_string_that_most_machines_say_is_parted_first() -> None:
    classes = (kind(1, os="AIX"), kind(9, os="Linux"), kind(1, os="SunOS"))
    assert squeezed(*classes, to=2) == (kind(9, os="Linux"), kind(2, os=VARIOUS))


def test_machines_that_lack_a_key_are_parted_from_those_that_say_it() -> None:
    assert squeezed(kind(2, speed=3), kind(speed=4), kind(4), to=2) == (kind(4), kind(3, speed=Interval(3, 4)))


def test_equal_splits_are_taken_in_order_of_attribute_then_of_value() -> None:
    corners = [kind(a=a, b=b) for a in (0, 3) for b in (0, 3)]
    assert squeezed(*corners, to=2, keys=("b", "a")) == (
        kind(2, a=0, b=Interval(0, 3)),
        kind(2, a=3, b=Interval(0, 3)),
    )
    # Parting at 2 gains 2 * 2, parting at 4 gains 1 * 4.
    assert squeezed(kind(a=0), kind(a=2), kind(a=4), to=2, keys=("a",)) == (kind(a=0), kind(2, a=Interval(2, 4)))


def test_classes_that_differ_only_at_their_high_end_are_not_split_once_there_are_too_many() -> None:
    classes = [kind(speed=Interval(1, high)) for high in range(1, 4)]
    assert squeezed(*classes, to=2) == (kind(3, speed=Interval(1, 3)),)


def test_attributes_that_are_no_keys_never_split_and_keep_their_hull() -> None:
    classes = [kind(os="Linux", speed=speed, load=load) for speed in (1, 2) for load in (5, 60)]
    assert squeezed(*classes, to=1) == (kind(4, os="Linux", speed=Interval(1, 2), load=Interval(5, 60)),)
    assert len(squeezed(*classes, kind(os="Linux", speed=3), to=3)) == 3


def test_at_most_64_classes_leave_a_module() -> None:
    vector = Vector(tuple(kind(speed=speed) for speed in range(65)))
    compacted = compact(vector, keys=KEYS)
    assert len(compacted.classes) == 64
    assert compacted.machines == 65


def test_the_byte_limit_stops_the_splitting_before_the_class_limit_does() -> None:
    vector = Vector(tuple(kind(os=f"{number:064}", speed=number) for number in range(64)))
    compacted = compact(vector, keys=KEYS)
    assert encoded_size(vector) > 4096 >= encoded_size(compacted)
    assert 20 < len(compacted.classes) < 64
    assert compacted.machines == 64


def test_no_more_extensions_leave_than_a_vector_may_have() -> None:
    extensions = {f"e{number}": number for number in range(EXTENSION_LIMIT)}
    vector = Vector((described({"speed": 1} | extensions, count=5), kind(2, speed=2, rare=1), kind(1, speed=3, key=1)))
    compacted = compact(vector, keys=("key", "speed"))
    names = {name for machine_class in compacted.classes for name, _ in machine_class.attributes}
    assert names == {"speed", "key"} | {f"e{number}" for number in range(EXTENSION_LIMIT - 1)}
    assert compacted.machines == 8


def test_an_attribute_that_older_modules_take_for_an_extension_gives_way_to_those_of_the_federation() -> None:
    extensions = {f"e{number}": number for number in range(EXTENSION_LIMIT)}
    fitting = dict(list(extensions.items())[1:])
    for given, is_kept in ((extensions, False), (fitting, True)):
        compacted = compact(Vector((described({"isolation": "sandbox", **given}, count=5),)), keys=KEYS)
        (machine_class,) = compacted.classes
        names = {name for name, _ in machine_class.attributes}
        assert names == {*given, *(("isolation",) if is_kept else ())}


def test_attributes_for_which_a_single_class_has_no_room_are_left_out() -> None:
    names = {f"{number:064}": number for number in range(EXTENSION_LIMIT)}
    compacted = compact(Vector((described({"speed": 1, "load": 2} | names, count=3),)), keys=KEYS, byte_limit=200)
    (machine_class,) = compacted.classes
    assert encoded_size(compacted) <= 200
    assert machine_class.count == 3
    assert [name for name, _ in machine_class.attributes] == [f"{0:064}", "load", "speed"]


def test_many_thousands_of_different_classes_become_64_that_tell_the_keys_apart() -> None:
    vector = Vector(
        tuple(
            kind(
                1 + number % 5, arch="xy"[number % 2], avail_mem=number % 131, speed=number % 37, os=f"os{number % 90}"
            )
            for number in range(20_000)
        )
    )
    compacted = compact(vector, keys=KEY_ATTRIBUTES)
    assert compacted.machines == vector.machines
    assert 32 <= len(compacted.classes) <= 64
    assert encoded_size(compacted) <= 4096
    assert compact(Vector(vector.classes[::-1]), keys=KEY_ATTRIBUTES) == compacted
    assert len({dict(machine_class.attributes)["avail_mem"] for machine_class in compacted.classes}) > 8


def test_every_attribute_of_the_catalogue_leaves_room_for_many_classes() -> None:
    classes = [described(dict.fromkeys(MACHINE_ATTRIBUTES, number), count=100) for number in range(200)]
    assert len(compact(Vector(tuple(classes)), keys=KEY_ATTRIBUTES).classes) > 40


def test_each_further_class_and_byte_allowed_loses_no_class() -> None:
    vector = Vector(tuple(kind(os=f"os{number % 7}", speed=number % 50) for number in range(300)))
    sizes = [len(compact(vector, keys=KEYS, byte_limit=limit).classes) for limit in range(200, 1200, 100)]
    assert all(one <= other for one, other in pairwise(sizes))
    assert sizes[0] < sizes[-1]
