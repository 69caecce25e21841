"""Machine classes as points: the facts on which the loss of a compacted vector depends, as small integers by key."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from messiahs.core.vectors.vectors import ClassValue, Interval, MachineClass, Place

DISAGREEMENT_LOSS: Final = 8

_POINT_LIMIT: Final = 2048
"""With more points, numbers are rounded down and rare strings are merged before splits are searched."""

NO_NUMBER: Final = 1 << 80
"""Greater than any number in a class."""

_PAIR: Final = 2
_STRING_LIMIT: Final = 64
"""Most strings of a key that stay apart once strings are merged."""


_Entry = TypeVar("_Entry")


class Presence(IntEnum):
    """Which machines of a class report a key."""

    BY_ALL = 0
    BY_SOME = 1
    BY_NONE = 2


class Form(IntEnum):
    """The kind of value that a key has in a class."""

    NUMBER = 0
    STRING = 1
    NOTHING = 2
    """Strings that already differ, strings too rare to be kept apart, or no value."""


class Cell(NamedTuple):
    """The part of a class's value for one key on which the loss depends; cells sort in the order of candidates."""

    presence: Presence
    form: Form
    low: int = 0
    string: str = ""


class Point(NamedTuple):
    """All classes with equal cells in every key: they are never separated.

    `cells` are positions in the scales of the keys, and `lows` the number of each (`NO_NUMBER` if it has none).
    `mask` has, at a separate place for every key, bits for everything about which machines can disagree: the masks of
    several points are combined by "or". `moment` is the sum of all numbers, each times the number of `machines`.
    """

    cells: tuple[int, ...]
    mask: int
    machines: int
    lows: tuple[int, ...]
    moment: int
    places: tuple[Place, ...]


class Scale(NamedTuple):
    """The cells that occur for one key, in order, and the bits of each in the mask of a point."""

    cells: tuple[Cell, ...]
    bits: tuple[int, ...]


