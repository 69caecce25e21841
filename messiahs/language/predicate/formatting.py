"""The canonical form of a predicate; parsing it gives the same tree.

Parentheses are written where they are needed, and around `xor` beside `or`, which other languages order differently.
"""

from typing import Final

from messiahs.language.predicate.syntax import (
    SPELLINGS,
    Chain,
    Comparison,
    Connective,
    Expression,
    Not,
    Operand,
    Variable,
)

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\t"})
_BARE_TERMS: Final = {
    Connective.AND: frozenset[Connective](),
    Connective.XOR: frozenset({Connective.AND}),
    Connective.OR: frozenset({Connective.AND}),
}
"""The chains that need no parentheses in a chain of each connective."""


def format_predicate(expression: Expression) -> str:
    """Return an expression in canonical form, which may have more bytes or parentheses than its source."""
    match expression:
        case Comparison():
            spelling = SPELLINGS[expression.kind, expression.order]
            return f"{_operand(expression.left)} {spelling} {_operand(expression.right)}"
        case Not(operand):
            return f"not {_term(operand, frozenset())}"
        case Chain(connective, terms):
            return f" {connective} ".join([_term(term, _BARE_TERMS[connective]) for term in terms])


def format_string(value: str) -> str:
    """Return a string as a literal."""
    return f'"{value.translate(_ESCAPES)}"'


def _term(term: Expression, bare: frozenset[Connective]) -> str:
    written = format_predicate(term)
    return f"({written})" if isinstance(term, Chain) and term.connective not in bare else written


def _operand(operand: Operand) -> str:
    match operand:
        case Variable(name):
            return f"${name}"
        case str():
            return format_string(operand)
        case int():
            return str(operand)
