"""Making a vector small enough to leave its module (MESSIAHS 5.1: fixed classes; 7.1, footnote: parts may be dropped).

However many machines stand behind a vector, it has a bounded number of classes and of bytes, its counts are exact and
every machine lies inside its class. The result is found from the top: one class, split where that loses least, until
a bound is met. It depends on the multiset alone, not on the order in which vectors arrived.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain
from typing import Final, NamedTuple

from messiahs.core.attributes import EXTENSION_LIMIT, MACHINE_ATTRIBUTES
from messiahs.core.points import Point, Scale, points_of
from messiahs.core.splitting import Split, best_split
from messiahs.core.vectors import ClassValue, Interval, MachineClass, Place, Vector, coalesce, hull_of, places_of

CLASS_LIMIT: Final = 64
BYTE_LIMIT: Final = 4096


def compact(
    vector: Vector, *, keys: tuple[str, ...], class_limit: int = CLASS_LIMIT, byte_limit: int = BYTE_LIMIT
) -> Vector:
    """Give a coalesced vector of the same machines that keeps both limits; it splits only on `keys`.

    `vector` need not be coalesced. If it keeps the limits already, nothing but that is done. Beyond
    `EXTENSION_LIMIT` extension attributes, those that the fewest machines say are left out (keys come last); and so
    are more attributes if a single class with all of them does not keep the byte limit.
    """
    assert class_limit >= 1
    keys = tuple(sorted(keys))
    alike: dict[Place, list[MachineClass]] = {}
    for machine_class, place in zip(vector.classes, places_of(vector.classes, keys), strict=True):
        alike.setdefault(place, []).append(machine_class)
    if len(alike) <= class_limit:
        coalesced = coalesce((vector,), keys=keys)
        if len(_extensions(coalesced.classes)) <= EXTENSION_LIMIT and encoded_size(coalesced) <= byte_limit:
            return coalesced
    points, scales = points_of(alike, keys)
    points = _without_excess(points, keys, byte_limit=byte_limit)
    classes = _divide(points, scales, class_limit=class_limit, byte_limit=byte_limit)
    return coalesce((Vector(classes),), keys=keys)


def encoded_size(vector: Vector) -> int:
    """Give an upper bound of the bytes that a vector takes on the wire.

    There every name and string stands once, so does each list of attributes that classes have in common, and numbers
    take as many bytes as they need (7 bits in each).
    """
    return _size_of([_sized(machine_class) for machine_class in vector.classes])


_Shape = tuple[tuple[tuple[str, type[ClassValue]], ...], tuple[str, ...]]


class _Sized(NamedTuple):
    """A class by what it takes on the wire: bytes of its own, and what it has in the tables."""

    own_bytes: int
    strings: tuple[str, ...]
    shape: _Shape


def _sized(machine_class: MachineClass) -> _Sized:
    own_bytes = _CLASS_HEADER_BYTES + _varint_bytes(machine_class.count)
    strings: list[str] = []
    for name, value in machine_class.attributes:
        strings.append(name)
        if isinstance(value, Interval):
            own_bytes += _signed_bytes(value.low) + _signed_bytes(value.high - value.low)
        elif isinstance(value, str):
            strings.append(value)
            own_bytes += _INDEX_BYTES
    columns = tuple((name, type(value)) for name, value in machine_class.attributes)
    return _Sized(own_bytes, tuple(strings), (columns, machine_class.some_lack))


def _size_of(classes: Sequence[_Sized]) -> int:
    strings = dict.fromkeys(chain.from_iterable(sized.strings for sized in classes))
    shapes = dict.fromkeys(sized.shape for sized in classes)
    return (
        _FRAME_BYTES
        + sum(sized.own_bytes for sized in classes)
        + sum(_STRING_HEADER_BYTES + len(string.encode()) for string in strings)
        + sum(_SHAPE_HEADER_BYTES + _INDEX_BYTES * len(columns) for columns, _ in shapes)
    )


_FRAME_BYTES: Final = 32
_CLASS_HEADER_BYTES: Final = 11
_SHAPE_HEADER_BYTES: Final = 4
_STRING_HEADER_BYTES: Final = 3
_INDEX_BYTES: Final = 3


def _varint_bytes(number: int) -> int:
    return max(1, (number.bit_length() + 6) // 7)


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
            machines[name] += point.machines

    def usefulness(name: str) -> tuple[bool, bool, int, str]:
        return name not in keys, name not in MACHINE_ATTRIBUTES, -machines[name], name

    whole = hull_of([point.merged for point in points])
    excess = sorted(_extensions([whole]), key=usefulness)[EXTENSION_LIMIT:]
    kept = [name for name in sorted(machines, key=usefulness) if name not in excess]
    while kept and encoded_size(Vector((_restricted(whole, kept),))) > byte_limit:
        kept.pop()
    if len(kept) == len(machines):
        return points
    return [
        Point(
            cells=point.cells,
            machines=point.machines,
            bits=point.bits,
            numbers=point.numbers,
            merged=_restricted(point.merged, kept),
        )
        for point in points
    ]


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
    sized: _Sized


def _divide(
    points: list[Point], scales: tuple[Scale, ...], *, class_limit: int, byte_limit: int
) -> tuple[MachineClass, ...]:
    """Split the group whose split lowers the loss most, over and over, as long as both limits are kept."""
    groups = [_group(points)]
    # The cells of a group's first point are the last tie-breaker: no other group has them.
    waiting: list[tuple[int, int, int, tuple[int, ...], int, Split]] = []

    def propose(position: int) -> None:
        split = best_split(groups[position].points, scales)
        if split is not None:
            order = (-split.gain, split.key_position, split.cell, groups[position].points[0].cells)
            heappush(waiting, (*order, position, split))

    propose(0)
    while waiting and len(groups) < class_limit:
        *_, position, split = heappop(waiting)
        one, other = map(_group, split.divide(groups[position].points))
        divided = [*groups[:position], one, *groups[position + 1 :], other]
        if _size_of([group.sized for group in divided]) > byte_limit:
            break
        groups[:] = divided
        propose(position)
        propose(len(groups) - 1)
    return tuple(group.merged for group in groups)


def _group(points: list[Point]) -> _Group:
    merged = hull_of([point.merged for point in points])
    return _Group(points, merged, _sized(merged))
