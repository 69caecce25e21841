"""Judging one description: what a task filter does (MESSIAHS 5.4).

The paper fills in all variables first and evaluates then, so what is judged here has every variable, in its type.
"""

import operator
from collections.abc import Callable
from typing import Any, Final

from messiahs.core.descriptions import Description
from messiahs.language.syntax import Chain, Comparison, Connective, Expression, Not, Order, Variable

Truth = Callable[[Description], bool]

OPERATIONS: Final[dict[Order, Callable[[Any, Any], bool]]] = {
    Order.LESS: operator.lt,
    Order.LESS_OR_EQUAL: operator.le,
    Order.EQUAL: operator.eq,
    Order.NOT_EQUAL: operator.ne,
    Order.GREATER_OR_EQUAL: operator.ge,
    Order.GREATER: operator.gt,
}


def truth_of(expression: Expression) -> Truth:
    """Give the function that evaluates an expression over a description with all of its variables."""
    match expression:
        case Comparison():
            return _comparison(expression)
        case Not(operand):
            truth = truth_of(operand)
            return lambda description: not truth(description)
        case Chain(connective, terms):
            return _chain(connective, tuple([truth_of(term) for term in terms]))


def _comparison(comparison: Comparison) -> Truth:
    compare, left, right = OPERATIONS[comparison.order], comparison.left, comparison.right
    match left, right:
        case Variable(name), Variable(other):
            return lambda description: compare(description[name], description[other])
        case Variable(name), _:
            return lambda description: compare(description[name], right)
        case _, Variable(name):
            return lambda description: compare(left, description[name])
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
            return lambda description: sum([truth(description) for truth in truths]) % 2 == 1


def _judge_all(truths: tuple[Truth, ...], *, decided_by: bool) -> Truth:
    def judge(description: Description) -> bool:
        for truth in truths:  # a loop, not `any`: half the frames in a deep predicate, and half the time
            if truth(description) is decided_by:
                return decided_by
        return not decided_by

    return judge
