"""Valid constructs that are probably mistakes: tables of (text, position, code)."""

import pytest

from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import policy
from tests.unit.language.test_policy_examples import DEPARTMENT, DESKTOP, GATEWAY, HOSTING

OPTIONAL = "attribute $a int optional; attribute $b int;"
REVIEWED = {
    Code.TOGETHER,
    Code.LOST_SENSOR,
    Code.NEGATED_OPTIONAL,
    Code.VAIN_PRESENCE,
    Code.UNREACHABLE,
    Code.EMPTY,
    Code.NEVER_RESUMED,
}


def _warnings(text: str) -> list[tuple[str, str]]:
    found = policy(f"{OPTIONAL}\n{text}").warnings
    return [(f"{each.line}:{each.column}", each.code) for each in found if each.code in REVIEWED]


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        (
            "running { suspend when $here.load > 50%; resume when $here.load > 30%; }",
            "2:42",
            Code.TOGETHER,
        ),
        (
            "running { suspend when $here.load > 50%; resume unless $here.load > 60%; }",
            "2:42",
            Code.TOGETHER,
        ),
        (
            "running { suspend unless $here.keyboard_idle >= 5min; resume when $here.keyboard_idle >= 30s; }",
            "2:55",
            Code.TOGETHER,
        ),
        ("running { resume when $here.tasks > 3; suspend when $here.load > 50%; }", "2:11", Code.TOGETHER),
        (
            "running { suspend when $here.keyboard_idle < 30s; resume when $here.keyboard_idle > 1h; }",
            "2:19",
            Code.LOST_SENSOR,
        ),
        ("running { suspend when $here.load > 50%; suspend when $here.tasks > 3; }", "2:11", Code.NEVER_RESUMED),
        ("running { vacate when $task.ran > 1h; suspend when $here.load > 50%; }", "2:39", Code.NEVER_RESUMED),
        ("running { move when $here.load > 50% grace 1min then suspend; }", "2:11", Code.NEVER_RESUMED),
        ("running { vacate when $here.keyboard_idle < 30s and $here.load > 5%; }", "2:18", Code.LOST_SENSOR),
        ("rank candidates by first where not $a = 1;", "2:32", Code.NEGATED_OPTIONAL),
        ("rank candidates by first where $b = 1 and not ($b = 2 or $a = 1);", "2:43", Code.NEGATED_OPTIONAL),
        ("let x = $a = 1; rank candidates by first where not x;", "2:48", Code.NEGATED_OPTIONAL),
        ("let x = not $a = 1; rank candidates by first where x;", "2:9", Code.NEGATED_OPTIONAL),
        ("rank candidates by first where has $a and $a > 1;", "2:32", Code.VAIN_PRESENCE),
        ("rank candidates by first where $a > 1 or not has $a;", "2:46", Code.VAIN_PRESENCE),
        (
            "reveal to parent, children { all; } reveal to siblings nothing; reveal to any { all; }",
            "2:75",
            Code.UNREACHABLE,
        ),
        ("accept from parent, siblings, children { } accept from users, any { }", "2:63", Code.UNREACHABLE),
        ("accept { require $cpus = 1; }", "2:1", Code.UNREACHABLE),
    ],
)
def test_a_probable_mistake_is_a_warning(text: str, place: str, code: Code) -> None:
    assert _warnings(text) == [(place, code)]


@pytest.mark.parametrize(
    "text",
    [
        "running { suspend when $here.load > 50%; resume when $here.load < 30%; }",
        "running { suspend unless $here.keyboard_idle >= 30s; resume when $here.keyboard_idle >= 5min; }",
        "running { suspend when $here.waiting_above >= 1; resume when $here.waiting_above = 0; }",
        "running tasks where $b = 1 { suspend when 1 = 1; } running tasks where $b = 2 { resume when 1 = 1; }",
        "running { suspend unless $here.keyboard_idle >= 30s; vacate when $task.suspended > 1h; }",
        "running { suspend when $here.load > 50%; move when $here.load > 20% and $task.suspended > 1min; }",
        "running { kill when $task.mem_used > 1GiB; }",
        "running { suspend when $here.keyboard_idle default 0s < 30s; resume when $here.keyboard_idle > 5min; }",
        "rank candidates by first where not $b = 1;",
        "rank candidates by first where not $a default 0 = 1;",
        "rank candidates by first where not has $a;",
        "rank candidates by first where has $a and $a default 0 > 1;",
        "accept from parent, siblings { } accept from any { }",
        "accept from parent, siblings, children { } reveal to any { all; }",
        "reveal to parent, siblings, children { all; } reveal to any nothing;",
    ],
)
def test_a_plausible_rule_has_no_warning(text: str) -> None:
    assert _warnings(text) == []


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n"])
def test_an_empty_file_is_reported_to_contain_no_policy(text: str) -> None:
    (problem,) = policy(text).warnings
    assert (problem.line, problem.column, problem.code) == (1, 1, Code.EMPTY)
    assert problem.message == "this file contains no policy"
    assert policy('policy "only a name";').warnings == ()


def test_the_examples_have_few_warnings() -> None:
    found = {
        text.split('"')[1]: [each.code for each in policy(text).warnings]
        for text in (DESKTOP, DEPARTMENT, GATEWAY, HOSTING)
    }
    assert found == {
        # Whether somebody is at the desk may be unknown, and then nothing is lent.
        "a desktop": [Code.NEGATED_OPTIONAL, Code.NEGATED_OPTIONAL],
        "cs.example": [Code.BARE_NUMBER, Code.BARE_NUMBER, Code.BARE_NUMBER],
        "site gateway": [],
        "hosting with paying partner": [],
    }
