"""Predicates are the sentences of the grammar: the limits change neither words nor sentences."""

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
from lark import Lark, UnexpectedInput

from messiahs.errors import PredicateError
from messiahs.language.predicate import parsing
from messiahs.language.predicate.parsing import parse_expression, predicate_grammar
from tests.hostile.predicates import costly_texts

WORDS = ("$a", "=", "and", "not", "(", ")")
"""One of each kind: literals stand where variables do, and `or` and `xor` where `and` does."""


@cache
def _plain_grammar() -> Lark:
    """Return the grammar alone, with the lexer of Lark."""
    return Lark.open_from_package(parsing.__name__, "grammar.lark", parser="lalr", lexer="basic")


def _is_sentence(text: str) -> bool:
    try:
        _plain_grammar().parse(text)
    except UnexpectedInput:
        return False
    return True


def _is_read(text: str) -> bool:
    try:
        parse_expression(text)
    except PredicateError:
        return False
    return True


def _texts() -> Iterator[str]:
    for length in range(6):
        yield from (" ".join(words) for words in product(WORDS, repeat=length))


def test_every_short_text_is_accepted_if_and_only_if_it_is_a_sentence() -> None:
    assert [text for text in _texts() if _is_read(text) is not _is_sentence(text)] == []


@pytest.mark.parametrize("connective", ["and", "xor", "or"])
@pytest.mark.parametrize(("operand", "comparator"), [("$b", "="), ("-7", "<="), ('"x"', "eq")])
def test_the_words_that_stand_for_others_are_like_these(connective: str, operand: str, comparator: str) -> None:
    for term in (f"{operand} {comparator} $a", f"$a {comparator} {operand}"):
        text = f"({term} {connective} not {term}) {connective} {term}"
        assert _is_read(text)
        assert _is_sentence(text)
        for wrong in (f"{text} {operand}", f"{connective} {text}", f"{text} {connective}", f"{operand} {text}"):
            assert not _is_read(wrong)
            assert not _is_sentence(wrong)


@pytest.mark.parametrize(
    "text",
    [
        *costly_texts().values(),
        " ",
        "$a=1",
        "\t$a\r\n = -1 ",
        "$and=$or or $not<>$xor",
        '"a\\\\" eq "\\"" or "\\n" ne $a_1',
        "not(not(1<2))",
        "$a=-000000000000000000000000000000000001",
        '$a eq "and" and $b le "$c"',
        "$a<1 and$b>2",
        "1<=2 xor 3>=4 or 5<6 and 7>8",
        '"a" ls $a or "b" gr $b or "c" ge $c',
    ],
)
def test_a_text_has_the_words_that_the_grammar_finds_in_it(text: str) -> None:
    parser = predicate_grammar().parse_interactive(text, start="start")
    words = [(token.type, str(token), token.start_pos) for token in parser.iter_parse()]
    assert words == [(token.type, str(token), token.start_pos) for token in _plain_grammar().lex(text)]
