"""How a group of machine classes is best divided in two, so that a compacted vector stays close to the truth.

The loss of a class: each machine counts how far its own low end lies above the low end of the class, in buckets, for
each key attribute; where machines of a class disagree (strings that differ, or a key that only some of them say), each
machine of the class counts 8. The distance is `low - lowest`, and the sum of all `low` stays the same however machines
are divided; so what is compared leaves it out, and is negative where it knows much.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import attrgetter, or_
from typing import Final

from messiahs.core.points import Form, Point, Scale

_MASK_OF: Final = attrgetter("mask")
_AMOUNTS_OF: Final = attrgetter("amounts")


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


def best_split(points: Sequence[Point], scales: Sequence[Scale], *, least: int = 1) -> Split | None:
    """Give the split that lowers the loss most; of equal ones the first by key, then by cell. None if none does.

    Both sides have at least so many machines.
    """
    if len(points) == 1:
        return None
    whole = reduce(or_, map(_MASK_OF, points)), sum(map(_AMOUNTS_OF, points))
    whole_loss = _loss(*whole, scales)
    best: Split | None = None
    for key_position, scale in enumerate(scales):
        for cell, one, other in _divisions(points, key_position, whole_amounts=whole[1], scale=scale):
            # The lowest bits of the amounts count all machines.
            if min(one[1] & scale.field, other[1] & scale.field) < least:
                continue
            gain = whole_loss - _loss(*one, scales) - _loss(*other, scales)
            if gain > (best.gain if best else 0):
                is_threshold = scale.cells[cell].form is Form.NUMBER
                best = Split(gain=gain, key_position=key_position, cell=cell, is_threshold=is_threshold)
    return best


_Tally = tuple[int, int]
"""Mask and amounts of several points together."""


def _divisions(
    points: Sequence[Point], key_position: int, *, whole_amounts: int, scale: Scale
) -> Iterator[tuple[int, _Tally, _Tally]]:
    """Give every way to divide points by one key: the cell, what is below the threshold (or in it), and the rest."""
    masks: dict[int, int] = {}
    amounts: dict[int, int] = {}
    for cells, mask, amount, _ in points:
        cell = cells[key_position]
        masks[cell] = masks.get(cell, 0) | mask
        amounts[cell] = amounts.get(cell, 0) + amount
    if len(masks) == 1:
        return
    order = sorted(masks)
    from_here_up = list(accumulate((masks[cell] for cell in reversed(order)), or_, initial=0))[::-1]
    mask_below = amount_below = 0
    for index, cell in enumerate(order):
        if scale.cells[cell].form is not Form.NUMBER:
            rest = mask_below | from_here_up[index + 1], whole_amounts - amounts[cell]
            yield cell, (masks[cell], amounts[cell]), rest
        elif index:
            yield cell, (mask_below, amount_below), (from_here_up[index], whole_amounts - amount_below)
        mask_below |= masks[cell]
        amount_below += amounts[cell]


def _loss(mask: int, amounts: int, scales: Sequence[Scale]) -> int:
    loss = 0
    for scale in scales:
        _, mask_shift, all_cells, amount_shift, field, known, _ = scale
        here = mask >> mask_shift & all_cells
        each, lowest = known.get(here) or scale.terms(here)
        if each:
            loss += each * (amounts & field)
        if lowest:
            loss -= lowest * (amounts >> amount_shift & field)
    return loss
