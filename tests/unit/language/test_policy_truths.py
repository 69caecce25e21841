"""Predicates that decide nothing: tables of (predicate, position), and of valid ones."""

import re

import pytest

from messiahs.errors import PolicyError, Problem
from messiahs.language.compiler.files import parse_policy
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import policy

DECLARED = ("attribute $gpus int 0..16;", "attribute $n int;", "attribute $site string;")


def _problems(predicate: str, lets: str = "") -> tuple[Problem, ...]:
    # What is declared and not used is a problem of its own.
    named = set(re.findall(r"\$\w+", f"{lets} {predicate}"))
    declared = " ".join(each for each in DECLARED if named & {*each.rstrip(";").split()})
    text = f"{declared}{lets}\naccept from any {{ require {predicate}; limit 9 tasks; }}"
    try:
        return parse_policy(text, file="test.policy").warnings
    except PolicyError as error:
        return error.problems


NEVER = [
    "$cpus > 5 and $cpus < 3",
    "$cpus > 3 and $cpus < 4",
    "$cpus > 5 and not $cpus > 5",
    "5 < $cpus and 3 > $cpus",
    "$gpus > 16",
    "$now.weekday > 7",
    "$now.clock >= 24:00",
    "$mem < 0B",
    "$here.load > 50% and ($here.load < 30% or $here.load < 40%)",
    "$cpus in (1, 2) and $cpus in (3, 4)",
    "$cpus in (1, 2) and $cpus > 2",
    '$user eq "ann" and $user eq "bob"',
    '$user ls "b" and $user gr "c"',
    '$user ls ""',
    '$user in ("ann", "bob") and not $user in ("bob", "ann")',
    '$user like "ann*" and $user eq "bob"',
    '$user like "a*" and $user like "b*"',
    '$user like "*.org" and $user in ("a.edu", "b.edu")',
    '$user like "ann" and $user ne "ann"',
    "$cpus < $cpus",
    "$cpus = $n and $cpus <> $n",
    "$cpus < $n and $n < $cpus",
    "$cpus <= $n and $n <= $gpus and $gpus < $cpus",
    "$cpus < $n and $n < 1",
    "$n = 4 and $cpus = $n and $cpus > 4",
    "$mem default 1GiB > 2GiB and $mem = 1GiB",
    "not has $mem and $mem > 0",
    "not has $mem and $mem default 0 > 1GiB",
    "$n default 1 > 3 and $n default 2 < 2",
    "$cpus = 1 xor $cpus = 1",
    "1 = 2",
    '"a" like "b*"',
]


@pytest.mark.parametrize("predicate", NEVER)
def test_a_predicate_that_is_never_true_is_a_mistake(predicate: str) -> None:
    (problem,) = (each for each in _problems(predicate) if not each.is_warning)
    assert (problem.line, problem.column, problem.code) == (2, 27, Code.NEVER_TRUE)
    assert problem.width == len(predicate)


@pytest.mark.parametrize(
    "predicate",
    [
        "$cpus > 5 or $cpus <= 5",
        "$cpus >= 0",
        "$gpus <= 16",
        "$gpus default 0 <= 16",
        "not $now.weekday > 7",
        "$now.clock < 24:00",
        "$cpus < 3 or $cpus > 4 or $cpus in (3, 4)",
        '$user ge ""',
        '$user like "*"',
        "$cpus = $n or $cpus < $n or $cpus > $n",
        "$n default 1 = 1 or not has $n or $n default 2 <> 1",
        "1 = 1",
    ],
)
def test_a_predicate_that_is_always_true_is_a_warning(predicate: str) -> None:
    (problem,) = (each for each in _problems(predicate) if each.code == Code.ALWAYS_TRUE)
    assert (problem.line, problem.column, problem.is_warning, problem.width) == (2, 27, True, len(predicate))


@pytest.mark.parametrize(
    ("predicate", "place", "code"),
    [
        ("$cpus = 3 or ($n > 5 and $n < 3)", 41, Code.DEAD_PART),
        ("$cpus = 3 or $n = 1 and $now.weekday > 7", 40, Code.DEAD_PART),
        ("$cpus = 3 and $now.weekday <= 7", 41, Code.ALWAYS_TRUE),
        ("$cpus = 3 and ($n = 1 or $n <> 1)", 42, Code.ALWAYS_TRUE),
        ("$cpus = 3 and not ($n = 1 and $n = 2)", 41, Code.ALWAYS_TRUE),
    ],
)
def test_the_largest_part_that_decides_nothing_is_a_warning(predicate: str, place: int, code: Code) -> None:
    (problem,) = _problems(predicate)
    assert (problem.column, problem.code, problem.is_warning) == (place, code, True)


@pytest.mark.parametrize(
    "predicate",
    [
        "$cpus > 3 and $cpus < 5",
        "$gpus > 15",
        "$here.load < 100%",
        "$now.clock >= 20:00 or $now.clock < 7:00 or $now.weekday >= 6",
        '$user ge "ann" and $user ls "anna"',
        '$user like "a*" and $user like "*b"',
        '$user like "a*" and not $user eq "ab"',
        '$user gr "ann" and $user ls "ann~"',
        "$cpus <= $n and $n <= $cpus",
        "$n default 1 > 3 and $n default 2 < 5",
        "$n default -1 < 0",
        "has $mem",
        "has $mem and $mem default 0 > 1GiB",
        "$cpus = 1 xor $n = 1",
        '$peer.relation in ("child", "sibling")',
    ],
)
def test_a_predicate_that_may_be_true_or_false_has_no_problem(predicate: str) -> None:
    assert [each.message for each in _problems(predicate)] == []


def test_the_only_attribute_of_a_contradiction_is_named() -> None:
    (problem,) = _problems("$n > 5 and $n < 3")
    assert problem.hint == "no value of $n makes it so"


def test_a_let_that_is_never_true_is_reported_only_at_its_definition() -> None:
    found = _problems("never and $cpus = 1", lets="\nlet never = $n > 5 and $n < 3;")
    assert [(problem.line, problem.column, problem.code) for problem in found] == [(2, 13, Code.NEVER_TRUE)]


def test_lets_that_contradict_each_other_are_reported_where_they_meet() -> None:
    (problem,) = _problems("low and high", lets="\nlet low = $n < 3;\nlet high = $n > 5;")
    assert (problem.line, problem.column, problem.code) == (4, 27, Code.NEVER_TRUE)


def test_a_predicate_with_a_mistake_is_not_checked_further() -> None:
    found = _problems("$cpuss = 1 or $now.weekday = 9 or 1 = 1")
    assert [problem.code for problem in found] == [Code.UNKNOWN_ATTRIBUTE, Code.RANGE]


@pytest.mark.parametrize("text", ["children", "Child", ""])
def test_a_text_outside_of_an_attributes_choices_is_out_of_range(text: str) -> None:
    (problem,) = _problems(f'$peer.relation eq "{text}"')
    assert (problem.column, problem.code) == (45, Code.RANGE)
    assert "self, child, sibling, parent" in problem.hint


def test_predicates_that_are_too_complex_are_accepted_in_time() -> None:
    pairs = [f"($a{one} < $a{other} xor $a{other} <> {one})" for one in range(9) for other in range(9) if one != other]
    declared = "".join(f"attribute $a{number} int; " for number in range(9))
    tangled = " and ".join(pairs)
    rules = "".join(f"require {tangled} and $cpus <> {number}; " for number in range(12))
    assert policy(f"{declared} accept from any {{ {rules} limit 1 tasks; }}").warnings == ()
