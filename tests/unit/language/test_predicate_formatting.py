"""The canonical form of predicates."""

import pytest

from messiahs.language.predicate.formatting import format_predicate
from messiahs.language.predicate.parsing import parse_expression
from messiahs.language.predicate.syntax import Chain, Comparison


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("", ""),
        ("  ", ""),
        ("((($a=1)))", "$a = 1"),
        ("$a<-007", "$a < -7"),
        ('($avail_mem >= 4000000) and ($cpu eq "sparc")', '$avail_mem >= 4000000 and $cpu eq "sparc"'),
        ("1=1 or(2=2 or 3=3)", "1 = 1 or 2 = 2 or 3 = 3"),
        ("(1=1 xor 2=2)xor 3=3", "1 = 1 xor 2 = 2 xor 3 = 3"),
        ("1=1 or 2=2 and 3=3", "1 = 1 or 2 = 2 and 3 = 3"),
        ("(1=1 or 2=2) and 3=3", "(1 = 1 or 2 = 2) and 3 = 3"),
        ("1=1 or 2=2 xor 3=3", "1 = 1 or (2 = 2 xor 3 = 3)"),
        ("(1=1 or 2=2) xor 3=3 and 4=4", "(1 = 1 or 2 = 2) xor 3 = 3 and 4 = 4"),
        ("(1=1 xor 2=2) and 3=3", "(1 = 1 xor 2 = 2) and 3 = 3"),
        ("not(1=1)and 2=2", "not 1 = 1 and 2 = 2"),
        ("not(1=1 and 2=2)", "not (1 = 1 and 2 = 2)"),
        ("not(not 1=1)", "not not 1 = 1"),
        (r'$a ne "\"\\\n\té"', r'$a ne "\"\\\n\té"'),
    ],
)
def test_a_predicate_has_one_canonical_form(text: str, formatted: str) -> None:
    assert format_predicate(parse_expression(text)) == formatted
    assert parse_expression(formatted) == parse_expression(text)


@pytest.mark.parametrize("comparator", ["<", "<=", "=", "<>", ">=", ">"])
def test_each_integer_comparator_is_written_as_it_was_read(comparator: str) -> None:
    assert format_predicate(parse_expression(f"$a{comparator}1")) == f"$a {comparator} 1"


@pytest.mark.parametrize("comparator", ["ls", "le", "eq", "ne", "ge", "gr"])
def test_each_string_comparator_is_written_as_it_was_read(comparator: str) -> None:
    assert format_predicate(parse_expression(f'$a {comparator}"b"')) == f'$a {comparator} "b"'


def test_a_long_chain_is_flat() -> None:
    expression = parse_expression(" and ".join(["1=1"] * 200))
    assert isinstance(expression, Chain)
    assert len(expression.terms) == 200
    assert all(isinstance(term, Comparison) for term in expression.terms)
