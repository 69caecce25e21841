"""Evaluate a predicate over one row of values, as a task filter does (MESSIAHS 5.4).

The paper fills in all variables before the evaluation, so a row has a value for every variable, in its type. `places`
maps the variables of an expression to positions in the row.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from messiahs.core.interface.predicates import Truth, Values
from messiahs.language.predicate.syntax import Chain, Comparison, Connective, Expression, Not, Order, Variable

Places = Mapping[str, int]

OPERATIONS: Final[dict[Order, Callable[[Any, Any], bool]]] = {
    Order.LESS: operator.lt,
    Order.LESS_OR_EQUAL: operator.le,
    Order.EQUAL: operator.eq,
    Order.NOT_EQUAL: operator.ne,
    Order.GREATER_OR_EQUAL: operator.ge,
    Order.GREATER: operator.gt,
}


def truth_of(expression: Expression, places: Places) -> Truth:
    """Return a function that walks an expression: quick to create, and several times slower than generated code."""
    match expression:
        case Comparison():
            return _comparison(expression, places)
        case Not(operand):
            truth = truth_of(operand, places)
            return lambda values: not truth(values)
        case Chain(connective, terms):
            return _chain(connective, tuple([truth_of(term, places) for term in terms]))


def _comparison(comparison: Comparison, places: Places) -> Truth:
    compare, left, right = OPERATIONS[comparison.order], comparison.left, comparison.right
    match left, right:
        case Variable(name), Variable(other_name):
            place, other = places[name], places[other_name]
            return lambda values: compare(values[place], values[other])
        case Variable(name), _:
            place = places[name]
            return lambda values: compare(values[place], right)
        case _, Variable(name):
            place = places[name]
            return lambda values: compare(left, values[place])
        case _:
            result = compare(left, right)
            return lambda _: result


def _chain(connective: Connective, truths: tuple[Truth, ...]) -> Truth:
    match connective:
        case Connective.AND:
            return _judge_all(truths, decided_by=False)
        case Connective.OR:
            return _judge_all(truths, decided_by=True)
        case Connective.XOR:
            return lambda values: sum([truth(values) for truth in truths]) % 2 == 1


def _judge_all(truths: tuple[Truth, ...], *, decided_by: bool) -> Truth:
    def judge(values: Values) -> bool:
        for truth in truths:  # a loop, not `any`: half the frames in a deep predicate, and half the time
            if truth(values) is decided_by:
                return decided_by
        return not decided_by

    return judge