class Disagreement(dict[int, int]):
    """The loss of each machine of a class due to disagreement within the class, by the mask of the class (mutable).

    Masks are added as they are looked up; few of them occur.
    """

    def __init__(self, parts: Sequence["_Part"]) -> None:
        super().__init__()
        self._parts = parts

    def __missing__(self, mask: int) -> int:
        """Compute the loss of each machine for a mask that was not looked up before."""
        loss = self[mask] = DISAGREEMENT_LOSS * sum(part.disagreements(mask) for part in self._parts)
        return loss


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The bits of one key in a mask: one for each `Presence`, for numbers, for various values, and each string."""

    shift: int
    width: int

    def disagreements(self, mask: int) -> int:
        """Count the kinds of disagreement among the machines: about the value, and about whether there is one."""
        here = mask >> self.shift & ((1 << self.width) - 1)
        presence, strings = here & _ALL_PRESENCES, here >> _FIRST_STRING
        values = here >> len(Presence) & _NUMBER_OR_VARIOUS
        is_lacking = bool(presence & _BY_SOME) or bool(presence & (presence - 1))
        is_various = bool(values & _VARIOUS) or (bool(values) and bool(strings)) or bool(strings & (strings - 1))
        return is_lacking + is_various


_ALL_PRESENCES: Final = (1 << len(Presence)) - 1
_BY_SOME: Final = 1 << Presence.BY_SOME
_NUMBER: Final = 1
_VARIOUS: Final = 2
_NUMBER_OR_VARIOUS: Final = 3
_FIRST_STRING: Final = len(Presence) + 2


@dataclass(frozen=True, slots=True)
class Points:
    """The points to be divided into classes, in an order that only their values determine."""

    points: list[Point]
    scales: tuple[Scale, ...]
    disagreement: Disagreement

    def cells_of(self, point: Point) -> tuple[Cell, ...]:
        """Return the cells of a point; their positions depend on all other points."""
        return tuple(scale.cells[position] for scale, position in zip(self.scales, point.cells, strict=True))


def points_of(alike: Mapping[Place, Sequence[MachineClass]], keys: tuple[str, ...]) -> Points:
    """Return the points of classes that are grouped by their values of the keys."""
    weights = [sum(machine_class.count for machine_class in classes) for classes in alike.values()]
    exact = [_column(alike, position, key=key) for position, key in enumerate(keys)]
    columns, rounding = exact, 0
    while len(set(_rows(columns, weights))) > _POINT_LIMIT:
        rounding += 1
        columns = [_rounded(column, weights, rounding=rounding) for column in exact]
    together: dict[tuple[int, ...], list[tuple[int, Place]]] = {}
    for cells, weight, place in zip(_rows(columns, weights), weights, alike, strict=True):
        together.setdefault(cells, []).append((weight, place))
    parts: list[_Part] = []
    scales: list[Scale] = []
    shift = 0
    for column in columns:
        bits, width = _bits_of(column.cells, shift=shift)
        scales.append(Scale(column.cells, bits))
        parts.append(_Part(shift=shift, width=width))
        shift += width
    points = [_point(cells, together[cells], scales=scales) for cells in sorted(together)]
    return Points(points, tuple(scales), Disagreement(parts))


def _bits_of(cells: tuple[Cell, ...], *, shift: int) -> tuple[tuple[int, ...], int]:
    """Return the bits of each cell, and the number of bits."""
    strings = {
        string: place for place, string in enumerate(dict.fromkeys(cell.string for cell in cells if cell.string))
    }
    bits: list[int] = []
    for cell in cells:
        here = 1 << cell.presence
        if cell.form is Form.NUMBER:
            here |= _NUMBER << len(Presence)
        elif cell.form is Form.STRING:
            here |= 1 << _FIRST_STRING + strings.setdefault(cell.string, len(strings))
        elif cell.presence is not Presence.BY_NONE:
            here |= _VARIOUS << len(Presence)
        bits.append(here << shift)
    return tuple(bits), _FIRST_STRING + len(strings)


@dataclass(frozen=True, slots=True)
class _Column:
    """One key of all places: for each place the position of its cell in the scale."""

    cells: tuple[Cell, ...]
    positions: list[int]


def _rows(columns: list[_Column], weights: list[int]) -> list[tuple[int, ...]]:
    if not columns:
        return [()] * len(weights)
    return list(zip(*(column.positions for column in columns), strict=True))


def _column(alike: Mapping[Place, Sequence[MachineClass]], position: int, *, key: str) -> _Column:
    # Few entries differ, so each distinct one is converted once; no tuple is built where all machines report the key.
    entries: list[tuple[str, ClassValue | None] | tuple[str, ClassValue | None, Presence]] = [
        (*pairs[position], Presence.BY_SOME) if key in lacking else pairs[position] for pairs, lacking in alike
    ]
    cells = {each: _cell(each[1], each[2] if len(each) > _PAIR else Presence.BY_ALL) for each in dict.fromkeys(entries)}
    return _ranked(cells, entries)


def _ranked(cells: Mapping[_Entry, Cell], entries: list[_Entry]) -> _Column:
    order = tuple(sorted(dict.fromkeys(cells.values())))
    rank = {cell: position for position, cell in enumerate(order)}
    rank_of = {each: rank[cell] for each, cell in cells.items()}
    return _Column(order, list(map(rank_of.__getitem__, entries)))


def _cell(value: ClassValue | None, presence: Presence) -> Cell:
    if value is None:
        return Cell(Presence.BY_NONE, Form.NOTHING)
    if isinstance(value, Interval):
        return Cell(presence, Form.NUMBER, value.low)
    return Cell(presence, Form.STRING, 0, value) if isinstance(value, str) else Cell(presence, Form.NOTHING)


def _rounded(column: _Column, weights: list[int], *, rounding: int) -> _Column:
    """Drop the last `rounding` bits of numbers, and keep apart only the strings of the most machines."""
    cells = column.cells
    strings = [position for position, cell in enumerate(cells) if cell.form is Form.STRING]
    limit = _STRING_LIMIT >> rounding
    if len(strings) > limit:
        machines: Counter[int] = Counter()
        for position, weight in zip(column.positions, weights, strict=True):
            machines[position] += weight
        strings = sorted(strings, key=lambda position: (-machines[position], position))[:limit]
    frequent = dict.fromkeys(strings)
    rounded: dict[int, Cell] = {}
    for position, cell in enumerate(cells):
        if cell.form is Form.NUMBER:
            rounded[position] = cell._replace(low=cell.low >> rounding << rounding)
        elif cell.form is Form.STRING and position not in frequent:
            rounded[position] = Cell(cell.presence, Form.NOTHING)
        else:
            rounded[position] = cell
    return _ranked(rounded, column.positions)


def _point(cells: tuple[int, ...], weighted: Sequence[tuple[int, Place]], *, scales: Sequence[Scale]) -> Point:
    count = sum(weight for weight, _ in weighted)
    mask, moment = 0, 0
    lows: list[int] = []
    for scale, position in zip(scales, cells, strict=True):
        mask |= scale.bits[position]
        cell = scale.cells[position]
        is_number = cell.form is Form.NUMBER
        lows.append(cell.low if is_number else NO_NUMBER)
        moment += count * cell.low if is_number else 0
    return Point(cells, mask, count, tuple(lows), moment, tuple(place for _, place in weighted))
