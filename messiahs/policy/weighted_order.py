"""A random order in which greater weights tend to come earlier."""

from collections.abc import Sequence
from typing import Final

from messiahs.core.interface.policies import Randomness

_DRAW_BITS: Final = 64


def weighted_order(weights: Sequence[int], randomness: Randomness, /, *, drawn: int) -> list[int]:
    """Return the positions of all weights (each at least 1); each draw is proportional to the remaining weights.

    After `drawn` draws the others follow in their given order. A tree of partial sums (Fenwick's) finds and removes a
    position in logarithmic time.
    """
    tree = _partial_sums(weights)
    left = sum(weights)
    order: dict[int, None] = {}
    for _ in range(min(drawn, len(weights))):
        is_last = len(order) + 1 == len(weights)
        place = _find(tree, 0 if is_last else randomness.bits(_DRAW_BITS) % left)
        _take_out(tree, place, weights[place])
        left -= weights[place]
        order[place] = None
    return [*order, *(place for place in range(len(weights)) if place not in order)]


def _partial_sums(weights: Sequence[int]) -> list[int]:
    tree = [0, *weights]
    for index in range(1, len(tree)):
        above = index + (index & -index)
        if above < len(tree):
            tree[above] += tree[index]
    return tree


def _find(tree: list[int], point: int) -> int:
    """Return the position whose weight contains a point of the sum."""
    index, step = 0, 1 << (len(tree) - 1).bit_length()
    while step:
        if index + step < len(tree) and tree[index + step] <= point:
            index += step
            point -= tree[index]
        step >>= 1
    return index


def _take_out(tree: list[int], place: int, weight: int) -> None:
    index = place + 1
    while index < len(tree):
        tree[index] -= weight
        index += index & -index
