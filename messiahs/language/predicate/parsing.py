"""From text to syntax tree, by the grammar beside this module (MESSIAHS 5.4)."""

import re
from functools import cache
from typing import Final, cast

from lark import Lark, Token, Transformer

from messiahs.core.model.attributes import Kind, Value
from messiahs.errors import PredicateError
from messiahs.language.predicate.checking import sentence_of
from messiahs.language.predicate.places import error_at
from messiahs.language.predicate.scanning import Word, words_of
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

_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "t": "\t"}


def parse_expression(text: str) -> Expression:
    """Give the tree of a text; a text of white space only asks for nothing. Raises PredicateError."""
    feed = _grammar().parse_interactive().feed_token
    try:
        # The text was taken apart while it was checked: the grammar's own lexer would do it again.
        for terminal, word, start in sentence_of(text):
            feed(Token(terminal, word, start))
        return cast("Expression", feed(Token("$END", "")))
    except _MistypedError as mistake:
        raise _type_error(text, mistake.operand, mistake.comparator) from None


def parse_literal(text: str) -> Value:
    """Give the value of an integer or of a string in double quotes. Raises PredicateError."""
    match list(words_of(text)):
        case [Word(terminal="INTEGER", text=word)]:
            return int(word)
        case [Word(terminal="STRING", text=word)]:
            return unescaped(word)
    raise error_at(text, 0, "this is no literal", "write an integer, or a string in double quotes")


def unescaped(quoted_string: str) -> str:
    """Give the string that a literal in double quotes stands for."""
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), quoted_string[1:-1])


@cache
def _grammar() -> Lark:
    builder = cast("Transformer[Token, Expression]", _Builder())
    return Lark.open_from_package(__name__, "grammar.lark", parser="lalr", lexer="basic", transformer=builder)


class _Builder:
    """Makes the tree of each rule of the grammar as soon as it is read, of those of its parts."""

    @staticmethod
    def start(parts: list[Expression]) -> Expression:
        """Give the whole predicate."""
        return parts[0] if parts else ALWAYS

    @staticmethod
    def disjunction(terms: list[Expression]) -> Expression:
        """Join terms by `or`."""
        return chain(Connective.OR, terms)

    @staticmethod
    def exclusion(terms: list[Expression]) -> Expression:
        """Join terms by `xor`."""
        return chain(Connective.XOR, terms)

    @staticmethod
    def conjunction(terms: list[Expression]) -> Expression:
        """Join terms by `and`."""
        return chain(Connective.AND, terms)

    @staticmethod
    def negation(parts: list[Expression]) -> Expression:
        """Negate a term."""
        return Not(parts[0])

    @staticmethod
    def comparison(parts: list[Token]) -> Expression:
        """Compare two operands. Raises _MistypedError."""
        left, comparator, right = parts
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
    literal = int(token) if token.type == "INTEGER" else unescaped(token)
    if kind_of(literal) is not kind:
        raise _MistypedError(token, comparator)
    return literal


def _type_error(text: str, token: Token, comparator: str) -> PredicateError:
    kind, order = COMPARATORS[comparator]
    other = Kind.STRING if kind is Kind.INTEGER else Kind.INTEGER
    message = f"`{comparator}` compares {kind}s, and this is {'a string' if other is Kind.STRING else 'an integer'}"
    return error_at(text, token.start_pos or 0, message, f"write {SPELLINGS[other, order]} to compare {other}s")
