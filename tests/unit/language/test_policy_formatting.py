"""The canonical form of policy files: tables of texts and their formatted versions."""

from pathlib import Path

import pytest

from messiahs.errors import PolicyError
from messiahs.language.syntax.formatting import format_policy
from messiahs.language.syntax.problems import Code

POLICIES = sorted((Path(__file__).parents[3] / "policies").glob("*.policy"))
LONG = " and ".join(f'$attribute_{number} eq "value {number}"' for number in range(8))


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_the_shipped_policies_are_in_canonical_form(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_policy(text, file=str(path)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("\n\n", ""),
        ("# nothing else", "# nothing else\n"),
        ('policy   "a" version 1 ;', 'policy "a" version 1;\n'),
        ("attribute $a int 0 .. 16 optional;", "attribute $a int 0..16 optional;\n"),
        ("attribute $a int -5..-1;", "attribute $a int -5..-1;\n"),
        ('accept from any{as  account"a";}', 'accept from any { as account "a"; }\n'),
        ("accept from any{limit network  to none ;}", "accept from any { limit network to none; }\n"),
        ("accept from any{limit 1 tasks;}", "accept from any { limit 1 tasks; }\n"),
        ("accept from any{}", "accept from any { }\n"),
        (
            "combine{$a:key;default:drop;}",
            "combine {\n    $a: key;\n    default: drop;\n}\n",
        ),
        (
            'accept from any { require( $a<=1 )and not( $b in( 1,2 ) )else "no"; }',
            'accept from any { require ($a <= 1) and not ($b in (1, 2)) else "no"; }\n',
        ),
        ("rank candidates by most($a*2-$b/ -3),random;", "rank candidates by most ($a * 2 - $b / -3), random;\n"),
        (
            "migrate { ask every 1min when $load<25% wanting{($mem<=16)}; keep at least 1 tasks; }",
            "migrate {\n    ask every 1min when $load < 25% wanting { ($mem <= 16) };\n    keep at least 1 tasks;\n}\n",
        ),
        ("let a = 1 = 1;let b = 2 = 2;", "let a = 1 = 1;\nlet b = 2 = 2;\n"),
        ("let a = 1 = 1;\n\n\n\nlet b = 2 = 2;\n\n", "let a = 1 = 1;\n\nlet b = 2 = 2;\n"),
        (
            "combine {\n\n    default: drop;\n\n\n    $a: key;\n\n}",
            "combine {\n    default: drop;\n\n    $a: key;\n}\n",
        ),
    ],
)
def test_a_text_has_one_canonical_form(text: str, expected: str) -> None:
    assert format_policy(text, file="test.policy") == expected
    assert format_policy(expected, file="test.policy") == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("$a = 1 xor $b = 1 or $c = 1", "($a = 1 xor $b = 1) or $c = 1"),
        ("$a = 1 or not $b = 1 xor $c = 1 and $d = 1", "$a = 1 or (not $b = 1 xor ($c = 1 and $d = 1))"),
        ("not ($a = 1 xor b or c)", "not (($a = 1 xor b) or c)"),
        ("($a = 1 xor $b = 1) or $c = 1", "($a = 1 xor $b = 1) or $c = 1"),
        ("$a = 1 xor $b = 1 and $c in (1, 2)", "$a = 1 xor ($b = 1 and $c in (1, 2))"),
        ("$a = 1 and $b = 1 xor $c = 1 or $d = 1", "(($a = 1 and $b = 1) xor $c = 1) or $d = 1"),
        ("$a = 1 and $b = 1 xor $c = 1 and (b or c)", "($a = 1 and $b = 1) xor ($c = 1 and (b or c))"),
    ],
)
def test_xor_beside_or_and_and_beside_xor_are_put_in_parentheses(predicate: str, expected: str) -> None:
    for before, after in (
        ("let x = ", ";"),
        ("accept from any { require ", ' else "no"; }'),
        ("rank candidates by first where ", ", random;"),
        ("running { suspend unless ", " for 2min; }"),
        ("running tasks where ", " { }"),
        ("migrate { ask every 1s when a wanting { ", " }; }"),
        ("advertise every 1s { set $x = 1 + $y when ", " else 2; }"),
    ):
        assert format_policy(before + predicate + after, file="test.policy") == f"{before}{expected}{after}\n"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("007", "7"),
        ("-0", "0"),
        ("000", "0"),
        ("-05", "-5"),
        ("04GiB", "4GiB"),
        ("1.50GiB", "1.5GiB"),
        ("2.00d", "2d"),
        ("0.50%", "0.5%"),
        ("12.05%", "12.05%"),
        ("07:05", "7:05"),
        ("00:00", "0:00"),
        ("24h", "24h"),
        ("1024MiB", "1024MiB"),
        ("9223372036854775807", "9223372036854775807"),
    ],
)
def test_numbers_lose_insignificant_zeros_and_keep_their_unit(number: str, expected: str) -> None:
    assert format_policy(f"let x = $a < {number};", file="test.policy") == f"let x = $a < {expected};\n"


