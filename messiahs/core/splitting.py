"""How a group of machine classes is best divided in two, so that a compacted vector stays close to the truth.

The loss of a class: each machine counts how far its own low end lies above the low end of the class, in buckets, for
each key attribute; where machines of a class disagree (strings that differ, or a key that only some of them say), each
machine of the class counts 8. The distance is `low - lowest`, and the sum of all `low` stays the same however machines
are divided; so what is compared leaves it out, and is negative where it knows much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, attrgetter, or_
from typing import Final, NamedTuple

from messiahs.core.points import Form, Point, Scale

_MACHINES_OF: Final = attrgetter("machines")
_BITS_OF: Final = attrgetter("bits")
_NUMBERS_OF: Final = attrgetter("numbers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A way to divide a group: by one cell of one key, apart or as a threshold, and by how much the loss falls."""

    gain: int
    key_position: int
    cell: int
    is_threshold: bool

    def divide(self, points: Sequence[Point]) -> tuple[list[Point], list[Point]]:
        """Give the points below the threshold (or in the cell), and the others."""
        inside: list[Point] = []
        outside: list[Point] = []
        for point in points:
            here = point.cells[self.key_position]
            is_inside = here < self.cell if self.is_threshold else here == self.cell
            (inside if is_inside else outside).append(point)
        return inside, outside


class _Summary(NamedTuple):
    """What the loss of a class depends on: machines, and per key its cells and its machines with a number."""

    machines: int
    masks: tuple[int, ...]
    numbers: tuple[int, ...]


def best_split(points: Sequence[Point], scales: Sequence[Scale]) -> Split | None:
    """Give the split that lowers the loss most; of equal ones the first by key, then by cell. None if none does."""
    if len(points) == 1:
        return None
    best: Split | None = None
    whole_loss: int | None = None
    for key_position, scale in enumerate(scales):
        parts: dict[int, list[Point]] = {}
        for point in points:
            parts.setdefault(point.cells[key_position], []).append(point)
        if len(parts) == 1:
            continue
        order = sorted(parts)
        summaries = [_summary(parts[cell]) for cell in order]
        below, above = _running(summaries), _running(summaries[::-1])[::-1]
        if whole_loss is None:
            whole_loss = _loss(above[0], scales)
        for index, cell in enumerate(order):
            is_threshold = scale.cells[cell].form is Form.NUMBER
            if is_threshold and index == 0:
                continue
            one, other = (
                (below[index - 1], above[index])
                if is_threshold
                else (summaries[index], _others(below, above, index=index))
            )
            gain = whole_loss - _loss(one, scales) - _loss(other, scales)
            if gain > (best.gain if best else 0):
                best = Split(gain=gain, key_position=key_position, cell=cell, is_threshold=is_threshold)
    return best


def _summary(points: list[Point]) -> _Summary:
    if len(points) == 1:
        return _Summary(points[0].machines, points[0].bits, points[0].numbers)
    return _Summary(
        sum(map(_MACHINES_OF, points)),
        # Few masks differ, so most of the work is that of `dict.fromkeys`.
        tuple(reduce(or_, dict.fromkeys(column)) for column in zip(*map(_BITS_OF, points), strict=True)),
        tuple(map(sum, zip(*map(_NUMBERS_OF, points), strict=True))),
    )


def _running(summaries: list[_Summary]) -> list[_Summary]:
    running = summaries[:1]
    for summary in summaries[1:]:
        running.append(_both(running[-1], summary))
    return running


def _others(below: list[_Summary], above: list[_Summary], *, index: int) -> _Summary:
    if index == 0:
        return above[1]
    return below[-2] if index == len(below) - 1 else _both(below[index - 1], above[index + 1])


def _both(one: _Summary, other: _Summary) -> _Summary:
    return _Summary(
        one.machines + other.machines,
        tuple(map(or_, one.masks, other.masks)),
        tuple(map(add, one.numbers, other.numbers)),
    )


def _loss(summary: _Summary, scales: Sequence[Scale]) -> int:
    loss = 0
    for scale, mask, numbers in zip(scales, summary.masks, summary.numbers, strict=True):
        each, lowest = scale.terms(mask)
        loss += each * summary.machines - lowest * numbers
    return loss
