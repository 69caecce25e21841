"""For any text, a policy file is either a policy or an error whose every problem can be shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messiahs.errors import PolicyError, Problem
from messiahs.language.compiler.files import parse_policy
from messiahs.language.policytest.execution import try_out
from messiahs.language.policytest.files import KEYWORDS as TRIAL_KEYWORDS
from messiahs.language.policytest.files import read_trials
from messiahs.language.predicate.syntax import COMPARATORS
from messiahs.language.syntax.scanning import KEYWORDS
from tests.property.budget import examples

WORDS = [
    *sorted(KEYWORDS),
    *COMPARATORS,
    "candidates",
    "input",
    "x",
    "$mem",
    "$here.load",
    "$cand.name",
    "$x",
    "$peer.y",
]
NUMBERS = ["0", "1", "-1", "4GiB", "5%", "1h", "500ms", "20:00", "4G", "1..2", "9" * 30, "0" * 5000 + "1"]
SIGNS = [
    "{",
    "}",
    ";",
    ",",
    ":",
    "(",
    ")",
    "+",
    "-",
    "*",
    "/",
    '"x"',
    '"',
    "#",
    "\n",
    "\0",
    "\N{LINE SEPARATOR}",
    "\ud800",
    "-²",
    "-٣",
]
STATEMENTS = [
    "accept from any {",
    "require $mem <= 4GiB;",
    "limit 3 tasks per $origin;",
    "let x = $cpus = 1;",
    "when x and not x;",
    "rank candidates by random;",
    "combine { default: drop; }",
    "advertise every 1s {",
    "set $willingness = $load / 0;",
    "attribute $x int 1..2;",
    "}",
]
NEAR_FILES = st.lists(st.sampled_from([*WORDS, *NUMBERS, *SIGNS, *STATEMENTS]), max_size=40).map(" ".join)
ANY_TEXT = st.text(st.characters(exclude_categories=())) | NEAR_FILES


@examples(300)
@given(ANY_TEXT)
def test_only_policy_errors_leave_the_parser(text: str) -> None:
    problems, is_policy = _read(text)
    assert all(problem.is_warning for problem in problems) is is_policy
    for problem in problems:
        _can_be_shown(problem, text)


def _read(text: str) -> tuple[tuple[Problem, ...], bool]:
    try:
        return parse_policy(text, file="any.policy").warnings, True
    except PolicyError as error:
        return error.problems, False


def _can_be_shown(problem: Problem, text: str) -> None:
    lines = text.split("\n")
    assert 1 <= problem.line <= len(lines)
    assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
    assert len(problem.source) == len(lines[problem.line - 1])
    assert str(problem).encode()
    assert len(problem.message.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "{" * 20_000,
        "}" * 20_000,
        "accept from any { require " + "(" * 100_000,
        "accept from any { require " + "not " * 50_000,
        "rank candidates by most " + "1 + " * 10_000,
        "rank candidates by most " + "(" * 1000 + "1" + ")" * 1000 + ";",
        'policy "' + "x" * 200_000,
        "# " + "x" * 1_000_000,
        "accept from any { limit " + "9" * 200_000 + " tasks; }",
        "\0" * 20_000,
    ],
    ids=lambda text: f"{text[:12]!r} and {len(text)} more",
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        parse_policy(text, file="hostile.policy")


SIGNS_OF_TRIALS = [
    "{",
    "}",
    ";",
    ",",
    "=",
    "-",
    '"x"',
    '"parent"',
    "1",
    "4GiB",
    "5%",
    "30s",
    "-²",
    "-٣",
    "0" * 5000 + "1",
    "22:30",
    "2026-11-21",
    "\0",
    "#",
]
PHRASES = [
    'test "t" {',
    'peer { relation = "parent"; }',
    "here { load = 5%; }",
    "here { tasks = 1; }",
    "machines 2 { load = 5%; }",
    'candidate "a" { free_slots = 1; }',
    'task "a" { mem = 1B; }',
    "at 9999-12-31 23:59;",
    "at 1-1-1 0:00;",
    "after 1s {",
    "after 9000000000w;",
    "placed 9223372036854775807;",
    "expect accept;",
    "expect suspend;",
    "expect send { load = 5%; }",
    'expect rank "a";',
    'expect rank tasks "a";',
    "expect reveal { machines = 2; }",
    "expect offer;",
    "expect ask;",
    "expect admit;",
]
TRIAL_WORDS = st.sampled_from([*sorted(TRIAL_KEYWORDS), *SIGNS_OF_TRIALS, *PHRASES])
WHOLE_TESTS = st.lists(st.sampled_from([each for each in PHRASES if each.endswith((";", "}"))]), max_size=9).map(
    lambda steps: f'test "t" {{ {" ".join(steps)} expect nothing; }}'
)
TRIED = """
accept from any { require $here.load < 5% and $mem < 1GiB; limit 3 tasks; }
advertise every 1s { set $willingness = 1 when $here.load < 5% else 2; }
rank candidates by first where $load < 5%, most $free_slots;
rank tasks by most $mem;
running { suspend unless $here.load < 5%; kill when $task.ran > 1d; }
migrate { ask every 1min when $here.load < 5% wanting { }; offer when $task.ran > 5s; }
"""


@examples(300)
@given(st.text(st.characters(exclude_categories=())) | st.lists(TRIAL_WORDS, max_size=40).map(" ".join) | WHOLE_TESTS)
def test_any_test_file_is_run_or_refused_with_problems_that_can_be_shown(text: str) -> None:
    problems: tuple[Problem, ...] = ()
    whole = f'policy "p";{text}'
    try:
        file = read_trials(whole, file="any", policy_of=lambda name: parse_policy(TRIED, file=name))
        assert len(try_out(file)) == len(file.trials)
    except PolicyError as error:
        problems = error.problems
        assert problems, "an error without a problem"
    for problem in problems:
        _can_be_shown(problem, whole)
