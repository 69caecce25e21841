"""The best division of a group of machine classes in two, so that a compacted vector loses little precision.

The loss of a class: for each key attribute, each machine counts the distance in buckets of its own low end above the
low end of the class. Where machines of a class disagree (on a string, or on whether the key is reported), each of them
counts 8. The distance is `low - lowest`, and the sum of all `low` does not depend on the division, so it is left out of
comparisons. The *worth* of a group is `sum of lowest` less the disagreement of one machine, times its machines; the
gain of a split is the worth of the two sides less that of the whole.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, compress
from operator import add, attrgetter, itemgetter, mul, ne, neg, or_
from typing import Final, NamedTuple

from messiahs.core.vectors.compaction_points import NO_NUMBER, Cell, Disagreement, Form, Point, Scale

_MASK_OF: Final = attrgetter("mask")
_MACHINES_OF: Final = attrgetter("machines")
_LOWS_OF: Final = attrgetter("lows")
_MOMENT_OF: Final = attrgetter("moment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A division of a group by one cell of one key, apart or as a threshold, and the loss that it saves."""

    gain: int
    key_position: int
    cell: int
    is_threshold: bool

    def at(self, cells: Sequence[Cell], cell: Cell) -> "Split":
        """Return the same split after its cell has moved to another position."""
        if self.cell < len(cells) and cells[self.cell] == cell:
            return self
        return replace(self, cell=bisect_left(cells, cell))

    def divide(self, points: Sequence[Point]) -> tuple[list[Point], list[Point]]:
        """Return the points below the threshold (or in the cell), and the others."""
        inside: list[Point] = []
        outside: list[Point] = []
        for point in points:
            here = point.cells[self.key_position]
            is_inside = here < self.cell if self.is_threshold else here == self.cell
            (inside if is_inside else outside).append(point)
        return inside, outside


class _Candidate(NamedTuple):
    """A division by one key: the worth of both sides together, and the machines of the smaller side."""

    worth: int
    cell: int
    fewest: int


class _Tally(NamedTuple):
    """Several points together: by column, `lows` has the lowest number and `amounts` the machines with a number."""

    mask: int
    machines: int
    lows: tuple[int, ...]
    amounts: tuple[int, ...]


