"""The requirement of a task on its machine, as a demand beside those of a policy (MESSIAHS 5.4)."""

from dataclasses import replace

from messiahs.core.model.attributes import Kind
from messiahs.language.explaining.pool import Demand
from messiahs.language.predicate.formatting import format_predicate
from messiahs.language.predicate.predicates import ParsedPredicate
from messiahs.language.predicate.syntax import (
    ALWAYS,
    Chain,
    Comparison,
    Connective,
    Expression,
    Not,
    Operand,
    Variable,
    uses_of,
)
from messiahs.language.runtime.conditions import condition_of
from messiahs.language.runtime.readings import MACHINE, Reading
from messiahs.language.syntax.written import Compound, Joint, Term, Written


def demands_of_task(requirement: ParsedPredicate, /) -> tuple[Demand, ...]:
    """Return the demands of a task on its machine; none if its requirement is empty."""
    if requirement.expression == ALWAYS:
        return ()
    return (_demand(requirement.expression, text=requirement.text),)


def demands_apart(requirement: ParsedPredicate, /) -> tuple[Demand, ...]:
    """Return the same with a demand for each part that has to be true.

    The same machines match them; to try another value in one, only that one is evaluated again.
    """
    whole = requirement.expression
    if not isinstance(whole, Chain) or whole.connective is not Connective.AND:
        return demands_of_task(requirement)
    return tuple(_demand(part, text=format_predicate(part)) for part in whole.terms)


def _demand(part: Expression, *, text: str) -> Demand:
    readings = tuple(_reading(name, kind) for name, kind in uses_of(part))
    condition = condition_of(_over_machines(part), readings, text=text, written=_written(part))
    return Demand(conditions=(condition,), scope=MACHINE)


def _reading(name: str, kind: Kind) -> Reading:
    # Requirements have no quantities; their values are plain numbers.
    return Reading(scope=MACHINE, name=name, kind=kind)


def _over_machines(expression: Expression) -> Expression:
    """Return the same expression over the keys of readings."""
    match expression:
        case Comparison(kind=kind, left=left, right=right):
            return replace(expression, left=_operand(left, kind), right=_operand(right, kind))
        case Not(operand):
            return Not(_over_machines(operand))
        case Chain(connective, terms):
            return Chain(connective, tuple([_over_machines(term) for term in terms]))


def _operand(operand: Operand, kind: Kind) -> Operand:
    return Variable(_reading(operand.name, kind).key) if isinstance(operand, Variable) else operand


def _written(expression: Expression) -> Written:
    match expression:
        case Comparison():
            return Term(text=format_predicate(expression), start=0, expression=_over_machines(expression))
        case Not(operand):
            return Compound(joint=Joint.NOT, parts=(_written(operand),))
        case Chain(connective, terms):
            return Compound(joint=Joint(connective.value), parts=tuple([_written(term) for term in terms]))
