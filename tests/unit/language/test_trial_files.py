"""Mistakes in a `*.policytest` file with their positions, and the content of a valid one."""

from datetime import datetime

import pytest

from messiahs.core.model.instants import SECOND, Duration
from messiahs.errors import PolicyError, Problem
from messiahs.language.policytest.accept_expectations import ExpectAccept, ExpectRefuse
from messiahs.language.policytest.files import read_trials
from messiahs.language.policytest.stated_values import SetClock, State, Wait
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import policy
from tests.unit.language.trial_rig import trials

PEER = 'peer { name = "cs"; relation = "parent"; }'
GOOD = f'test "t" {{ {PEER} expect accept; }}'
FIRST_LINE = 'policy "a.policy";\n'


def _problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(PolicyError) as raised:
        read_trials(text, file="a.policytest", policy_of=lambda _: policy("attribute $Gpus int 0..4;"))
    return raised.value.problems


@pytest.mark.parametrize(
    ("text", "place", "code", "message", "hint"),
    [
        ("at 2026-13-01 12:00;", "2:4", Code.NUMBER, "`2026-13-01` is not a date", "year, month, day"),
        ("at 2026-11-01 24:00;", "2:4", Code.RANGE, "no such day", "at 2026-11-21 22:30"),
        ("at 2026-11-01 9h;", "2:4", Code.RANGE, "no such day", ""),
        ("at 9999-11-01 9:00;", "2:4", Code.RANGE, "no such day", ""),
        ("at 2026-11-2133333333333333 9:00;", "2:4", Code.NUMBER, "is not a date", ""),
        ("after 54w;", "2:7", Code.RANGE, "no test lasts longer than a year", "after 365d"),
        ("at noon;", "2:4", Code.SYNTAX, "a number is missing before `noon`", ""),
        ("at 2026-11-01 9:00 { }", "2:20", Code.SYNTAX, "`at` takes no block", ""),
        ("after 4GiB;", "2:7", Code.DIMENSION, "`4GiB` is not a duration", "after 30s"),
        ("after -4s;", "2:7", Code.DIMENSION, "`-4s` is not a duration", ""),
        ("here;", "2:5", Code.SYNTAX, "`here` needs a block", "{ ... }"),
        ("here { load = 5min; }", "2:15", Code.DIMENSION, "percentage compared with a duration", "30%"),
        ("here { load = 101%; }", "2:15", Code.RANGE, "out of range", "0% to 100%"),
        ("here { load; }", "2:8", Code.SYNTAX, "this states nothing", "mem = 4GiB;"),
        ("here { load = low; }", "2:15", Code.SYNTAX, "`low` is not a value", '"low"'),
        ("here { lod = 5%; }", "2:8", Code.UNKNOWN_ATTRIBUTE, "`lod` is not known", "did you mean load?"),
        ("here { mem = 5B; }", "2:8", Code.UNKNOWN_ATTRIBUTE, "`mem` is not known", ""),
        ("here { load = 5%; load = 6%; }", "2:19", Code.TWICE, "`load` occurs twice", ""),
        ('here { arch = 5; os = "Linux"; }', "2:15", Code.TYPE, "`arch` is a string", '"quotes"'),
        ("task { $Gpus = 5; }", "2:16", Code.RANGE, "out of range", "0 to 4"),
        ('peer { relation = "uncle"; }', "2:1", Code.UNKNOWN_NAME, "`uncle` is not a relation", "parent"),
        ('candidate "a" { relation = "aunt"; }', "2:1", Code.UNKNOWN_NAME, "`aunt` is not a relation", ""),
        ("placed -1;", "2:8", Code.RANGE, "a count is 0 or more", ""),
        ("members 3 { }", "2:11", Code.SYNTAX, "`members` takes no block", ""),
        ("tasc { }", "2:1", Code.SYNTAX, "`tasc` cannot begin a statement here", "`task`"),
        ("expect accept;", "2:1", Code.MEANING, "must be in a test", 'test "..."'),
        ('test "t";', "2:9", Code.SYNTAX, "`test` needs a block", ""),
        ('test "t" { }', "2:1", Code.MEANING, "this test has no `expect`", "expect accept"),
        ('test "t" { expect accept; }', "2:12", Code.MEANING, "the asking system is not stated", "peer {"),
        ('test "t" { expect send { load = 5%; } }', "2:12", Code.MEANING, "nothing is stated about the own", "here {"),
        ('test "t" { expect rank "a"; }', "2:12", Code.MEANING, "no candidate is stated", "candidate"),
        ('test "t" { expect rank tasks "a"; }', "2:12", Code.MEANING, "no named task is stated", 'task "a"'),
        (f'test "t" {{ {PEER} expect reveal nothing; }}', "2:55", Code.MEANING, "no machines", "machines 5"),
        (f'test "t" {{ {PEER} expect accept {{ }} }}', "2:69", Code.SYNTAX, "`expect accept` takes no block", "`;`"),
        (f'test "t" {{ {PEER} expect acept; }}', "2:62", Code.SYNTAX, "is missing before `acept`", "`accept`"),
        (f"{GOOD}\n{GOOD}", "3:6", Code.TWICE, 'already a test "t"', ""),
        (f'test "t" {{ {PEER} expect accept }}', "2:69", Code.SYNTAX, "a `;` is missing before `}`", ""),
        (f'test "t" {{ {PEER} expect accept;\ntest "u" {{ {PEER} expect accept; }}', "3:1", Code.SYNTAX, "a `}`", ""),
        (f"{GOOD} }}", "2:72", Code.SYNTAX, "`}` has nothing to end", "remove it"),
        ("{ }", "2:1", Code.SYNTAX, "this block has no name", ""),
        (";", "2:1", Code.SYNTAX, "`;` has nothing to end", ""),
        (f'{GOOD}\npolicy "b";', "3:1", Code.MEANING, "at the top of the file", ""),
        ("here { load = 4G; }", "2:15", Code.NUMBER, "`4G` has no known unit", ""),
        ("after 1s {" * 9 + "}" * 9, "2:91", Code.LIMIT, "nested deeper than 8", ""),
    ],
)
def test_a_mistake_is_reported_at_its_position_with_a_remedy(
    text: str, place: str, code: Code, message: str, hint: str
) -> None:
    problem = _problems(FIRST_LINE + text)[0]
    assert f"{problem.line}:{problem.column}" == place
    assert problem.code == code
    assert message in problem.message
    assert hint in problem.hint