class Group:
    """Points that form one class so far, as parallel columns in the order of the points."""

    __slots__ = ("_amounts", "_counts", "_disagreement", "_is_agreed", "_lows", "_masks", "_points", "_worth", "loss")

    def __init__(self, points: Sequence[Point], disagreement: Disagreement) -> None:
        self._points, self._disagreement = points, disagreement
        self._counts = list(map(_MACHINES_OF, points))
        self._masks = list(map(_MASK_OF, points))
        self._lows = [column for column in zip(*map(_LOWS_OF, points), strict=True) if min(column) != NO_NUMBER]
        self._amounts = [
            [count if low != NO_NUMBER else 0 for count, low in zip(self._counts, column, strict=True)]
            if NO_NUMBER in column
            else self._counts
            for column in self._lows
        ]
        whole = self._tally(range(len(points)))
        self._is_agreed = not disagreement[whole.mask]
        self._worth = self._worth_of(whole)
        self.loss = sum(map(_MOMENT_OF, points)) - self._worth
        """The upper bound of the gain of any split."""

    def best_split(self, scales: Sequence[Scale], *, least: int = 1) -> Split | None:
        """Return the split with the greatest gain, of equal ones the first by key, then by cell; None without a gain.

        Both sides have at least `least` machines.
        """
        best: Split | None = None
        gain = 0
        for key_position, scale in enumerate(scales):
            cells = [point.cells[key_position] for point in self._points]
            for candidate in self._candidates(cells, scale, least=least):
                if candidate.worth - self._worth > gain:
                    gain = candidate.worth - self._worth
                    is_threshold = scale.cells[candidate.cell].form is Form.NUMBER
                    best = Split(gain=gain, key_position=key_position, cell=candidate.cell, is_threshold=is_threshold)
        return best

    def _candidates(self, cells: list[int], scale: Scale, *, least: int) -> Iterator[_Candidate]:
        """Yield divisions by one key, the best one among them, in order of the cells."""
        distinct = sorted(set(cells))
        if len(distinct) == 1:
            return
        is_plain = scale.cells[distinct[0]].presence is scale.cells[distinct[-1]].presence
        if is_plain and scale.cells[distinct[0]].form is scale.cells[distinct[-1]].form is Form.NUMBER:
            yield from self._best_threshold(cells, least=least)
        else:
            yield from (each for each in self._divisions(cells, distinct, scale) if each.fewest >= least)

    def _best_threshold(self, cells: list[int], *, least: int) -> Iterator[_Candidate]:
        """Yield the best division by a key with a number in all points, the first of several."""
        order = sorted(range(len(cells)), key=cells.__getitem__)
        back = order[::-1]
        below, from_here_up = self._worths(order), self._worths(back)[::-1]
        # The threshold at a position separates the points before it.
        ordered = list(map(cells.__getitem__, order))
        worths = list(map(add, below, from_here_up[1:]))
        is_boundary = list(map(ne, ordered, ordered[1:]))
        if least > 1:
            fronts = list(accumulate(map(self._counts.__getitem__, order)))
            is_boundary = [
                is_one and min(front, fronts[-1] - front) >= least
                for is_one, front in zip(is_boundary, fronts, strict=False)
            ]
        allowed = list(compress(worths, is_boundary))
        if allowed:
            best = max(allowed)
            yield _Candidate(best, list(compress(ordered[1:], is_boundary))[allowed.index(best)], least)

    def _worths(self, order: list[int]) -> list[int]:
        """Return the worths of the first point in an order, of the first two points, and so on."""
        machines = list(accumulate(map(self._counts.__getitem__, order)))
        each: list[int] | None = None
        more: list[int] | None = None
        if not self._is_agreed:
            masks = accumulate(map(self._masks.__getitem__, order), or_)
            each = list(map(neg, map(self._disagreement.__getitem__, masks)))
        for lows, amounts in zip(self._lows, self._amounts, strict=True):
            lowest = accumulate(map(lows.__getitem__, order), min)
            if amounts is self._counts:
                each = list(map(add, each, lowest)) if each is not None else list(lowest)
            else:
                worth = map(mul, lowest, accumulate(map(amounts.__getitem__, order)))
                more = list(map(add, more, worth)) if more is not None else list(worth)
        worths = list(map(mul, machines, each)) if each is not None else [0] * len(order)
        return list(map(add, worths, more)) if more is not None else worths

    def _divisions(self, cells: list[int], distinct: list[int], scale: Scale) -> Iterator[_Candidate]:
        """Yield every division by a key: a cell and all others, or at a number the cells below and the others."""
        members: dict[int, list[int]] = {cell: [] for cell in distinct}
        for index, cell in enumerate(cells):
            members[cell].append(index)
        tallies = [self._tally(indices) for indices in members.values()]
        below: list[_Tally | None] = [None, *accumulate(tallies, _together)]
        from_here_up: list[_Tally | None] = [None, *accumulate(tallies[::-1], _together)][::-1]
        for place, cell in enumerate(distinct):
            one: _Tally | None
            if scale.cells[cell].form is not Form.NUMBER:
                one, other = tallies[place], _joined(below[place], from_here_up[place + 1])
            else:
                one, other = below[place], from_here_up[place]
            if one is not None and other is not None:
                worth = self._worth_of(one) + self._worth_of(other)
                yield _Candidate(worth, cell, min(one.machines, other.machines))

    def _tally(self, indices: Sequence[int]) -> _Tally:
        if len(indices) == 1:
            (index,) = indices
            mask, machines = self._masks[index], self._counts[index]
            return _Tally(
                mask, machines, tuple(map(itemgetter(index), self._lows)), tuple(map(itemgetter(index), self._amounts))
            )
        pick = itemgetter(*indices)
        return _Tally(
            reduce(or_, pick(self._masks)),
            sum(pick(self._counts)),
            tuple(min(pick(lows)) for lows in self._lows),
            tuple(sum(pick(amounts)) for amounts in self._amounts),
        )

    def _worth_of(self, tally: _Tally) -> int:
        worth: int = sum(map(mul, tally.lows, tally.amounts))
        return worth - self._disagreement[tally.mask] * tally.machines


def _together(one: _Tally, other: _Tally) -> _Tally:
    return _Tally(
        one.mask | other.mask,
        one.machines + other.machines,
        tuple(map(min, one.lows, other.lows)),
        tuple(map(add, one.amounts, other.amounts)),
    )


def _joined(one: _Tally | None, other: _Tally | None) -> _Tally | None:
    return _together(one, other) if one is not None and other is not None else one or other
