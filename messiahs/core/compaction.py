"""Making a vector small enough to leave its module (MESSIAHS 5.1: fixed classes; 7.1, footnote: parts may be dropped).

However many machines stand behind a vector, it has a bounded number of classes and of bytes, its counts are exact and
every machine lies inside its class. The result is found from the top: one class, split where that loses least, until
a bound is met. It depends on the multiset alone, not on the order in which vectors arrived.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from typing import Final, TypeVar

from messiahs.core.attributes import EXTENSION_LIMIT, MACHINE_ATTRIBUTES
from messiahs.core.points import Point, Scale, points_of
from messiahs.core.splitting import Split, best_split
from messiahs.core.vectors import ClassValue, Interval, MachineClass, Vector, alike_in, coalesce, hull_of, merged

CLASS_LIMIT: Final = 64
BYTE_LIMIT: Final = 4096


def compact(
    vector: Vector,
    *,
    keys: tuple[str, ...],
    class_limit: int = CLASS_LIMIT,
    byte_limit: int = BYTE_LIMIT,
    least: int = 1,
) -> Vector:
    """Give a coalesced vector of the same machines that keeps both limits; it splits only on `keys`.

    No class has fewer than `least` machines, unless all of them together are fewer.

    `vector` need not be coalesced. If it keeps the limits already, nothing but that is done. Beyond
    `EXTENSION_LIMIT` extension attributes, those that the fewest machines say are left out (keys come last); and so
    are more attributes if a single class with all of them does not keep the byte limit.
    """
    assert class_limit >= 1
    keys = tuple(sorted(keys))
    alike = alike_in(vector.classes, keys)
    if len(alike) <= class_limit:
        coalesced = merged(alike.values())
        is_small = len(_extensions(coalesced.classes)) <= EXTENSION_LIMIT and encoded_size(coalesced) <= byte_limit
        if is_small and all(each.count >= least for each in coalesced.classes):
            return coalesced
    points, scales = points_of(alike, keys)
    points = _without_excess(points, keys, byte_limit=byte_limit)
    classes = _divide(points, scales, class_limit=class_limit, byte_limit=byte_limit, least=least)
    return coalesce((Vector(classes),), keys=keys)


def encoded_size(vector: Vector) -> int:
    """Give an upper bound of the bytes that a vector takes on the wire.

    There every name and string stands once, so does each list of attributes that classes have in common, and numbers
    take as many bytes as they need (7 bits in each).
    """
    size = _Size()
    for machine_class in vector.classes:
        size.add(machine_class)
    return size.bytes


_Columns = tuple[tuple[str, type[ClassValue]], ...]
_Shape = tuple[_Columns, tuple[str, ...]]


class _Size:
    """What classes take on the wire together (mutable): bytes of their own, and of the tables that they share."""

    def __init__(self) -> None:
        self.bytes = _FRAME_BYTES
        self._strings: Counter[str] = Counter()
        self._shapes: Counter[_Shape] = Counter()

    def add(self, machine_class: MachineClass) -> None:
        """Count one more class."""
        self._count(machine_class, 1)

    def remove(self, machine_class: MachineClass) -> None:
        """Count one class less, that was added before."""
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
    """Give names and kinds of values, the strings among these, and the bytes that they take but for the strings.

    Most classes are those of the last time again.
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
    return [name for name in names if name not in MACHINE_ATTRIBUTES]


def _without_excess(points: list[Point], keys: tuple[str, ...], *, byte_limit: int) -> list[Point]:
    """Leave out the attributes for which there is no room even in a single class, the least useful first."""
    machines: Counter[str] = Counter()
    for point in points:
        for name, _ in point.merged.attributes:
            machines[name] += point.merged.count

    def usefulness(name: str) -> tuple[bool, bool, int, str]:
        return name not in keys, name not in MACHINE_ATTRIBUTES, -machines[name], name

    whole = hull_of([point.merged for point in points])
    excess = sorted(_extensions([whole]), key=usefulness)[EXTENSION_LIMIT:]
    kept = [name for name in sorted(machines, key=usefulness) if name not in excess]
    while kept and encoded_size(Vector((_restricted(whole, kept),))) > byte_limit:
        kept.pop()
    if len(kept) == len(machines):
        return points
    return [point._replace(merged=_restricted(point.merged, kept)) for point in points]


def _restricted(machine_class: MachineClass, kept: Sequence[str]) -> MachineClass:
    return MachineClass(
        count=machine_class.count,
        attributes=tuple(pair for pair in machine_class.attributes if pair[0] in kept),
        some_lack=tuple(name for name in machine_class.some_lack if name in kept),
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Points that are one class of the result so far."""

    points: list[Point]
    merged: MachineClass


def _divide(
    points: list[Point], scales: tuple[Scale, ...], *, class_limit: int, byte_limit: int, least: int
) -> tuple[MachineClass, ...]:
    """Split the group whose split lowers the loss most, over and over, as long as both limits are kept."""
    groups = [_group(points)]
    size = _Size()
    size.add(groups[0].merged)
    # The cells of a group's first point are the last tie-breaker: no other group has them.
    waiting: list[tuple[int, int, int, tuple[int, ...], int, Split]] = []

    def propose(position: int) -> None:
        split = best_split(groups[position].points, scales, least=least)
        if split is not None:
            order = (-split.gain, split.key_position, split.cell, groups[position].points[0].cells)
            heappush(waiting, (*order, position, split))

    propose(0)
    while waiting and len(groups) < class_limit:
        *_, position, split = heappop(waiting)
        one, other = map(_group, split.divide(groups[position].points))
        size.remove(groups[position].merged)
        size.add(one.merged)
        size.add(other.merged)
        if size.bytes > byte_limit:
            break
        groups[position] = one
        groups.append(other)
        propose(position)
        propose(len(groups) - 1)
    return tuple(group.merged for group in groups)


def _group(points: list[Point]) -> _Group:
    return _Group(points, hull_of([point.merged for point in points]))
