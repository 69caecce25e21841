"""Update vectors: multisets of machine classes, and their sum (MESSIAHS 7.1).

A class stands for `count` machines. Each attribute of a class is a joint interval of buckets, one string, or `VARIOUS`.
Every machine lies inside its class, counts are exact, and no name or address of a machine is ever in a vector.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from messiahs.core.attributes import KEY_ATTRIBUTES
from messiahs.core.buckets import bucket_of
from messiahs.core.descriptions import SDV


class Interval(NamedTuple):
    """Buckets `low` to `high`, both included, that hold an integer of every machine of a class."""

    low: int
    high: int


class Strings(Enum):
    """The strings of a class differ."""

    VARIOUS = "various"


VARIOUS: Final = Strings.VARIOUS

ClassValue = Interval | str | Strings


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineClass:
    """`count` machines alike; `attributes` and `some_lack` are sorted by name.

    A name in `some_lack` is in `attributes` too, and some of the machines do not say that attribute. What none of
    them says is in neither.
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
        """Number of machines that the vector stands for."""
        return sum(machine_class.count for machine_class in self.classes)


EMPTY: Final = Vector()


def vector_of(sdv: SDV) -> Vector:
    """Give the vector {x} of one machine: each number enters as the interval of its bucket."""
    attributes = tuple((name, value if isinstance(value, str) else _point(value)) for name, value in sdv.pairs)
    return Vector((MachineClass(count=1, attributes=attributes),))


def _point(value: int) -> Interval:
    bucket = bucket_of(value)
    return Interval(bucket, bucket)


def coalesce(vectors: Iterable[Vector], *, keys: tuple[str, ...] = KEY_ATTRIBUTES) -> Vector:
    """Give the multiset sum (the operator of MESSIAHS 7.1): commutative, associative, with `EMPTY` as its unit.

    Classes that are equal in all `keys` become one: counts add up, other attributes take the hull.
    """
    merged: dict[tuple[tuple[ClassValue | None, bool], ...], MachineClass] = {}
    for vector in vectors:
        for machine_class in vector.classes:
            place = key_values(machine_class, keys)
            known = merged.get(place)
            merged[place] = machine_class if known is None else hull(known, machine_class)
    return Vector(tuple(sorted(merged.values(), key=sort_key)))


def key_values(machine_class: MachineClass, keys: tuple[str, ...]) -> tuple[tuple[ClassValue | None, bool], ...]:
    """Give what a class says of each key, and whether some of its machines lack it."""
    said = dict(machine_class.attributes)
    return tuple((said.get(key), key in machine_class.some_lack) for key in keys)


def hull(one: MachineClass, other: MachineClass) -> MachineClass:
    """Give the narrowest class that holds the machines of both."""
    if one.attributes == other.attributes:
        return MachineClass(
            count=one.count + other.count,
            attributes=one.attributes,
            some_lack=one.some_lack if one.some_lack == other.some_lack else _union(one.some_lack, other.some_lack),
        )
    said, other_said = dict(one.attributes), dict(other.attributes)
    lacking = set(one.some_lack) | set(other.some_lack) | (said.keys() ^ other_said.keys())
    for name, value in other_said.items():
        said[name] = _join(said[name], value) if name in said else value
    return MachineClass(
        count=one.count + other.count, attributes=tuple(sorted(said.items())), some_lack=tuple(sorted(lacking))
    )


def _union(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*one, *other}))


def _join(one: ClassValue, other: ClassValue) -> ClassValue:
    if isinstance(one, Interval) and isinstance(other, Interval):
        return Interval(min(one.low, other.low), max(one.high, other.high))
    # A name that is a number at one machine and a string at another tells nobody anything.
    return one if one == other else VARIOUS


def sort_key(machine_class: MachineClass) -> tuple[tuple[tuple[str, int, int, int, str], ...], tuple[str, ...], int]:
    """Order classes by what they say, so that equal multisets are equal tuples."""
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
