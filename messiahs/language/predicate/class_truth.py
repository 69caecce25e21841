"""Evaluate a predicate over all classes of a vector at once, of which only intervals are known (MESSIAHS 5.4, 7.1).

The columns of the variables are in the order of `places`. Comparisons are evaluated independently, so the result may
be neither certainly true nor certainly false where a closer analysis would decide.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, NamedTuple

from messiahs.core.model.attributes import Value
from messiahs.core.vectors.columns import EVERY_CLASS, NO_CLASS, Column, Judged, opposite, unpacked
from messiahs.language.predicate.syntax import Chain, Comparison, Connective, Expression, Not, Order, Variable
from messiahs.language.predicate.truth import OPERATIONS, Places

Columns = Sequence[Column]
ClassTruth = Callable[[Columns], Judged]

Pairs = dict[tuple[int, bool, int], int]
"""Comparisons of two variables, at least or (with True) above, each with an index: they cost most, and run once."""

_JudgedPairs = Sequence[Judged]
"""The result of every pair."""
_Truth = Callable[[Columns, _JudgedPairs], Judged]


class _Bound(NamedTuple):
    """A bound of a variable by a literal; `search` finds where the greater side begins, at the literal or after it."""

    place: int
    value: Value
    search: Callable[[Sequence[Any], Any], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Lower and upper bounds implied by a conjunction."""

    floors: tuple[_Bound, ...] = ()
    ceilings: tuple[_Bound, ...] = ()


_FLOORS: Final = {
    Order.EQUAL: bisect_left,
    Order.GREATER_OR_EQUAL: bisect_left,
    Order.GREATER: bisect_right,
}
_CEILINGS: Final = {
    Order.LESS: bisect_left,
    Order.LESS_OR_EQUAL: bisect_right,
    Order.EQUAL: bisect_right,
}
_MIRRORED: Final = {
    Order.LESS: Order.GREATER,
    Order.LESS_OR_EQUAL: Order.GREATER_OR_EQUAL,
    Order.GREATER: Order.LESS,
    Order.GREATER_OR_EQUAL: Order.LESS_OR_EQUAL,
}


def class_truth_of(expression: Expression, places: Places) -> ClassTruth:
    """Return a function that evaluates an expression over classes.

    An expression is not certain for classes that may lack a variable, or have it in the other type, and impossible for
    classes that have none. Bits beyond the last class are meaningless.
    """
    pairs: Pairs = {}
    bounds, others = _parted(expression, places, pairs)
    # A variable with a lower bound has a value.
    floored = {bound.place for bound in bounds.floors}
    truth = _all(bounds, others, present=tuple(sorted({*places.values()} - floored)))
    if not pairs:
        return lambda columns: truth(columns, ())
    return lambda columns: truth(columns, [_found(columns, *pair) for pair in pairs])


def pairs_in(expression: Expression, places: Places) -> Pairs:
    """Return the comparisons of two variables that the evaluation of an expression makes."""
    pairs: Pairs = {}
    _truth_of(expression, places, pairs)
    return pairs


def _found(columns: Columns, place: int, is_above: bool, other: int) -> Judged:  # noqa: FBT001 - the parts of a pair
    this, that = columns[place], columns[other]
    return this.above_that_of(that) if is_above else this.at_least_that_of(that)


def _parted(expression: Expression, places: Places, pairs: Pairs) -> tuple[_Bounds, tuple[_Truth, ...]]:
    """Split an expression into bounds and other terms, all of which it implies."""
    match expression:
        case Chain(Connective.AND, terms):
            pass
        case term:
            terms = (term,)
    found = [(term, _bounds(term, places)) for term in terms]
    bounds = [each for _, each in found if each is not None]
    others = [_truth_of(term, places, pairs) for term, each in found if each is None]
    floors = chain.from_iterable([each.floors for each in bounds])
    ceilings = chain.from_iterable([each.ceilings for each in bounds])
    return _Bounds(floors=tuple(floors), ceilings=tuple(ceilings)), tuple(others)


