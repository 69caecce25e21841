"""Making a vector small enough to send (MESSIAHS 5.1: fixed classes; 7.1, footnote: parts may be dropped).

For any number of machines, the result has a bounded number of classes and bytes, exact counts, and every machine inside
its class. It is found from the top: one class is split repeatedly, where that lowers the loss most, until a bound is
reached. It depends on the multiset alone, not on the order in which vectors arrived.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from messiahs.core.model.attributes import ADDED_ATTRIBUTES, EXTENSION_LIMIT, MACHINE_ATTRIBUTES
from messiahs.core.vectors.compaction_points import points_of
from messiahs.core.vectors.split_tree import Memory, Node, SplitTree
from messiahs.core.vectors.vectors import (
    ClassValue,
    Interval,
    MachineClass,
    Place,
    Vector,
    alike_in,
    coalesce,
    hull_of,
    merged,
)

CLASS_LIMIT: Final = 64
BYTE_LIMIT: Final = 4096
_POINT_NS: Final = 10_000
_SEARCH_NS: Final = 8_000
"""Approximate costs of making a point from a class or a class from points, and of searching one point for a split."""


def compact(
    vector: Vector,
    *,
    keys: tuple[str, ...],
    class_limit: int = CLASS_LIMIT,
    byte_limit: int = BYTE_LIMIT,
    least: int = 1,
) -> Vector:
    """Return a coalesced vector of the same machines within both limits; classes are split only on `keys`.

    No class has fewer than `least` machines, unless there are fewer in all.

    `vector` need not be coalesced. If it is within the limits, it is only coalesced. Beyond `EXTENSION_LIMIT` extension
    attributes, those reported by the fewest machines are dropped (`ADDED_ATTRIBUTES`, which count as such, first, and
    keys last); more attributes are dropped if a single class with all of them exceeds the byte limit.
    """
    assert class_limit >= 1
    keys = tuple(sorted(keys))
    alike = alike_in(vector.classes, keys)
    limits = Limits(classes=class_limit, bytes=byte_limit, least=least)
    if len(alike) <= class_limit:
        coalesced = merged(alike.values())
        if fits(coalesced, limits):
            return coalesced
    return coalesce((Vector(tuple(part.merged for part in divided(alike, keys, limits=limits))),), keys=keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most classes and bytes of a vector, and the fewest machines of a class."""

    classes: int = CLASS_LIMIT
    bytes: int = BYTE_LIMIT
    least: int = 1


LIMITS: Final = Limits()


