"""Judging all classes of a vector at once, of which only intervals are known (MESSIAHS 5.4, 7.1).

The columns of the variables stand in the order of `places`. Comparisons are judged apart from each other, so something
may be neither surely true nor surely false where a closer look would decide.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, NamedTuple

from messiahs.core.attributes import Value
from messiahs.core.columns import EVERY_CLASS, NO_CLASS, Column, Judged, opposite
from messiahs.language.syntax import Chain, Comparison, Connective, Expression, Not, Order, Variable
from messiahs.language.truth import OPERATIONS, Places

Columns = Sequence[Column]
ClassTruth = Callable[[Columns], Judged]


class _Bound(NamedTuple):
    """A variable is on one side of a literal: on that of the lesser values with `is_below`.

    `search` finds where the other side begins, with the literal itself or after it.
    """

    place: int
    value: Value
    search: Callable[[Sequence[Any], Any], int]
    is_below: bool


_SIDES: Final[dict[Order, tuple[tuple[Callable[[Sequence[Any], Any], int], bool], ...]]] = {
    Order.LESS: ((bisect_left, True),),
    Order.LESS_OR_EQUAL: ((bisect_right, True),),
    Order.EQUAL: ((bisect_left, False), (bisect_right, True)),
    Order.GREATER_OR_EQUAL: ((bisect_left, False),),
    Order.GREATER: ((bisect_right, False),),
}
_MIRRORED: Final = {
    Order.LESS: Order.GREATER,
    Order.LESS_OR_EQUAL: Order.GREATER_OR_EQUAL,
    Order.GREATER: Order.LESS,
    Order.GREATER_OR_EQUAL: Order.LESS_OR_EQUAL,
}


def judged_by(truth: ClassTruth, columns: Columns, /) -> Judged:
    """Judge the classes that may have all variables in their types; surely only those that have them."""
    known = possible = -1
    for column in columns:
        known &= column.known
        possible &= column.possible
    if not possible:
        return NO_CLASS
    surely, could = truth(columns)
    return surely & known, could & possible


def class_truth_of(expression: Expression, places: Places) -> ClassTruth:
    """Give the function that evaluates an expression over columns."""
    match expression:
        case Comparison():
            return _comparison(expression, places)
        case Not(operand):
            return _negation(class_truth_of(operand, places))
        case Chain(Connective.AND, terms):
            bounds = [_bounds(term, places) for term in terms]
            others = [class_truth_of(term, places) for term, found in zip(terms, bounds, strict=True) if not found]
            return _all(tuple(chain.from_iterable(bounds)), tuple(others))
        case Chain(connective, terms):
            truths = tuple([class_truth_of(term, places) for term in terms])
            return _any(truths) if connective is Connective.OR else _parity(truths)


def _comparison(comparison: Comparison, places: Places) -> ClassTruth:
    if comparison.order is Order.NOT_EQUAL:
        return _negation(_comparison(replace(comparison, order=Order.EQUAL), places))
    match comparison.left, comparison.right:
        case Variable(name), Variable(other):
            return _between(places[name], comparison.order, places[other])
        case (Variable(), _) | (_, Variable()):
            return _all(_bounds(comparison, places), ())
        case left, right:
            result = EVERY_CLASS if OPERATIONS[comparison.order](left, right) else NO_CLASS
            return lambda _: result


def _bounds(term: Expression, places: Places) -> tuple[_Bound, ...]:
    """Give the bounds that together say the same as a comparison with a literal; none for what is anything else."""
    match term:
        case Comparison(left=Variable(name), order=order, right=int() | str() as value):
            pass
        case Comparison(left=int() | str() as value, order=mirrored, right=Variable(name)):
            order = _MIRRORED.get(mirrored, mirrored)
        case _:
            return ()
    return tuple([_Bound(places[name], value, search, is_below) for search, is_below in _SIDES.get(order, ())])


def _between(place: int, order: Order, other: int) -> ClassTruth:
    if order in (Order.LESS, Order.LESS_OR_EQUAL):
        return _between(other, _MIRRORED[order], place)
    if order is Order.GREATER_OR_EQUAL:
        return lambda columns: columns[place].at_least_that_of(columns[other])
    if order is Order.GREATER:
        return lambda columns: columns[place].above_that_of(columns[other])
    no_less, no_more = _between(place, Order.GREATER_OR_EQUAL, other), _between(other, Order.GREATER_OR_EQUAL, place)
    return _all((), (no_less, no_more))


def _negation(truth: ClassTruth) -> ClassTruth:
    return lambda columns: opposite(truth(columns))


def _all(bounds: tuple[_Bound, ...], truths: tuple[ClassTruth, ...]) -> ClassTruth:
    """Join terms by `and`; bounds are most of what is ever asked, and judged in a loop that calls nothing of ours."""

    def judge(columns: Columns) -> Judged:
        surely, could = EVERY_CLASS
        for place, value, search, is_below in bounds:
            _, unclear, _, (least, from_least), (greatest, from_greatest) = columns[place]
            if is_below:
                surely &= ~(from_greatest[search(greatest, value)] | unclear)
                could &= ~from_least[search(least, value)]
            else:
                surely &= from_least[search(least, value)]
                could &= from_greatest[search(greatest, value)] | unclear
            if not could:
                return NO_CLASS
        for truth in truths:
            also_surely, also_could = truth(columns)
            surely &= also_surely
            could &= also_could
            if not could:
                return NO_CLASS
        return surely, could

    return judge


def _any(truths: tuple[ClassTruth, ...]) -> ClassTruth:
    def judge(columns: Columns) -> Judged:
        surely, could = NO_CLASS
        for truth in truths:
            also_surely, also_could = truth(columns)
            surely |= also_surely
            could |= also_could
        return surely, could

    return judge


def _parity(truths: tuple[ClassTruth, ...]) -> ClassTruth:
    def judge(columns: Columns) -> Judged:
        odd = unclear = 0
        for truth in truths:
            surely, could = truth(columns)
            odd ^= surely
            unclear |= could & ~surely
        return odd & ~unclear, odd | unclear

    return judge
