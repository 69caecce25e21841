"""The statistics of a history by their definitions: exact fractions over all values, with nothing summed up before."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from messiahs.core.model.instants import SECOND
from messiahs.core.model.series import PANES

Heard = tuple[int, int | None]
"""An instant, and the value from then on; None: no value is known."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A value, and the part of the window for which it held; `run` tells periods without a change apart."""

    value: int
    held: Fraction
    run: int


def by_definition(heard: Sequence[Heard], length_ns: int, now: int) -> dict[str, int]:
    """Return count, mean, deviation and permanence at `now` of values in the order of their instants."""
    begin = window_start(heard, length_ns, now)
    pieces = list(_pieces(heard, begin, now))
    known = sum((piece.held for piece in pieces), Fraction())
    if not known:
        return {}
    mean = sum((piece.value * piece.held for piece in pieces), Fraction()) / known
    variance = sum(((piece.value - mean) ** 2 * piece.held for piece in pieces), Fraction()) / known
    is_counted = begin if begin is not None else heard[0][0] - 1
    return {
        "count": sum(value is not None and at > is_counted for at, value in heard),
        "mean": floor(mean + Fraction(1, 2)),
        "sd": _root(variance),
        "permanence": floor(known / len({piece.run for piece in pieces}) / SECOND),
    }


def window_start(heard: Sequence[Heard], length_ns: int, now: int) -> int | None:
    """Return the end of a pane from which on values count, more than `length_ns` ago; None: all of them count."""
    pane_ns = length_ns // PANES
    begin = ((now - 1) // pane_ns - PANES) * pane_ns
    return begin if begin >= heard[0][0] else None


def _pieces(heard: Sequence[Heard], begin: int | None, now: int) -> list[Piece]:
    pieces: list[Piece] = []
    run, before = 0, None
    ends = [at for at, _ in heard[1:]] + [now]
    for (at, value), end in zip(heard, ends, strict=True):
        run += value != before
        before = value
        start = at if begin is None else max(at, begin)
        # A run that begins now counts, and one that ended when the window began does not.
        if value is not None and (end > start or (end == start == now)):
            pieces.append(Piece(value, Fraction(end - start), run))
    return pieces


def _root(variance: Fraction) -> int:
    """Return the greatest integer whose square is at most the variance, by bisection."""
    low, high = 0, 1
    while high * high <= variance:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle * middle <= variance else (low, middle)
    return low
