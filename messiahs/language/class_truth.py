"""Judging a class of machines, of which only intervals are known (MESSIAHS 5.4, 7.1).

A verdict is True when every machine of the class satisfies an expression, False when none does, None when that is open.
Comparisons are judged apart from each other, so a verdict may be None where a closer look would decide.
"""

from collections.abc import Callable, Mapping
from typing import Final

from messiahs.core.attributes import Value
from messiahs.core.buckets import highest_in, lowest_in
from messiahs.core.vectors import VARIOUS, ClassValue, Interval, MachineClass
from messiahs.language.syntax import Chain, Comparison, Connective, Expression, Not, Operand, Order, Variable
from messiahs.language.truth import OPERATIONS

Span = tuple[Value, Value] | None
"""The least and the greatest value that an attribute may have; None when nothing is known of it."""

Spans = Mapping[str, Span]
Verdict = bool | None
ClassTruth = Callable[[Spans], Verdict]

_MIRRORED: Final = {Order.GREATER: Order.LESS, Order.GREATER_OR_EQUAL: Order.LESS_OR_EQUAL}


def spans_in(
    machine_class: MachineClass, *, integers: tuple[str, ...], strings: tuple[str, ...]
) -> dict[str, Span] | None:
    """Give what a class tells of each variable; None when no machine of it can have all of them in their types.

    What some or all machines lack may only have been withheld, and `VARIOUS` may stand for both types.
    """
    if not integers and not strings:
        return {}  # most tasks require nothing, and are compared with very many classes
    said = dict(machine_class.attributes)
    spans: dict[str, Span] = {}
    for kind, names in ((Interval, integers), (str, strings)):
        for name in names:
            value = VARIOUS if name in machine_class.some_lack else said.get(name, VARIOUS)
            if name in spans or not (value is VARIOUS or isinstance(value, kind)):
                return None
            spans[name] = _span(value)
    return spans


def _span(value: ClassValue) -> Span:
    if isinstance(value, Interval):
        return (lowest_in(value.low), highest_in(value.high))
    return (value, value) if isinstance(value, str) else None


def class_truth_of(expression: Expression) -> ClassTruth:
    """Give the function from spans to the verdict on an expression."""
    match expression:
        case Comparison():
            return _comparison(expression)
        case Not(operand):
            return _negation(class_truth_of(operand))
        case Chain(Connective.XOR, terms):
            return _parity(tuple([class_truth_of(term) for term in terms]))
        case Chain(connective, terms):
            truths = tuple([class_truth_of(term) for term in terms])
            return _judge_all(truths, decided_by=connective is Connective.OR)


def _comparison(comparison: Comparison) -> ClassTruth:
    left, order, right = comparison.left, comparison.order, comparison.right
    if order in _MIRRORED:
        left, order, right = right, _MIRRORED[order], left
    if order is Order.EQUAL:
        return _equality(left, right)
    if order is Order.NOT_EQUAL:
        return _negation(_equality(left, right))
    compare, left_span, right_span = OPERATIONS[order], _span_of(left), _span_of(right)

    def judge(spans: Spans) -> Verdict:
        one, other = left_span(spans), right_span(spans)
        if one is None or other is None:
            return None
        if compare(one[1], other[0]):
            return True
        return None if compare(one[0], other[1]) else False

    return judge


def _equality(left: Operand, right: Operand) -> ClassTruth:
    less, left_span, right_span = OPERATIONS[Order.LESS], _span_of(left), _span_of(right)

    def judge(spans: Spans) -> Verdict:
        one, other = left_span(spans), right_span(spans)
        if one is None or other is None:
            return None
        if less(one[1], other[0]) or less(other[1], one[0]):
            return False
        return True if one[0] == other[1] and one[1] == other[0] else None

    return judge


def _span_of(operand: Operand) -> Callable[[Spans], Span]:
    if isinstance(operand, Variable):
        name = operand.name
        return lambda spans: spans[name]
    point = (operand, operand)
    return lambda _: point


def _negation(truth: ClassTruth) -> ClassTruth:
    def judge(spans: Spans) -> Verdict:
        verdict = truth(spans)
        return None if verdict is None else not verdict

    return judge


def _parity(truths: tuple[ClassTruth, ...]) -> ClassTruth:
    def judge(spans: Spans) -> Verdict:
        is_odd = False
        for truth in truths:
            verdict = truth(spans)
            if verdict is None:
                return None
            is_odd ^= verdict
        return is_odd

    return judge


def _judge_all(truths: tuple[ClassTruth, ...], *, decided_by: bool) -> ClassTruth:
    def judge(spans: Spans) -> Verdict:
        result: Verdict = not decided_by
        for truth in truths:
            verdict = truth(spans)
            if verdict is decided_by:
                return verdict
            if verdict is None:
                result = None
        return result

    return judge