def test_a_long_statement_continues_on_the_next_line() -> None:
    text = f'accept from any {{ require {LONG} else "this is not for you"; limit 1 tasks; }}'
    written = format_policy(text, file="test.policy")
    assert written == (
        "accept from any {\n"
        '    require $attribute_0 eq "value 0" and $attribute_1 eq "value 1" and $attribute_2 eq "value 2"\n'
        '        and $attribute_3 eq "value 3" and $attribute_4 eq "value 4" and $attribute_5 eq "value 5"\n'
        '        and $attribute_6 eq "value 6" and $attribute_7 eq "value 7" else "this is not for you";\n'
        "    limit 1 tasks;\n"
        "}\n"
    )
    assert format_policy(written, file="test.policy") == written


def test_a_long_statement_has_a_line_for_each_choice() -> None:
    choices = ["$a = 1 and ($b = 2 or $c = 3)", "$d = 4", f"$e = 5 and {' and '.join(LONG.split(' and ')[:4])}"]
    written = format_policy(f"let x = {' or '.join(choices)};", file="test.policy")
    assert written.splitlines() == [
        "let x = $a = 1 and ($b = 2 or $c = 3)",
        "    or $d = 4",
        '    or $e = 5 and $attribute_0 eq "value 0" and $attribute_1 eq "value 1" and $attribute_2 eq "value 2"',
        '    and $attribute_3 eq "value 3";',
    ]


def test_comments_keep_their_places() -> None:
    text = """
# the file

# the policy
policy "a";# its name

attribute $a # behind a word
   string
   # above a word
   optional;
accept from any {# the block
  # the first rule

    # still the first rule
  require $a eq "#" # no comment in there
     and $a ne "b";
  limit 1 tasks;   # the limit
  # nothing more
}   # the end
# the last word"""
    assert (
        format_policy(text, file="test.policy")
        == """# the file

# the policy
policy "a";  # its name

attribute $a  # behind a word
    string
    # above a word
    optional;
accept from any {  # the block
    # the first rule

    # still the first rule
    require $a eq "#"  # no comment in there
        and $a ne "b";
    limit 1 tasks;  # the limit
    # nothing more
}  # the end
# the last word
"""
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("combine { default: drop }", Code.SYNTAX),
        ("combine { default: }", Code.SYNTAX),
        ("accept from any { require $a == 1; }", Code.WORD),
        ("acept from any { }", Code.SYNTAX),
        ("timeouts { input 3; } }", Code.SYNTAX),
        ('policy "x', Code.STRING),
        ("rank candidates by random; # \N{RIGHT-TO-LEFT OVERRIDE}", Code.FORBIDDEN),
        (f"let x = {'(' * 65}$a = 1{')' * 65};", Code.LIMIT),
        ("#" * (256 << 10) + "#", Code.LIMIT),
    ],
)
def test_an_invalid_text_has_no_canonical_form(text: str, code: Code) -> None:
    with pytest.raises(PolicyError) as raised:
        format_policy(text, file="test.policy")
    assert raised.value.problems[0].code == code


def test_formatting_does_not_check_the_meaning() -> None:
    text = "accept from nobody { require $nothing <= 8min and $mem eq 4; }\n"
    assert format_policy(text, file="test.policy") == text


def test_a_statement_that_would_be_too_long_in_canonical_form_is_refused() -> None:
    tight = f"let x = {' or '.join(['$abcdefgh<1'] * 250)};"
    assert len(tight) < 4096
    with pytest.raises(PolicyError, match="longer than 4096 bytes"):
        format_policy(tight, file="test.policy")
