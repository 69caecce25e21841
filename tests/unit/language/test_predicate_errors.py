"""Positions of mistakes in predicates, and remedies: tables of (text, column, fragments)."""

import pytest

from messiahs.errors import PredicateError
from messiahs.language.predicate.predicates import parse_predicate


def _error(text: str) -> PredicateError:
    with pytest.raises(PredicateError) as raised:
        parse_predicate(text)
    return raised.value


FOREIGN_WORDS = [
    ("$a == 1", 4, "`==`", "write = for integers, eq for strings"),
    ("$a != 1", 4, "`!=`", "write <> for integers, ne for strings"),
    ("$a =< 1", 4, "`=<`", "write <="),
    ("$a => 1", 4, "`=>`", "write >="),
    ("$a = 1 && $b = 2", 8, "`&&`", "write and"),
    ("$a = 1 & $b = 2", 8, "`&`", "write and"),
    ("$a = 1 || $b = 2", 8, "`||`", "write or"),
    ("$a = 1 | $b = 2", 8, "`|`", "write or"),
    ("$a = 1 ^ $b = 2", 8, "`^`", "write xor"),
    ("! $a = 1", 1, "`!`", "write not"),
    ('$a lt "x"', 4, "`lt`", "write ls for strings, < for integers"),
    ('$a gt "x"', 4, "`gt`", "write gr for strings, > for integers"),
    ("$a = 1 AND $b = 2", 8, "`AND`", "write and"),
    ('$a EQ "x"', 4, "`EQ`", "write eq"),
    ("mem > 3", 1, "`mem`", "write $mem for the attribute"),
    ("$a = 1 and not1 = 1", 12, "`not1`", "$not1"),
    ("$cpu eq 'sparc'", 9, "`'`", "double quotes"),
    ("$a = \N{LEFT DOUBLE QUOTATION MARK}x", 6, "has no meaning", ""),
    ("größe = 1", 1, "`größe`", "attributes begin with $"),
    ("$größe = 1", 1, "`$größe`", "ASCII"),
    ("$ = 1", 1, "`$` is not a variable", "1 to 64"),
    ("$1a = 1", 1, "`$1a`", "the first no digit"),
    (f"${'a' * 65} = 1", 1, "is not a variable", "1 to 64"),
    ("$a - 1 = 2", 4, "`-`", "policy files only"),
    ("$a -1 = 2", 4, "`-`", "policy files only"),
    ("$a + 1 = 2", 4, "`+`", "policy files only"),
    ("2 = $a * 2", 8, "`*`", "policy files only"),
    ("($a / 2) = 1", 5, "`/`", "policy files only"),
    ("$a = +1", 6, "`+`", ""),
    ("$a = 1;", 7, "`;`", ""),
    ("\f$a = 1", 1, "U+000C", ""),
]

POLICY_FILE_WORDS = [
    ("$a in (1, 2)", 4, "`in`", "policy files only"),
    ('$a like "x*"', 4, "`like`", "policy files only"),
    ("has $a", 1, "`has`", "policy files only"),
    ("$a default 1 = 1", 4, "`default`", "policy files only"),
    ("let x = $a = 1", 1, "`let`", "policy files only"),
    ("$a = 1 # one", 8, "`#`", "policy files only"),
    ("$mem <= 4GiB", 9, "`4GiB` is not an integer", "bytes, seconds or 1/100 %"),
    ("$load < 30%", 9, "`30%`", "1/100 %"),
    ("$clock < 20:00", 10, "`20:00`", ""),
    ("$task.mem > 1", 1, "`$task.mem` has a scope", "bare name"),
]

LITERALS = [
    ("$a = 1.5", 6, "`1.5` is not an integer", "plain decimal integer"),
    ("$a = 0x10", 6, "`0x10` is not an integer", "plain decimal integer"),
    ("$a = 1and $b = 2", 6, "`1and` is not an integer", ""),
    ("$a = 9223372036854775808", 6, "does not fit into 64 bits", "9223372036854775807"),
    ("$a = -9223372036854775809", 6, "does not fit into 64 bits", "-9223372036854775808"),
    ('$a eq "sparc', 7, "the string is not closed", "on its own line"),
    ('$a eq "spa\nrc"', 7, "the string is not closed", "on its own line"),
    ('$a eq "sparc\\"', 7, "the string is not closed", ""),
    (r'$a eq "\q"', 8, r"`\q` is not an escape", r"write \\ for a backslash"),
    (r'$a eq "\\\x41"', 10, r"`\x` is not an escape", ""),
    ('$a eq "x\ty"', 9, "control character U+0009", r"a tab is written \t"),
    ("$a eq 5", 7, "`eq` compares strings", "write = to compare integers"),
    ('$a = "5"', 6, "`=` compares integers", "write eq to compare strings"),
    ('"x" <= $a', 1, "`<=` compares integers", "write le to compare strings"),
    ("$a gr 5", 7, "`gr` compares strings", "write > to compare integers"),
    ('1 = "x"', 5, "this is a string", ""),
]