def _truth_of(expression: Expression, places: Places, pairs: Pairs) -> _Truth:
    match expression:
        case Comparison():
            return _comparison(expression, places, pairs)
        case Not(operand):
            return _negation(_truth_of(operand, places, pairs))
        case Chain(Connective.AND):
            return _all(*_parted(expression, places, pairs))
        case Chain(connective, terms):
            truths = tuple([_truth_of(term, places, pairs) for term in terms])
            return _any(truths) if connective is Connective.OR else _parity(truths)


def _comparison(comparison: Comparison, places: Places, pairs: Pairs) -> _Truth:
    if comparison.order is Order.NOT_EQUAL:
        return _negation(_comparison(replace(comparison, order=Order.EQUAL), places, pairs))
    match comparison.left, comparison.right:
        case Variable(name), Variable(other):
            return _between(places[name], comparison.order, places[other], pairs)
        case (Variable(), _) | (_, Variable()):
            return _all(*_parted(comparison, places, pairs))
        case left, right:
            result = EVERY_CLASS if OPERATIONS[comparison.order](left, right) else NO_CLASS
            return lambda *_: result


def _bounds(term: Expression, places: Places) -> _Bounds | None:
    """Return the bounds that are equivalent to a comparison with a literal; None for any other term."""
    match term:
        case Comparison(left=Variable(name), order=order, right=int() | str() as value):
            pass
        case Comparison(left=int() | str() as value, order=mirrored, right=Variable(name)):
            order = _MIRRORED.get(mirrored, mirrored)
        case _:
            return None
    if order is Order.NOT_EQUAL:
        return None
    floor, ceiling = _FLOORS.get(order), _CEILINGS.get(order)
    return _Bounds(
        floors=(_Bound(places[name], value, floor),) if floor else (),
        ceilings=(_Bound(places[name], value, ceiling),) if ceiling else (),
    )


def _between(place: int, order: Order, other: int, pairs: Pairs, /) -> _Truth:
    if order in (Order.LESS, Order.LESS_OR_EQUAL):
        return _between(other, _MIRRORED[order], place, pairs)
    if order is Order.EQUAL:
        no_less = _between(place, Order.GREATER_OR_EQUAL, other, pairs)
        no_more = _between(other, Order.GREATER_OR_EQUAL, place, pairs)
        return _all(_Bounds(), (no_less, no_more))
    number = pairs.setdefault((place, order is Order.GREATER, other), len(pairs))
    return lambda _, judged_pairs: judged_pairs[number]


def _negation(truth: _Truth) -> _Truth:
    return lambda columns, judged_pairs: opposite(truth(columns, judged_pairs))


def _all(bounds: _Bounds, truths: tuple[_Truth, ...], *, present: tuple[int, ...] = ()) -> _Truth:
    """Join terms by `and`; most terms are bounds, which are evaluated in loops without function calls."""
    floors, ceilings = bounds.floors, bounds.ceilings

    def judge(columns: Columns, judged_pairs: _JudgedPairs) -> Judged:
        above, below, width = -1, 0, 0
        for place, value, search in floors:
            values, cells, width = columns[place]
            above &= cells[search(values, value)]
        for place in present:
            _, cells, width = columns[place]
            above &= cells[0]
        if not above:
            return NO_CLASS
        for place, value, search in ceilings:
            values, cells, width = columns[place]
            below |= cells[search(values, value)]
        surely, could = unpacked(above, width) if width else EVERY_CLASS
        not_below, maybe_not = unpacked(below, width)
        surely &= ~maybe_not
        could &= ~not_below
        for truth in truths:
            also_surely, also_could = truth(columns, judged_pairs)
            surely &= also_surely
            could &= also_could
            if not could:
                return NO_CLASS
        return surely, could

    return judge


def _any(truths: tuple[_Truth, ...]) -> _Truth:
    def judge(columns: Columns, judged_pairs: _JudgedPairs) -> Judged:
        surely, could = NO_CLASS
        for truth in truths:
            also_surely, also_could = truth(columns, judged_pairs)
            surely |= also_surely
            could |= also_could
        return surely, could

    return judge


def _parity(truths: tuple[_Truth, ...]) -> _Truth:
    def judge(columns: Columns, judged_pairs: _JudgedPairs) -> Judged:
        odd = unclear = 0
        for truth in truths:
            surely, could = truth(columns, judged_pairs)
            odd ^= surely
            unclear |= could & ~surely
        return odd & ~unclear, odd | unclear

    return judge
