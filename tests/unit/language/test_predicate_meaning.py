"""Evaluation of a predicate over one description."""

import subprocess
import sys

import pytest

from messiahs.core.interface.predicates import BadPredicate, Predicate, PredicateParser
from messiahs.core.model.attributes import Value
from messiahs.language.predicate.predicates import parse_predicate, predicate_parser

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def _holds(text: str, **description: Value) -> bool:
    return parse_predicate(text).holds(description)


@pytest.mark.parametrize(
    ("comparator", "when_less", "when_equal", "when_greater"),
    [
        ("<", True, False, False),
        ("<=", True, True, False),
        ("=", False, True, False),
        ("<>", True, False, True),
        (">=", False, True, True),
        (">", False, False, True),
    ],
)
def test_each_integer_comparator(comparator: str, *, when_less: bool, when_equal: bool, when_greater: bool) -> None:
    answers = [_holds(f"$a {comparator} 10", a=value) for value in (9, 10, 11)]
    assert answers == [when_less, when_equal, when_greater]


@pytest.mark.parametrize(
    ("comparator", "when_less", "when_equal", "when_greater"),
    [
        ("ls", True, False, False),
        ("le", True, True, False),
        ("eq", False, True, False),
        ("ne", True, False, True),
        ("ge", False, True, True),
        ("gr", False, False, True),
    ],
)
def test_each_string_comparator(comparator: str, *, when_less: bool, when_equal: bool, when_greater: bool) -> None:
    answers = [_holds(f'$a {comparator} "m"', a=value) for value in ("Z", "m", "ä")]
    assert answers == [when_less, when_equal, when_greater]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\r\n",
        "1 < 2",
        '"a" ls "b"',
        "5 = $five",
        "$five < $six",
        '$x eq "x"',
        "($five=5)and($six=6)",
        '$x eq"x"or$five<0',
        "007 = 7",
        "-0 = 0",
        "$minus<-2",
        f"{LOWEST} < {HIGHEST}",
        r'"\"\\\n\t" ne "nt"',
        '"$five" ne "5"',
        "$and = 1",
        "not not $five = 5",
        "(((($five = 5))))",
    ],
)
def test_true_predicates(text: str) -> None:
    assert _holds(text, five=5, six=6, minus=-3, x="x", **{"and": 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1=1 or 1=1 and 1=2", True),  # and before or
        ("1=1 or 1=1 xor 1=1", True),  # xor before or
        ("1=1 xor 1=2 and 1=2", True),  # and before xor
        ("not 1=2 and 1=2", False),  # not before and
        ("not 1=1 or 1=1", True),  # not before or
        ("not 1=2 xor 1=1", False),  # not before xor
        ("not (1=2 and 1=2)", True),
        ("(1=1 or 1=1) and 1=2", False),
        ("1=1 xor 1=1 xor 1=1", True),
        ("1=1 xor 1=1 xor 1=1 xor 1=1", False),
    ],
)
def test_precedence(text: str, *, expected: bool) -> None:
    assert _holds(text) is expected


def test_strings_are_compared_by_code_point() -> None:
    assert not _holds('$a eq "Sparc"', a="sparc")
    assert not _holds('$a eq "é"', a="e\N{COMBINING ACUTE ACCENT}")
    assert _holds('$a gr "\uffff"', a="\U00010000")  # by code point, not by UTF-16 unit
    assert _holds(r'$a eq "\"\\\n\t"', a='"\\\n\t')
    assert _holds(r'$a eq "\\n"', a="\\n")


@pytest.mark.parametrize(
    "text",
    [
        "$gone = 1",
        "not $gone = 1",
        "not not $gone = 1",
        "1 = 1 or $gone = 1",
        "$gone = 1 or 1 = 1",
        "1 = 1 xor $gone = 1",
        "1 = 1 and not (1 = 2 and $gone = 1)",
        "$gone = $gone",
        'not $gone eq "x"',
    ],
)
def test_one_unset_variable_anywhere_makes_all_of_it_false(text: str) -> None:
    assert not _holds(text, here=1)


