"""The syntax tree of a predicate (MESSIAHS 5.4).

Chains of one connective are flat, so the depth of a tree is the nesting of its text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from messiahs.core.model.attributes import Kind, Value


class Order(StrEnum):
    """The relation that a comparator tests, for both types; strings are ordered by code point."""

    LESS = "less"
    LESS_OR_EQUAL = "less or equal"
    EQUAL = "equal"
    NOT_EQUAL = "not equal"
    GREATER_OR_EQUAL = "greater or equal"
    GREATER = "greater"


class Connective(StrEnum):
    """The binary logical operators, from the tightest to the loosest."""

    AND = "and"
    XOR = "xor"
    OR = "or"


COMPARATORS: Final = {
    "<": (Kind.INTEGER, Order.LESS),
    "<=": (Kind.INTEGER, Order.LESS_OR_EQUAL),
    "=": (Kind.INTEGER, Order.EQUAL),
    "<>": (Kind.INTEGER, Order.NOT_EQUAL),
    ">=": (Kind.INTEGER, Order.GREATER_OR_EQUAL),
    ">": (Kind.INTEGER, Order.GREATER),
    "ls": (Kind.STRING, Order.LESS),
    "le": (Kind.STRING, Order.LESS_OR_EQUAL),
    "eq": (Kind.STRING, Order.EQUAL),
    "ne": (Kind.STRING, Order.NOT_EQUAL),
    "ge": (Kind.STRING, Order.GREATER_OR_EQUAL),
    "gr": (Kind.STRING, Order.GREATER),
}
"""The comparators, each with the type of both its operands."""

SPELLINGS: Final = {meaning: word for word, meaning in COMPARATORS.items()}


@dataclass(frozen=True, slots=True)
class Variable:
    """An attribute whose value comes from a description; `name` is written without `$`."""

    name: str


Operand = Variable | int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two operands of one type; a literal among them is of that type."""

    kind: Kind
    left: Operand
    order: Order
    right: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """True when its operand is false."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Chain:
    """Terms joined by one connective; no term is itself a chain of the same connective."""

    connective: Connective
    terms: "tuple[Expression, ...]"


Expression = Comparison | Not | Chain

ALWAYS: Final = Chain(Connective.AND, ())
"""The empty predicate, which is always true."""


def chain(connective: Connective, terms: Iterable[Expression]) -> Chain:
    """Join terms in their order; all three connectives are associative, so chains of the same one are merged."""
    flat: list[Expression] = []
    for term in terms:
        if isinstance(term, Chain) and term.connective is connective:
            flat.extend(term.terms)
        else:
            flat.append(term)
    return Chain(connective, tuple(flat))


def comparisons_of(expression: Expression) -> Iterator[Comparison]:
    """Yield every comparison, in the order of the text."""
    waiting: list[Expression] = [expression]
    while waiting:
        match waiting.pop():
            case Comparison() as comparison:
                yield comparison
            case Not(operand):
                waiting.append(operand)
            case Chain(_, terms):
                waiting.extend(reversed(terms))


def uses_of(expression: Expression) -> tuple[tuple[str, Kind], ...]:
    """Return every variable with the type of its comparators, sorted; twice if it is compared as both."""
    return tuple(
        sorted(
            {
                (operand.name, comparison.kind)
                for comparison in comparisons_of(expression)
                for operand in (comparison.left, comparison.right)
                if isinstance(operand, Variable)
            }
        )
    )


def kind_of(value: Value) -> Kind:
    """Return the type of a literal."""
    return Kind.STRING if isinstance(value, str) else Kind.INTEGER
