"""Update vectors: multisets of machine classes, and their sum (MESSIAHS 7.1).

A class stands for `count` machines. Each attribute of a class is a joint interval of buckets, one string, or `VARIOUS`.
Every machine lies inside its class, counts are exact, and a vector never holds the name or address of a machine.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, cast

from messiahs.core.model.attributes import KEY_ATTRIBUTES, MOST_MACHINES
from messiahs.core.model.descriptions import SDV
from messiahs.core.vectors.buckets import bucket_of

_CACHED_INTERVALS: Final = 4096


class Interval(NamedTuple):
    """Buckets `low` to `high`, both included, that hold an integer of every machine of a class."""

    low: int
    high: int


@lru_cache(_CACHED_INTERVALS)
def interval(low: int, high: int) -> Interval:
    """Return an interval; frequent ones are cached."""
    return Interval(low, high)


class Strings(Enum):
    """Marks a class whose strings differ."""

    VARIOUS = "various"


VARIOUS: Final = Strings.VARIOUS

ClassValue = Interval | str | Strings

Place = tuple[tuple[tuple[str, ClassValue | None], ...], tuple[str, ...]]
"""The values of the keys in a class, and the keys that some of its machines lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineClass:
    """`count` similar machines; `attributes` and `some_lack` are sorted by name.

    A name in `some_lack` is in `attributes` too, and some of the machines lack that attribute. An attribute that all of
    them lack is in neither.
    """

    count: int
    attributes: tuple[tuple[str, ClassValue], ...]
    some_lack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """A multiset of classes, in a canonical order."""

    classes: tuple[MachineClass, ...] = ()

    @property
    def machines(self) -> int:
        """The number of machines in the vector."""
        return sum(machine_class.count for machine_class in self.classes)


EMPTY: Final = Vector()

_NAME_OF: Final = itemgetter(0)
_VALUE_OF: Final = itemgetter(1)
_COUNT_OF: Final = attrgetter("count")
_SOME_LACK_OF: Final = attrgetter("some_lack")
_HIGH_OF: Final = attrgetter("high")
_AT_ONCE: Final = 256
_MISSING: Final = (("", None),)


def vector_of(sdv: SDV) -> Vector:
    """Return the vector {x} of one machine: each number enters as the interval of its bucket."""
    attributes = tuple((name, value if isinstance(value, str) else _point(value)) for name, value in sdv.pairs)
    return Vector((MachineClass(count=1, attributes=attributes),))


def _point(value: int) -> Interval:
    bucket = bucket_of(value)
    return interval(bucket, bucket)


def coalesce(vectors: Iterable[Vector], *, keys: tuple[str, ...] = KEY_ATTRIBUTES) -> Vector:
    """Return the multiset sum (the operator of MESSIAHS 7.1): commutative, associative, with `EMPTY` as its unit.

    Classes that are equal in all `keys` are merged: counts are added, other attributes take the hull.
    """
    return merged(alike_in([machine_class for vector in vectors for machine_class in vector.classes], keys).values())


def alike_in(classes: Sequence[MachineClass], keys: tuple[str, ...]) -> dict[Place, list[MachineClass]]:
    """Group classes that are equal in all `keys`."""
    alike: dict[Place, list[MachineClass]] = {}
    for machine_class, place in zip(classes, places_of(classes, keys), strict=True):
        alike.setdefault(place, []).append(machine_class)
    return alike


def merged(groups: Iterable[Sequence[MachineClass]]) -> Vector:
    """Return the vector with one class for each group, the hull of its classes."""
    return Vector(_in_order([hull_of(same) for same in groups]))


def places_of(classes: Sequence[MachineClass], keys: tuple[str, ...]) -> list[Place]:
    """Return for each class a hashable value that is equal for classes that are equal in all `keys`.

    It holds a pair per key (with None for a key that all machines of the class lack), and the keys that some lack.
    """
    # Thousands of classes have the same names, so the positions of the keys are looked up once per list of names.
    pickers: dict[tuple[str, ...], Callable[[Any], Any]] = {}
    places: list[Place] = []
    for machine_class in classes:
        names = tuple(map(_NAME_OF, machine_class.attributes))
        picker = pickers.get(names)
        if picker is None:
            # The last position is that of `_MISSING`; twice, because itemgetter returns no tuple for a single one.
            positions = [names.index(key) if key in names else -1 for key in keys]
            picker = pickers[names] = itemgetter(*positions, -1, -1)
        lacking = tuple(key for key in keys if key in machine_class.some_lack) if machine_class.some_lack else ()
        places.append((picker(machine_class.attributes + _MISSING), lacking))
    return places


def _in_order(classes: list[MachineClass]) -> tuple[MachineClass, ...]:
    try:
        # The same order as that of `sort_key`, but much faster; a string does not compare with an interval.
        return tuple(sorted(classes, key=attrgetter("attributes", "some_lack", "count")))
    except TypeError:
        return tuple(sorted(classes, key=sort_key))


def hull_of(classes: Sequence[MachineClass]) -> MachineClass:
    """Return the narrowest class that holds the machines of all `classes` (at least one)."""
    if len(classes) == 1:
        return classes[0]
    if len(classes) > _AT_ONCE:
        # Transposing many thousands of rows at once is several times slower than in parts.
        return hull_of([hull_of(classes[start : start + _AT_ONCE]) for start in range(0, len(classes), _AT_ONCE)])
    alike: dict[tuple[str, ...], list[tuple[tuple[str, ClassValue], ...]]] = {}
    for machine_class in classes:
        alike.setdefault(tuple(map(_NAME_OF, machine_class.attributes)), []).append(machine_class.attributes)
    values: dict[str, list[ClassValue]] = {}
    for names, rows in alike.items():
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            values.setdefault(name, []).extend(map(_VALUE_OF, column))
    lacking = [name for name, present in values.items() if len(present) < len(classes)]
    lacking += chain.from_iterable(dict.fromkeys(map(_SOME_LACK_OF, classes)))
    return MachineClass(
        # A greater count could not be sent, and a neighbor may report any number.
        count=min(MOST_MACHINES, sum(map(_COUNT_OF, classes))),
        attributes=tuple((name, _join(values[name])) for name in sorted(values)),
        some_lack=tuple(sorted(dict.fromkeys(lacking))),
    )


def _join(values: list[ClassValue]) -> ClassValue:
    if set(map(type, values)) == {Interval}:
        intervals = cast("list[Interval]", values)
        return interval(min(intervals).low, max(map(_HIGH_OF, intervals)))
    # A name that is a number on one machine and a string on another has no useful value.
    return values[0] if values.count(values[0]) == len(values) else VARIOUS


def sort_key(machine_class: MachineClass) -> tuple[tuple[tuple[str, int, int, int, str], ...], tuple[str, ...], int]:
    """Order classes by their contents, so that equal multisets are equal tuples."""
    return (
        tuple((name, *_value_key(value)) for name, value in machine_class.attributes),
        machine_class.some_lack,
        machine_class.count,
    )


def _value_key(value: ClassValue) -> tuple[int, int, int, str]:
    match value:
        case Interval(low, high):
            return (0, low, high, "")
        case str():
            return (1, 0, 0, value)
        case Strings():
            return (2, 0, 0, "")