def fits(coalesced: Vector, limits: Limits = LIMITS) -> bool:
    """Return whether a coalesced vector is within all limits."""
    return (
        len(coalesced.classes) <= limits.classes
        and len(_extensions(coalesced.classes)) <= EXTENSION_LIMIT
        and encoded_size(coalesced) <= limits.bytes
        and all(each.count >= limits.least for each in coalesced.classes)
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A class of the result, and the places that were merged into it."""

    places: tuple[Place, ...]
    merged: MachineClass


def divided(
    alike: Mapping[Place, Sequence[MachineClass]], keys: tuple[str, ...], *, limits: Limits
) -> tuple[Part, ...]:
    """Divide classes that differ in the (sorted) keys into as many parts as the limits allow."""
    steps = dividing(alike, keys, limits=limits)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            parts: tuple[Part, ...] = end.value
            return parts


def dividing(
    alike: Mapping[Place, Sequence[MachineClass]],
    keys: tuple[str, ...],
    *,
    limits: Limits = LIMITS,
    memory: Memory | None = None,
) -> Generator[int, None, tuple[Part, ...]]:
    """Divide as `divided` does, in steps; each yields its approximate time in ns, which is the same with any memory.

    A memory belongs to one choice of keys and `least`. It only saves work.
    """
    points = points_of(alike, keys)
    tree = SplitTree(alike, points, memory or Memory())
    yield _POINT_NS * len(alike)
    for searched in tree.grow(least=limits.least, classes=limits.classes):
        yield _SEARCH_NS * searched
    classes = tree.remembered(alike)
    excess_free = _without_excess(alike, keys, whole=classes[0], byte_limit=limits.bytes)
    if excess_free is not None:
        classes = tree.merged(excess_free)
    yield _POINT_NS * len(alike)
    return _as_far_as_it_fits(tree.nodes, classes, limits.bytes)


def encoded_size(vector: Vector) -> int:
    """Return an upper bound of the bytes that a vector takes on the wire.

    Every name and string is encoded once, as is each list of attributes that classes share. Numbers are varints, with 7
    bits in each byte.
    """
    size = _Size()
    for machine_class in vector.classes:
        size.add(machine_class)
    return size.bytes


_Columns = tuple[tuple[str, type[ClassValue]], ...]
_Shape = tuple[_Columns, tuple[str, ...]]


class _Size:
    """The bytes of several classes on the wire (mutable): their own, and those of the tables that they share."""

    def __init__(self) -> None:
        self.bytes = _FRAME_BYTES
        self._strings: Counter[str] = Counter()
        self._shapes: Counter[_Shape] = Counter()

    def add(self, machine_class: MachineClass) -> None:
        """Add the bytes of a class."""
        self._count(machine_class, 1)

    def remove(self, machine_class: MachineClass) -> None:
        """Subtract the bytes of a class that was added before."""
        self._count(machine_class, -1)

    def _count(self, machine_class: MachineClass, change: int) -> None:
        columns, strings, values_bytes = _parts_of(machine_class.attributes)
        self.bytes += change * (_CLASS_HEADER_BYTES + _varint_bytes(machine_class.count) + values_bytes)
        for string in strings:
            self._count_string(string, change)
        if _is_first_or_last(self._shapes, (columns, machine_class.some_lack), change):
            self.bytes += change * (_SHAPE_HEADER_BYTES + _INDEX_BYTES * len(columns))
            for name, _ in columns:
                self._count_string(name, change)

    def _count_string(self, string: str, change: int) -> None:
        if _is_first_or_last(self._strings, string, change):
            self.bytes += change * (_STRING_HEADER_BYTES + len(string.encode()))


_Counted = TypeVar("_Counted")


def _is_first_or_last(counter: Counter[_Counted], each: _Counted, change: int) -> bool:
    before = counter[each]
    counter[each] = before + change
    return not before or before + change == 0


_FRAME_BYTES: Final = 32
_CLASS_HEADER_BYTES: Final = 11
_SHAPE_HEADER_BYTES: Final = 4
_STRING_HEADER_BYTES: Final = 3
_INDEX_BYTES: Final = 3
_CACHED_CLASSES: Final = 4096


def _varint_bytes(number: int) -> int:
    return max(1, (number.bit_length() + 6) // 7)


@lru_cache(_CACHED_CLASSES)
def _parts_of(attributes: tuple[tuple[str, ClassValue], ...]) -> tuple[_Columns, tuple[str, ...], int]:
    """Return the names and types of values, the strings among the values, and the bytes of all but the strings.

    Cached, because most classes are the same as the last time.
    """
    columns = tuple((name, type(value)) for name, value in attributes)
    strings = tuple(value for _, value in attributes if isinstance(value, str))
    intervals = sum(_interval_bytes(value) for _, value in attributes if isinstance(value, Interval))
    return columns, strings, intervals + _INDEX_BYTES * len(strings)


def _interval_bytes(interval: Interval) -> int:
    return _signed_bytes(interval.low) + _signed_bytes(interval.high - interval.low)


def _signed_bytes(number: int) -> int:
    return (abs(number).bit_length() + 7) // 7


def _extensions(classes: Iterable[MachineClass]) -> list[str]:
    names = dict.fromkeys(name for machine_class in classes for name, _ in machine_class.attributes)
    return [name for name in names if name not in MACHINE_ATTRIBUTES or name in ADDED_ATTRIBUTES]


def _without_excess(
    alike: Mapping[Place, Sequence[MachineClass]], keys: tuple[str, ...], *, whole: MachineClass, byte_limit: int
) -> Mapping[Place, Sequence[MachineClass]] | None:
    """Drop the least useful attributes until a single class fits; None if all attributes fit."""
    if len(_extensions([whole])) <= EXTENSION_LIMIT and encoded_size(Vector((whole,))) <= byte_limit:
        return None
    machines: Counter[str] = Counter()
    for machine_class in map(hull_of, alike.values()):
        for name, _ in machine_class.attributes:
            machines[name] += machine_class.count

    def usefulness(name: str) -> tuple[bool, bool, int, str]:
        return name not in keys, name not in MACHINE_ATTRIBUTES, -machines[name], name

    excess = sorted(_extensions([whole]), key=lambda name: (name in ADDED_ATTRIBUTES, usefulness(name)))[
        EXTENSION_LIMIT:
    ]
    kept = [name for name in sorted(machines, key=usefulness) if name not in excess]
    while kept and encoded_size(Vector((_restricted(whole, kept),))) > byte_limit:
        kept.pop()
    return {place: [_restricted(each, kept) for each in same] for place, same in alike.items()}


def _restricted(machine_class: MachineClass, kept: Sequence[str]) -> MachineClass:
    return MachineClass(
        count=machine_class.count,
        attributes=tuple(pair for pair in machine_class.attributes if pair[0] in kept),
        some_lack=tuple(name for name in machine_class.some_lack if name in kept),
    )


def _as_far_as_it_fits(nodes: Sequence[Node], classes: Sequence[MachineClass], byte_limit: int) -> tuple[Part, ...]:
    """Return the parts after as many of the splits as fit, in the order of the splits."""
    size = _Size()
    size.add(classes[0])
    live = {0: None}
    parents = {node.parts: position for position, node in enumerate(nodes) if node.parts is not None}
    for parts, position in sorted(parents.items()):
        size.remove(classes[position])
        for part in parts:
            size.add(classes[part])
        if size.bytes > byte_limit:
            break
        del live[position]
        live |= dict.fromkeys(parts)
    return tuple(Part(nodes[position].places, classes[position]) for position in live)
