"""Judging all classes of a vector at once, of which only intervals are known (MESSIAHS 5.4, 7.1).

The columns of the variables stand in the order of `places`. Comparisons are judged apart from each other, so something
may be neither surely true nor surely false where a closer look would decide.
"""

from collections.abc import Callable, Sequence
from typing import Final

from messiahs.core.attributes import Value
from messiahs.core.columns import EVERY_CLASS, NO_CLASS, Column, Judged, opposite
from messiahs.language.syntax import Chain, Comparison, Connective, Expression, Not, Operand, Order, Variable
from messiahs.language.truth import OPERATIONS, Places

Columns = Sequence[Column]
ClassTruth = Callable[[Columns], Judged]

_MIRRORED: Final = {
    Order.LESS: Order.GREATER,
    Order.LESS_OR_EQUAL: Order.GREATER_OR_EQUAL,
    Order.GREATER: Order.LESS,
    Order.GREATER_OR_EQUAL: Order.LESS_OR_EQUAL,
}
_NEGATED: Final = {
    Order.LESS: Order.GREATER_OR_EQUAL,
    Order.LESS_OR_EQUAL: Order.GREATER,
    Order.NOT_EQUAL: Order.EQUAL,
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
        case Comparison(left=left, order=order, right=right):
            return _comparison(left, order, right, places=places)
        case Not(operand):
            return _negation(class_truth_of(operand, places))
        case Chain(connective, terms):
            truths = tuple([class_truth_of(term, places) for term in terms])
            return {Connective.AND: _all, Connective.OR: _any, Connective.XOR: _parity}[connective](truths)


def _comparison(left: Operand, order: Order, right: Operand, /, *, places: Places) -> ClassTruth:
    match left, right:
        case Variable(name), Variable(other):
            return _between(places[name], order, places[other])
        case Variable(name), (int() | str()) as value:
            return _with_literal(places[name], order, value)
        case (int() | str()) as value, Variable(name):
            return _with_literal(places[name], _MIRRORED.get(order, order), value)
        case _:
            result = EVERY_CLASS if OPERATIONS[order](left, right) else NO_CLASS
            return lambda _: result


def _with_literal(place: int, order: Order, value: Value) -> ClassTruth:
    match order:
        case Order.GREATER_OR_EQUAL:
            return lambda columns: columns[place].at_least(value)
        case Order.GREATER:
            return lambda columns: columns[place].above(value)
        case Order.EQUAL:
            return lambda columns: _both(columns[place].at_least(value), opposite(columns[place].above(value)))
        case _:
            return _negation(_with_literal(place, _NEGATED[order], value))


def _between(place: int, order: Order, other: int) -> ClassTruth:
    match order:
        case Order.GREATER_OR_EQUAL:
            return lambda columns: columns[place].at_least_that_of(columns[other])
        case Order.GREATER:
            return lambda columns: columns[place].above_that_of(columns[other])
        case Order.EQUAL:
            at_least = _between(place, Order.GREATER_OR_EQUAL, other)
            above = _between(place, Order.GREATER, other)
            return lambda columns: _both(at_least(columns), opposite(above(columns)))
        case _:
            return _negation(_between(place, _NEGATED[order], other))


def _both(one: Judged, other: Judged) -> Judged:
    return one[0] & other[0], one[1] & other[1]


def _negation(truth: ClassTruth) -> ClassTruth:
    return lambda columns: opposite(truth(columns))


def _all(truths: tuple[ClassTruth, ...]) -> ClassTruth:
    def judge(columns: Columns) -> Judged:
        surely, could = EVERY_CLASS
        for truth in truths:
            also_surely, also_could = truth(columns)
            surely &= also_surely
            could &= also_could
            if not could:
                break
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
