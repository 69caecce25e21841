"""Parse a text to a syntax tree, by the grammar in this folder (MESSIAHS 5.4)."""

import re
from functools import cache
from typing import Final, cast

from lark import Lark, Token, Transformer, UnexpectedToken

from messiahs.core.model.attributes import Kind, Value
from messiahs.errors import PredicateError
from messiahs.language.predicate.error_messages import NO_ARITHMETIC, before, misplaced
from messiahs.language.predicate.limits import TooMuchError
from messiahs.language.predicate.source_places import error_at
from messiahs.language.predicate.syntax import (
    ALWAYS,
    COMPARATORS,
    SPELLINGS,
    Comparison,
    Connective,
    Expression,
    Not,
    Operand,
    Variable,
    chain,
    kind_of,
)
from messiahs.language.predicate.words import Words

_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "t": "\t"}


def parse_expression(text: str) -> Expression:
    """Return the tree of a text; a text of white space is always true. Raises PredicateError."""
    try:
        return cast("Expression", predicate_grammar().parse(text, "start"))
    except UnexpectedToken as mistake:
        raise _misplaced(text, mistake) from None
    except TooMuchError as mistake:
        raise error_at(text, mistake.word.start_pos or 0, str(mistake)) from None
    except _MistypedError as mistake:
        raise _type_error(text, mistake.operand, mistake.comparator) from None


def parse_literal(text: str) -> Value:
    """Return the value of an integer or of a string in double quotes. Raises PredicateError."""
    try:
        return cast("Value", predicate_grammar().parse(text, "literal"))
    except UnexpectedToken:
        raise error_at(text, 0, "this is not a literal", "write an integer, or a string in double quotes") from None


def unescaped(quoted_string: str) -> str:
    """Return the string of a literal in double quotes."""
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), quoted_string[1:-1])


@cache
def predicate_grammar() -> Lark:
    """Return the grammar of predicates, which builds their trees; it is created once."""
    builder = cast("Transformer[Token, Expression]", _Builder())
    starts = ["start", "literal"]
    return Lark.open_from_package(
        __name__, "grammar.lark", parser="lalr", lexer=Words, transformer=builder, start=starts
    )


def _misplaced(text: str, mistake: UnexpectedToken) -> PredicateError:
    """Return the error for a word that is not allowed in its position, based on the allowed ones."""
    token = mistake.token
    if token.type == "INTEGER" and token.startswith("-"):
        return error_at(text, token.start_pos, "`-` has no meaning here", NO_ARITHMETIC)
    explanation = misplaced(token, mistake.accepts, example="$mem <= 4000000")
    message, hint = explanation or (f"`and`, `xor` or `or` is missing {before(token)}", "")
    return error_at(text, len(text.rstrip()) if token.type == "$END" else token.start_pos, message, hint)


class _Builder:
    """Makes the tree of each rule of the grammar as soon as it is read, of those of its parts."""

    @staticmethod
    def start(parts: list[Expression]) -> Expression:
        """Give the whole predicate."""
        return parts[0] if parts else ALWAYS

    @staticmethod
    def literal(parts: list[Token]) -> Value:
        """Give the value of a literal that is a text of its own."""
        return _value(parts[0])

    @staticmethod
    def disjunction(parts: list[Expression]) -> Expression:
        """Join terms by the `or` between them."""
        return chain(Connective.OR, parts[::2])

    @staticmethod
    def exclusion(parts: list[Expression]) -> Expression:
        """Join terms by the `xor` between them."""
        return chain(Connective.XOR, parts[::2])

    @staticmethod
    def conjunction(parts: list[Expression]) -> Expression:
        """Join terms by the `and` between them."""
        return chain(Connective.AND, parts[::2])

    @staticmethod
    def negation(parts: list[Expression]) -> Expression:
        """Negate a term behind its `not`."""
        return Not(parts[1])

    @staticmethod
    def group(parts: list[Expression]) -> Expression:
        """Take the parentheses away."""
        return parts[1]

    @staticmethod
    def comparison(parts: list[Token]) -> Expression:
        """Compare two operands. Raises _MistypedError."""
        left, token, right = parts
        comparator = token.value
        kind, order = COMPARATORS[comparator]
        return Comparison(
            kind=kind, left=_operand(left, comparator, kind), order=order, right=_operand(right, comparator, kind)
        )


class _MistypedError(Exception):
    """An operand is a literal of another type than its comparator compares."""

    def __init__(self, operand: Token, comparator: str) -> None:
        super().__init__(operand, comparator)
        self.operand, self.comparator = operand, comparator


def _operand(token: Token, comparator: str, kind: Kind) -> Operand:
    if token.type == "VARIABLE":
        return Variable(token[1:])
    literal = _value(token)
    if kind_of(literal) is not kind:
        raise _MistypedError(token, comparator)
    return literal


def _value(token: Token) -> Value:
    return int(token) if token.type == "INTEGER" else unescaped(token)


def _type_error(text: str, token: Token, comparator: str) -> PredicateError:
    kind, order = COMPARATORS[comparator]
    other = Kind.STRING if kind is Kind.INTEGER else Kind.INTEGER
    message = f"`{comparator}` compares {kind}s, and this is {'a string' if other is Kind.STRING else 'an integer'}"
    return error_at(text, token.start_pos or 0, message, f"write {SPELLINGS[other, order]} to compare {other}s")