@pytest.mark.parametrize("text", ["$a = 1", "not $a = 1", "1 = 1 or $a = 1"])
def test_a_value_of_the_wrong_type_counts_as_unset(text: str) -> None:
    assert _holds(text, a="1") is False
    assert _holds(text.replace("$a = 1", '$a eq "1"'), a=1) is False


@pytest.mark.parametrize("value", [LOWEST - 1, HIGHEST + 1])
def test_an_integer_of_more_than_64_bits_counts_as_unset(value: int) -> None:
    assert not _holds("$a < 0 or $a >= 0", a=value)
    assert parse_predicate("$a = 1").unset_in({"a": value}) == ("a",)


@pytest.mark.parametrize("value", [1, "1"])
def test_a_variable_compared_as_both_types_is_always_false(value: Value) -> None:
    assert not _holds('$a = 1 or $a eq "1"', a=value)
    assert not _holds('not $a = 2 or $b eq $a or $b ne "x"', a=value, b="1")


def test_the_unset_variables_are_named_once_and_in_order() -> None:
    predicate = parse_predicate('$z = 1 or $b = $a and not $z <> $c or $d eq "x" or $z eq "y"')
    assert predicate.unset_in({"c": 1, "d": 5}) == ("a", "b", "z")
    assert predicate.unset_in(dict.fromkeys("abcdz", 1)) == ()
    assert parse_predicate("").unset_in({}) == ()


def test_variables_with_a_value_of_another_type_are_known() -> None:
    predicate = parse_predicate('$a = 1 and ($b eq "x" or $c > $d) and $both = 1 and $both eq "1"')
    assert predicate.mistyped_in({"a": "1", "b": "x", "c": 1, "both": 1}) == ("a", "both")
    assert predicate.mistyped_in({}) == ()


def test_the_text_is_kept_as_written() -> None:
    assert parse_predicate(" (($a=1)) ").text == " (($a=1)) "


def test_the_predicate_and_the_parser_have_the_interface_of_the_core() -> None:
    parser: PredicateParser = predicate_parser
    predicate: Predicate | BadPredicate = parser("$a = 1")
    assert not isinstance(predicate, BadPredicate)
    assert predicate.holds({"a": 1})
    assert parser("$a = 1") is predicate


def test_the_parser_reports_an_invalid_text_on_one_line() -> None:
    assert predicate_parser("1 = 1\nor $a == 1") == BadPredicate(
        "2:7: `==` has no meaning here (write = for integers, eq for strings)"
    )
    assert predicate_parser("()") == BadPredicate("1:2: a comparison is missing before `)`")


@pytest.mark.processes
def test_nothing_is_built_at_import() -> None:
    program = (
        "from messiahs.language.predicate import parsing, predicates; "
        "print(parsing.predicate_grammar.cache_info().currsize)"
    )
    built = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert built.strip() == "0"


def test_the_first_term_that_is_not_true_is_named() -> None:
    predicate = parse_predicate('$a > 1 and ($b eq "x" or $a = 5) and not $a = 3')
    assert predicate.false_term_in({"a": 1, "b": "x"}) == "$a > 1"
    assert predicate.false_term_in({"a": 2, "b": "y"}) == '$b eq "x" or $a = 5'
    assert predicate.false_term_in({"a": 3, "b": "x"}) == "not $a = 3"
    assert predicate.false_term_in({"a": 2, "b": "x"}) == ""
    assert parse_predicate('$a = 1 or $b eq "x"').false_term_in({"a": 2, "b": "y"}) == '$a = 1 or $b eq "x"'


@pytest.mark.parametrize(
    ("text", "demanded"),
    [
        ('$arch eq "arm"', "arm"),
        ('"arm" eq $arch and $speed > 3', "arm"),
        ('$speed > 3 and $arch eq "arm" and $os eq "Linux"', "arm"),
        ('$arch eq "arm" or $speed > 3', ""),
        ('not $arch eq "arm"', ""),
        ('$arch ne "arm" and $arch eq $os', ""),
        ("$arch = 3", ""),
        ("", ""),
    ],
)
def test_a_string_is_demanded_by_a_term_that_must_be_true(text: str, demanded: str) -> None:
    assert parse_predicate(text).text_of("arch") == demanded
