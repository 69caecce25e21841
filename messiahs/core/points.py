"""Machine classes as points: what the loss of a compacted vector depends on, key by key, as small integers."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


class Point(NamedTuple):
    """All classes that say the same of every key: they never part.

    `cells` are positions in the scales of the keys. `mask` and `amounts` are what losses are computed from: integers
    that every scale reads its own part of, so that those of several points are put together at once, the masks by
    "or" and the amounts by addition.
    """

    cells: tuple[int, ...]
    mask: int
    amounts: int
    merged: MachineClass


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKinds:
    """Masks of the cells of one key that have something in common.

    `said` by how many of the machines say the key, `various` where strings differ already; `equal` gives for the
    position of each string the cells with the same one.
    """

    said: tuple[int, ...]
    numbers: int
    strings: int
    various: int
    equal: Mapping[int, int]


class Scale(NamedTuple):
    """The cells that occur for one key, in order, and where it stands in masks and amounts.

    In a mask, the bits of `all_cells` from `mask_shift` on say which cells occur; in amounts, those of `field` from
    `amount_shift` on count the machines of classes with a number, and the lowest ones of `field` all machines.
    """

    cells: tuple[Cell, ...]
    mask_shift: int
    all_cells: int
    amount_shift: int
    field: int
    known: dict[int, tuple[int, int]]
    """By the mask of a class, its `terms`."""
    kinds: CellKinds

    def terms(self, mask: int) -> tuple[int, int]:
        """Give what each machine of a class counts for disagreement, and the class's lowest number, from its cells."""
        kinds = self.kinds
        said = [mask & cells for cells in kinds.said]
        numbers, strings = mask & kinds.numbers, mask & kinds.strings
        is_lacking = bool(said[Said.BY_SOME]) or len([cells for cells in said if cells]) > 1
        is_various = bool(
            mask & kinds.various or (numbers and strings) or (strings and strings & ~kinds.equal[_first(strings)])
        )
        # Cells are in order: of those of one kind, the first has the lowest number.
        firsts = [_first(numbers & cells) for cells in said if numbers & cells]
        lowest = min((self.cells[first].low for first in firsts), default=0)
        terms = self.known[mask] = DISAGREEMENT_LOSS * (is_lacking + is_various), lowest
        return terms


def _first(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


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
    scales = _side_by_side([column.cells for column in columns], most=sum(weights))
    return [_point(cells, together[cells], scales=scales) for cells in sorted(together)], scales


def _side_by_side(keys: list[tuple[Cell, ...]], *, most: int) -> tuple[Scale, ...]:
    """Give every key its own bits; no amount is greater than `most`."""
    scales: list[Scale] = []
    mask_shift, width = 0, most.bit_length()
    for place, cells in enumerate(keys, start=1):
        scale = Scale(
            cells=cells,
            mask_shift=mask_shift,
            all_cells=(1 << len(cells)) - 1,
            amount_shift=place * width,
            field=(1 << width) - 1,
            kinds=_kinds_of(cells),
            known={},
        )
        scales.append(scale)
        mask_shift += len(cells)
    return tuple(scales)


def _kinds_of(cells: tuple[Cell, ...]) -> CellKinds:
    def those(is_one: Callable[[Cell], bool]) -> int:
        return sum(1 << position for position, cell in enumerate(cells) if is_one(cell))

    equal: Counter[str] = Counter()
    for position, cell in enumerate(cells):
        if cell.form is Form.STRING:
            equal[cell.string] += 1 << position
    return CellKinds(
        said=tuple(those(lambda cell, said=said: cell.said is said) for said in Said),  # type: ignore[misc]
        numbers=those(lambda cell: cell.form is Form.NUMBER),
        strings=those(lambda cell: cell.form is Form.STRING),
        various=those(lambda cell: cell.form is Form.NOTHING and cell.said is not Said.BY_NONE),
        equal={position: equal[cell.string] for position, cell in enumerate(cells) if cell.form is Form.STRING},
    )


@dataclass(frozen=True, slots=True)
class _Column:
    """One key of all places: for each of them the position of its cell in the scale."""

    cells: tuple[Cell, ...]
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


def _point(cells: tuple[int, ...], classes: list[MachineClass], *, scales: tuple[Scale, ...]) -> Point:
    merged = hull_of(classes)
    mask, amounts = 0, merged.count
    for scale, cell in zip(scales, cells, strict=True):
        mask |= 1 << scale.mask_shift + cell
        if scale.cells[cell].form is Form.NUMBER:
            amounts |= merged.count << scale.amount_shift
    return Point(cells, mask, amounts, merged)
