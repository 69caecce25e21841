"""From text to syntax tree, by the grammar beside this module (MESSIAHS 5.4)."""

import re
from functools import cache
from typing import Final

from lark import Lark, Token, Tree, UnexpectedToken

from messiahs.core.attributes import Kind, Value
from messiahs.errors import PredicateError
from messiahs.language.predicate.places import error_at, quoted
from messiahs.language.predicate.scanning import scan
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

_CONNECTIVES: Final = {"disjunction": Connective.OR, "exclusion": Connective.XOR, "conjunction": Connective.AND}
_OPERANDS: Final = frozenset({"VARIABLE", "INTEGER", "STRING"})
_INTEGER: Final = re.compile(r"-?[0-9]+")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "t": "\t"}


def parse_expression(text: str) -> Expression:
    """Give the tree of a text; a text of white space only asks for nothing. Raises PredicateError."""
    scan(text)
    try:
        start = _grammar().parse(text)
    except UnexpectedToken as surprise:
        raise _syntax_error(text, surprise) from None
    asked = _trees_in(start)
    return _expression(text, asked[0]) if asked else ALWAYS


def parse_literal(text: str) -> Value:
    """Give the value of an integer or of a string in double quotes. Raises PredicateError."""
    scan(text)
    word = text.strip(" \t\r\n")
    if _INTEGER.fullmatch(word):
        return int(word)
    if _STRING.fullmatch(word):
        return unescaped(word)
    raise error_at(text, 0, "this is no literal", "write an integer, or a string in double quotes")


def unescaped(quoted_string: str) -> str:
    """Give the string that a literal in double quotes stands for."""
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), quoted_string[1:-1])


@cache
def _grammar() -> Lark:
    return Lark.open_from_package(__name__, "grammar.lark", parser="lalr", lexer="basic")


def _expression(text: str, tree: Tree[Token]) -> Expression:
    match tree.data:
        case "comparison":
            return _comparison(text, tree)
        case "negation":
            return Not(_expression(text, _trees_in(tree)[0]))
        case rule:
            return chain(_CONNECTIVES[rule], [_expression(text, term) for term in _trees_in(tree)])


def _trees_in(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _comparison(text: str, tree: Tree[Token]) -> Comparison:
    left, comparator, right = (child for child in tree.children if isinstance(child, Token))
    kind, order = COMPARATORS[comparator]
    for token in (left, right):
        operand = _operand(token)
        if not isinstance(operand, Variable) and kind_of(operand) is not kind:
            raise _type_error(text, token, comparator)
    return Comparison(kind=kind, left=_operand(left), order=order, right=_operand(right))


def _operand(token: Token) -> Operand:
    match token.type:
        case "VARIABLE":
            return Variable(token[1:])
        case "INTEGER":
            return int(token)
        case _:
            return unescaped(token)


def _type_error(text: str, token: Token, comparator: str) -> PredicateError:
    kind, order = COMPARATORS[comparator]
    other = Kind.STRING if kind is Kind.INTEGER else Kind.INTEGER
    message = f"`{comparator}` compares {kind}s, and this is {'a string' if other is Kind.STRING else 'an integer'}"
    return error_at(text, token.start_pos or 0, message, f"write {SPELLINGS[other, order]} to compare {other}s")


def _syntax_error(text: str, surprise: UnexpectedToken) -> PredicateError:
    token = surprise.token
    is_end = token.type == "$END"
    offset = len(text.rstrip()) if is_end else token.start_pos or 0
    message, hint = _what_is_wrong(token, surprise.accepts)
    where = "at the end" if is_end else f"before {quoted(token)}"
    return error_at(text, offset, message.format(where=where), hint)


def _what_is_wrong(token: Token, accepted: set[str]) -> tuple[str, str]:
    """Tell by the tokens that could have stood in its place why this one cannot."""
    if "COMPARATOR" in accepted:
        return "a comparator is missing {where}", "a predicate is made of comparisons, like $mem <= 4000000"
    if "LPAR" in accepted:
        return "a comparison is missing {where}", ""
    if accepted & _OPERANDS:
        return "the second operand is missing {where}", "compare with a variable, an integer or a string"
    if token.type == "COMPARATOR":
        return "comparisons do not chain", "write 1 < $x and $x < 3 for 1 < $x < 3"
    if token.type == "RPAR":
        return "a `(` is missing {where}", ""
    if token.type == "$END":
        return "a `)` is missing {where}", ""
    return "`and`, `xor` or `or` is missing {where}", ""