SENTENCES = [
    ("1 < $x < 3", 8, "comparisons do not chain", "1 < $x and $x < 3"),
    ("$a", 3, "a comparator is missing at the end", "made of comparisons"),
    ("$a and $b = 1", 4, "a comparator is missing before `and`", ""),
    ("($a) = 1", 4, "a comparator is missing before `)`", ""),
    ("$a =", 5, "the second operand is missing at the end", ""),
    ("$a = (1)", 6, "the second operand is missing before `(`", "a variable, an integer or a string"),
    ("$a = not 1", 6, "the second operand is missing before `not`", ""),
    ("$a = 1 $b = 2", 8, "`and`, `xor` or `or` is missing before `$b`", ""),
    ("$a = 1 not $b = 2", 8, "is missing before `not`", ""),
    ("$a = 1 or", 10, "a comparison is missing at the end", ""),
    ("or $a = 1", 1, "a comparison is missing before `or`", ""),
    ("not", 4, "a comparison is missing at the end", ""),
    ("= 1", 1, "a comparison is missing before `=`", ""),
    ("()", 2, "a comparison is missing before `)`", ""),
    ("($a = 1", 8, "a `)` is missing at the end", ""),
    ("$a = 1)", 7, "a `(` is missing before `)`", ""),
]

FORBIDDEN_CHARACTERS = [
    ("$a\0 = 1", 3, "U+0000 is not allowed", ""),
    ('$a eq "\N{RIGHT-TO-LEFT OVERRIDE}x"', 8, "U+202E is not allowed", ""),
    ("$a = \N{LEFT-TO-RIGHT ISOLATE}1", 6, "U+2066 is not allowed", ""),
    ("\N{ARABIC LETTER MARK}", 1, "U+061C is not allowed", ""),
    ("$a = 1\N{RIGHT-TO-LEFT MARK}", 7, "U+200F is not allowed", ""),
    ("$a = 1\ud800", 7, "U+D800 is not allowed", ""),
]


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    FOREIGN_WORDS + POLICY_FILE_WORDS + LITERALS + SENTENCES + FORBIDDEN_CHARACTERS,
)
def test_an_error_has_its_column_its_cause_and_its_remedy(text: str, column: int, message: str, hint: str) -> None:
    error = _error(text)
    assert (error.line, error.column) == (1, column)
    assert message in error.message
    assert hint in error.hint


def test_columns_count_characters_and_lines_count_line_feeds() -> None:
    error = _error('$a\r\n  eq "日本" or\r\n\r\n $b lt "x"')
    assert (error.line, error.column) == (4, 5)
    assert _error('"日本" eq $a and $b == 1').column == 19


def test_the_caret_is_under_the_position() -> None:
    assert str(_error('$a = 1\nor $cpu lt "x"')).splitlines() == [
        "2:9: `lt` is not a word of the language",
        '    or $cpu lt "x"',
        "            ^",
        "    = help: write ls for strings, < for integers",
    ]


@pytest.mark.parametrize("character", ["\r", "\t"])
def test_the_caret_is_right_after_unusual_white_space(character: str) -> None:
    _, shown, caret, *_ = str(_error(f"$a{character}== 1")).splitlines()
    assert (shown, caret) == ("    $a == 1", "       ^")


def test_the_caret_is_right_after_a_character_that_ends_a_line_elsewhere() -> None:
    _, shown, caret, *_ = str(_error('"x\N{LINE SEPARATOR}y" eq $b and $b == 1')).splitlines()
    assert shown[caret.index("^") :] == "== 1"


def test_the_text_in_an_error_can_be_printed_anywhere() -> None:
    shown = str(_error("$a = \x1b[31m \N{RIGHT-TO-LEFT OVERRIDE} \ud800"))
    assert shown.encode().decode() == shown
    assert "\x1b" not in shown
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown


def test_a_long_word_is_shortened_in_the_message() -> None:
    assert len(_error("x" * 4000).message) < 100


def test_the_first_wrong_word_is_reported() -> None:
    assert _error("$a == 1 && $b lt 2").column == 4