def test_all_mistakes_of_a_file_are_reported_in_order() -> None:
    text = (
        f'here {{ lod = 5%; load = 5min; }}\ntest "t" {{ {PEER} expect acept; here {{ }} after 5; expect nothing }}\n'
    )
    assert [problem.line for problem in _problems(FIRST_LINE + text)] == [2, 2, 3, 3, 3]


@pytest.mark.parametrize("text", ["", "# nothing\n", GOOD, 'here { load = 5%; } policy "a";'])
def test_a_file_begins_with_the_policy_that_it_tests(text: str) -> None:
    assert any("does not name the policy" in problem.message for problem in _problems(text))


def test_mistakes_of_the_policy_are_reported_as_the_policys() -> None:
    with pytest.raises(PolicyError, match=r"a\.policy:1:1"):
        trials(GOOD, "nonsense;")


def test_statements_before_the_first_test_apply_to_all_tests() -> None:
    first, second = 'test "one" { expect accept; }', 'test "two" { after 30s { expect refuse "no"; } }'
    text = f"{PEER}\n{first}\nat 2026-11-21 22:30;\n{second}"
    one, two = trials(text).trials
    peer = State("peer", (("name", "cs"), ("relation", "parent")))
    assert [step.what for step in one.steps] == [peer, ExpectAccept()]
    late = SetClock(datetime(2026, 11, 21, 22, 30))  # noqa: DTZ001 - local, wherever that is
    assert [step.what for step in two.steps] == [peer, late, Wait(Duration(30 * SECOND)), ExpectRefuse("no")]
    assert [trial.name for trial in (one, two)] == ["one", "two"]
    assert two.steps[-1].text == 'expect refuse "no"'


def test_keywords_may_be_attributes_in_statements() -> None:
    text = f'test "t" {{ {PEER} task {{ task = 1; $at = 2; test = nothing; }} expect accept; }}'
    steps = trials(text, "attribute $task int; attribute $at int; attribute $test int;").trials[0].steps
    assert steps[1].what == State("task", (("task", 1), ("at", 2)), ("test",))
