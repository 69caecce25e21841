"""Machine classes as points: what the loss of a compacted vector depends on, key by key, as small integers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from messiahs.core.vectors.vectors import ClassValue, Interval, MachineClass, Place

DISAGREEMENT_LOSS: Final = 8

_POINT_LIMIT: Final = 2048
"""With more points than this, numbers are rounded down and rare strings are put together before splits are sought."""

NO_NUMBER: Final = 1 << 80
"""Greater than any number that a class says."""

_PAIR: Final = 2
_STRING_LIMIT: Final = 64
"""How many strings of a key stay apart at most once anything is put together."""


_Said = TypeVar("_Said")


class Said(IntEnum):
    """Whether the machines of a class say a key."""

    BY_ALL = 0
    BY_SOME = 1
    BY_NONE = 2


class Form(IntEnum):
    """What kind of value a key has in a class."""

    NUMBER = 0
    STRING = 1
    NOTHING = 2
    """Strings that differ already, strings too rare to be told apart, or no value."""


class Cell(NamedTuple):
    """What a class says of one key, as far as the loss depends on it; cells sort as candidates are tried."""

    said: Said
    form: Form
    low: int = 0
    string: str = ""


class Point(NamedTuple):
    """All classes that say the same of every key: they never part.

    `cells` are positions in the scales of the keys, and `lows` the number of each (`NO_NUMBER` if it has none).
    `mask` has for every key, at a place of its own, the bits of what machines could disagree about: those of several
    points are put together by "or". `moment` is the sum of all numbers, each counted for every one of the `machines`.
    """

    cells: tuple[int, ...]
    mask: int
    machines: int
    lows: tuple[int, ...]
    moment: int
    places: tuple[Place, ...]


class Scale(NamedTuple):
    """The cells that occur for one key, in order, and the bits of the mask of a point that are in each."""

    cells: tuple[Cell, ...]
    bits: tuple[int, ...]


class Disagreement(dict[int, int]):
    """What each machine of a class loses since machines of the class disagree, by the mask of the class (mutable).

    It fills up as masks are looked up: there are few of them.
    """

    def __init__(self, parts: Sequence["_Part"]) -> None:
        super().__init__()
        self._parts = parts

    def __missing__(self, mask: int) -> int:
        """Give the loss of each machine for a mask that was not looked up before."""
        loss = self[mask] = DISAGREEMENT_LOSS * sum(part.disagreements(mask) for part in self._parts)
        return loss


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The bits of one key in a mask: one for each kind of `Said`, then numbers, what is various, and each string."""

    shift: int
    width: int

    def disagreements(self, mask: int) -> int:
        """Count in how many ways the machines disagree: about the value, and about whether there is one."""
        here = mask >> self.shift & ((1 << self.width) - 1)
        said, values, strings = here & _ALL_SAID, here >> len(Said) & _NUMBER_OR_VARIOUS, here >> _FIRST_STRING
        is_lacking = bool(said & _BY_SOME) or bool(said & (said - 1))
        is_various = bool(values & _VARIOUS) or (bool(values) and bool(strings)) or bool(strings & (strings - 1))
        return is_lacking + is_various


_ALL_SAID: Final = (1 << len(Said)) - 1
_BY_SOME: Final = 1 << Said.BY_SOME
_NUMBER: Final = 1
_VARIOUS: Final = 2
_NUMBER_OR_VARIOUS: Final = 3
_FIRST_STRING: Final = len(Said) + 2


@dataclass(frozen=True, slots=True)
class Points:
    """What is to be divided into classes: points in an order that only their values decide."""

    points: list[Point]
    scales: tuple[Scale, ...]
    disagreement: Disagreement

    def cells_of(self, point: Point) -> tuple[Cell, ...]:
        """Give the cells of a point themselves: their positions change with all other points."""
        return tuple(scale.cells[position] for scale, position in zip(self.scales, point.cells, strict=True))


def points_of(alike: Mapping[Place, Sequence[MachineClass]], keys: tuple[str, ...]) -> Points:
    """Give the points of classes that are grouped by what they say of the keys."""
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
    """Give the bits of each cell, and how many bits there are."""
    strings = {
        string: place for place, string in enumerate(dict.fromkeys(cell.string for cell in cells if cell.string))
    }
    bits: list[int] = []
    for cell in cells:
        here = 1 << cell.said
        if cell.form is Form.NUMBER:
            here |= _NUMBER << len(Said)
        elif cell.form is Form.STRING:
            here |= 1 << _FIRST_STRING + strings.setdefault(cell.string, len(strings))
        elif cell.said is not Said.BY_NONE:
            here |= _VARIOUS << len(Said)
        bits.append(here << shift)
    return tuple(bits), _FIRST_STRING + len(strings)


@dataclass(frozen=True, slots=True)
class _Column:
    """One key of all places: for each of them the position of its cell in the scale."""

    cells: tuple[Cell, ...]
    positions: list[int]


def _rows(columns: list[_Column], weights: list[int]) -> list[tuple[int, ...]]:
    if not columns:
        return [()] * len(weights)
    return list(zip(*(column.positions for column in columns), strict=True))


def _column(alike: Mapping[Place, Sequence[MachineClass]], position: int, *, key: str) -> _Column:
    # Few of them differ, so each is looked at once; and no tuple is made for those that all say.
    said: list[tuple[str, ClassValue | None] | tuple[str, ClassValue | None, Said]] = [
        (*pairs[position], Said.BY_SOME) if key in lacking else pairs[position] for pairs, lacking in alike
    ]
    cells = {each: _cell(each[1], each[2] if len(each) > _PAIR else Said.BY_ALL) for each in dict.fromkeys(said)}
    return _ranked(cells, said)


def _ranked(cells: Mapping[_Said, Cell], said: list[_Said]) -> _Column:
    order = tuple(sorted(dict.fromkeys(cells.values())))
    rank = {cell: position for position, cell in enumerate(order)}
    rank_of = {each: rank[cell] for each, cell in cells.items()}
    return _Column(order, list(map(rank_of.__getitem__, said)))


def _cell(value: ClassValue | None, said: Said) -> Cell:
    if value is None:
        return Cell(Said.BY_NONE, Form.NOTHING)
    if isinstance(value, Interval):
        return Cell(said, Form.NUMBER, value.low)
    return Cell(said, Form.STRING, 0, value) if isinstance(value, str) else Cell(said, Form.NOTHING)


def _rounded(column: _Column, weights: list[int], *, rounding: int) -> _Column:
    """Drop the last `rounding` bits of numbers, and keep apart only the strings that the most machines say."""
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
            rounded[position] = Cell(cell.said, Form.NOTHING)
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
