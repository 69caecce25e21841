"""Machine classes as points: what the loss of a compacted vector depends on, key by key, as small integers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from messiahs.core.vectors import ClassValue, Interval, MachineClass, Place, hull_of

DISAGREEMENT_LOSS: Final = 8

_POINT_LIMIT: Final = 2048
"""With more points than this, numbers are rounded down and rare strings are put together before splits are sought."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """All classes that say the same of every key: they never part.

    `cells` are positions in the scales of the keys, `bits` the same as masks; `numbers` is, key by key, how many of
    the `machines` belong to classes with a number.
    """

    cells: tuple[int, ...]
    machines: int
    bits: tuple[int, ...]
    numbers: tuple[int, ...]
    merged: MachineClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The cells that occur for one key, in order; the first `plain` of them are numbers that no machine lacks."""

    key: str
    cells: tuple[Cell, ...]
    plain: int
    _known: dict[int, tuple[int, int]] = field(default_factory=dict)

    def terms(self, mask: int) -> tuple[int, int]:
        """Give what each machine of a class counts for disagreement, and the class's lowest number, from its cells."""
        known = self._known.get(mask)
        if known is None:
            known = self._known[mask] = self._terms(mask)
        return known

    def _terms(self, mask: int) -> tuple[int, int]:
        lowest_cell = self.cells[(mask & -mask).bit_length() - 1]
        if mask < 1 << self.plain:
            return 0, lowest_cell.low
        cells = [cell for position, cell in enumerate(self.cells) if mask >> position & 1]
        is_said = {cell.said for cell in cells}
        stated = {(cell.form, cell.string) for cell in cells if cell.said is not Said.BY_NONE}
        is_lacking = Said.BY_SOME in is_said or len(is_said) > 1
        is_various = len(stated) > 1 or (Form.NOTHING, "") in stated
        lowest = min((cell.low for cell in cells if cell.form is Form.NUMBER), default=0)
        return DISAGREEMENT_LOSS * (is_lacking + is_various), lowest


def points_of(
    alike: Mapping[Place, list[MachineClass]], keys: tuple[str, ...]
) -> tuple[list[Point], tuple[Scale, ...]]:
    """Give the points in an order that only their values decide, and the scales of the keys."""
    weights = [sum(machine_class.count for machine_class in classes) for classes in alike.values()]
    exact = [_column(alike, position, key=key) for position, key in enumerate(keys)]
    columns, rounding = exact, 0
    while len(set(_rows(columns, weights))) > _POINT_LIMIT:
        rounding += 1
        columns = [_rounded(column, weights, rounding=rounding) for column in exact]
    together: dict[tuple[int, ...], list[MachineClass]] = {}
    for cells, classes in zip(_rows(columns, weights), alike.values(), strict=True):
        together.setdefault(cells, []).extend(classes)
    scales = tuple(column.scale for column in columns)
    return [_point(cells, together[cells], scales=scales) for cells in sorted(together)], scales


@dataclass(frozen=True, slots=True)
class _Column:
    """One key of all places: for each of them the position of its cell in the scale."""

    scale: Scale
    positions: list[int]


def _rows(columns: list[_Column], weights: list[int]) -> list[tuple[int, ...]]:
    if not columns:
        return [()] * len(weights)
    return list(zip(*(column.positions for column in columns), strict=True))


def _column(alike: Mapping[Place, list[MachineClass]], position: int, *, key: str) -> _Column:
    # Few of them differ, so each is looked at once; and no tuple is made for those that all say.
    said: list[tuple[str, ClassValue | None] | tuple[str, ClassValue | None, Said]] = [
        (*pairs[position], Said.BY_SOME) if key in lacking else pairs[position] for pairs, lacking in alike
    ]
    cells = {each: _cell(each[1], each[2] if len(each) > _PAIR else Said.BY_ALL) for each in dict.fromkeys(said)}
    return _ranked(cells, said, key=key)


def _ranked(cells: Mapping[_Said, Cell], said: list[_Said], *, key: str) -> _Column:
    order = tuple(sorted(dict.fromkeys(cells.values())))
    rank = {cell: position for position, cell in enumerate(order)}
    rank_of = {each: rank[cell] for each, cell in cells.items()}
    plain = sum(cell.said is Said.BY_ALL and cell.form is Form.NUMBER for cell in order)
    return _Column(Scale(key=key, cells=order, plain=plain), list(map(rank_of.__getitem__, said)))


def _cell(value: ClassValue | None, said: Said) -> Cell:
    if value is None:
        return Cell(Said.BY_NONE, Form.NOTHING)
    if isinstance(value, Interval):
        return Cell(said, Form.NUMBER, value.low)
    return Cell(said, Form.STRING, 0, value) if isinstance(value, str) else Cell(said, Form.NOTHING)


def _rounded(column: _Column, weights: list[int], *, rounding: int) -> _Column:
    """Drop the last `rounding` bits of numbers, and keep apart only the strings that the most machines say."""
    cells = column.scale.cells
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
    return _ranked(rounded, column.positions, key=column.scale.key)


def _point(cells: tuple[int, ...], classes: list[MachineClass], *, scales: tuple[Scale, ...]) -> Point:
    merged = hull_of(classes)
    return Point(
        cells=cells,
        machines=merged.count,
        bits=tuple(1 << cell for cell in cells),
        numbers=tuple(
            merged.count if scale.cells[cell].form is Form.NUMBER else 0
            for scale, cell in zip(scales, cells, strict=True)
        ),
        merged=merged,
    )
