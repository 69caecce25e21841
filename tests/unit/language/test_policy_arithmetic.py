"""Arithmetic in the predicates of policy files: values, machines of which only classes are known, mistakes, limits."""

import pytest

from messiahs.core.interface.policies import Accepted
from messiahs.core.model.attributes import Value
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.runtime.accept_rules import AcceptBlock
from messiahs.language.runtime.condition_explanation import explain, why_false
from messiahs.language.runtime.readings import request_facts
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import Draws, candidate, policy, ranked, ranking, request, sdv, tdv

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def _block(predicate: str, *, lets: str = "") -> AcceptBlock:
    rules = policy(f"attribute $n int; {lets} accept from any {{ require {predicate}; limit 99 tasks; }}")
    block = rules.acceptance.for_any
    assert block is not None
    return block


def _is_accepted(predicate: str, stated: dict[str, Value]) -> bool:
    return _block(predicate).judge(request(tdv(**stated), here=sdv(keyboard_idle=600))) == Accepted()


@pytest.mark.parametrize(
    ("predicate", "stated"),
    [
        ("$mem + 2GiB <= $here.avail_mem", {"mem": 30 << 30}),
        ("$here.avail_mem - $mem >= 2GiB", {"mem": 30 << 30}),
        ("not $mem + 2GiB <= $here.avail_mem", {"mem": (30 << 30) + 1}),
        ("$n + 2 * 3 = 7", {"n": 1}),
        ("($n + 2) * 3 = 9", {"n": 1}),
        ("$n - 2 - 3 = 1", {"n": 6}),
        ("$n -2 = 4", {"n": 6}),
        ("$n / 2 * 2 = 6", {"n": 7}),
        ("$n / 2 = -4", {"n": -7}),
        ("(($n)) = 1", {"n": 1}),
        ("1 + 1 = $n and ($n = 2)", {"n": 2}),
        ("$n default 3 + 1 in (4, 5)", {}),
        ("$mem / $cpus <= 4GiB", {"mem": 8 << 30, "cpus": 2}),
        ("$est_time <= (20:00 - $now.clock) * 1min", {"est_time": 8 * 3600}),
        ("2026-07-20 - $now.date = 5 and $now.date + 5 = 2026-07-20", {}),
        ("$n + 0 = 9223372036854775807", {"n": HIGHEST}),
    ],
)
def test_sums_products_and_quotients_are_compared_by_their_values(predicate: str, stated: dict[str, Value]) -> None:
    assert _is_accepted(predicate, stated)


@pytest.mark.parametrize(
    ("predicate", "stated"),
    [
        ("$est_time <= (20:00 - $now.clock) * 1min", {"est_time": 8 * 3600 + 1}),
        ("100 / $n <= 1", {"n": 0}),
        ("not 100 / $n <= 1", {"n": 0}),
        ("$cpus = 1 or 1 / $n = 1", {"n": 0}),
        ("not $n + 1 <= 5", {"n": HIGHEST}),
        ("$n - 1 <= 5", {"n": LOWEST}),
        ("$n * 2 - $n * 2 <= 5", {"n": HIGHEST}),
        ("not $n / -1 = 3", {"n": LOWEST}),
        ("not $n + 1 = 3", {}),
        ("not $n + 1 = 3", {"n": "many"}),
    ],
)
def test_a_zero_divisor_an_overflow_or_an_unset_attribute_makes_all_of_it_false(
    predicate: str, stated: dict[str, Value]
) -> None:
    assert not _is_accepted(predicate, stated)


def test_an_explanation_shows_what_was_computed_and_why_it_has_no_value() -> None:
    (requirement,) = _block("$mem / ($cpus - 1) <= 1GiB").requirements
    for stated, said in (
        ({"mem": 8 << 30, "cpus": 2}, "$mem / ($cpus - 1) is 8589934592"),
        ({"mem": 8 << 30}, "$mem / ($cpus - 1) has no value: it divides by 0, or exceeds 64 bits"),
        ({"cpus": 2}, "missing ($mem has no value, $cpus is 2)"),
    ):
        explained = explain(requirement.condition, request_facts(request(tdv(**stated))))
        assert said in why_false(explained)


def test_candidates_are_ranked_by_what_is_computed_of_their_machines() -> None:
    rules = policy("rank candidates by first where $avail_mem - $task.mem >= 8GiB, least $cand.age;")
    roomy, small = candidate("roomy", {"avail_mem": 64 << 30}, age_ns=9), candidate("small", {"avail_mem": 9 << 30})
    assert ranked(rules, ranking(small, roomy, task=tdv(mem=2 << 30)), Draws()) == ("roomy", "small")


def test_a_class_in_which_a_machine_may_divide_by_0_is_never_certain() -> None:
    rules = policy("rank candidates by first where 100 / $speed <= 100, least $cand.age;")
    unknown, other = candidate("unknown", {"speed": 0}), candidate("other", {"speed": 1}, age_ns=9)
    assert ranked(rules, ranking(unknown, other), Draws()) == ("other", "unknown")


@pytest.mark.parametrize(
    ("predicate", "column", "code", "message"),
    [
        ("$mem + 1GiB <= 4min", 47, Code.DIMENSION, "size compared with a duration"),
        ("$mem + 1GiB <= $est_time", 47, Code.DIMENSION, "size compared with a duration"),
        ("$mem + 1min <= 4GiB", 39, Code.DIMENSION, "duration added to a size"),
        ("$mem / 0 = 4", 39, Code.MEANING, "division by 0"),
        ("$origin + 1 = 4", 32, Code.TYPE, "$origin is a string"),
        ("$here.load + $user > 3%", 45, Code.TYPE, "$user is a string"),
        ('$mem + 1 eq "a"', 32, Code.TYPE, "this is an integer"),
        ('$mem + 1 like "a"', 32, Code.TYPE, "this is an integer"),
        ('"a" + 1 = 2', 36, Code.SYNTAX, "a comparator is missing before `+`"),
        ("$mem + = 2", 39, Code.SYNTAX, "is missing before `=`"),
        ("$mem + 1 < 2 < 3", 45, Code.SYNTAX, "comparisons do not chain"),
        ("$here.load * 2 > 300%", 32, Code.NEVER_TRUE, "never true"),
        ("9223372036854775807 + 1 > $cpus", 32, Code.NEVER_TRUE, "never true"),
        ("$mem + 1 + $nothing = 3", 43, Code.UNKNOWN_ATTRIBUTE, "$nothing"),
    ],
)
def test_a_mistake_has_its_place_and_its_cause(predicate: str, column: int, code: Code, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(f"accept from children {{ require {predicate}; limit 9 tasks; }}", file="test.policy")
    (problem,) = (each for each in caught.value.problems if not each.is_warning)
    assert (problem.column, problem.code) == (column, code)
    assert message in problem.message


@pytest.mark.parametrize("text", ["policy -1;", "let a = $user in -1;", "accept from any { limit 2 tasks -1; }"])
def test_a_misplaced_number_in_a_policy_file_is_not_taken_for_arithmetic(text: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, file="test.policy")
    (problem,) = (each for each in caught.value.problems if not each.is_warning)
    assert (problem.code, "arithmetic" in problem.hint) == (Code.SYNTAX, False)


def test_what_is_sent_to_other_systems_has_no_arithmetic() -> None:
    with pytest.raises(PolicyError) as caught:
        policy("migrate { ask every 1min when $load + 5% < 25% wanting { $mem * 2 <= 4GiB }; }")
    (problem,) = caught.value.problems
    assert (problem.code, problem.column) == (Code.NOT_OF_THE_PAPER, 58)
    assert "arithmetic is not part of the paper's language" in problem.message


def test_operations_count_against_the_limit_of_a_predicate_also_those_of_a_let() -> None:
    longest = "+1" * 255
    assert _is_accepted(f"256 = $cpus{longest}", {})
    for lets, predicate in (("", f"257 = $cpus+1{longest}"), (f"let a = 256 = $cpus{longest};", "a and $cpus = 1")):
        with pytest.raises(PolicyError) as caught:
            _block(predicate, lets=lets)
        assert [problem.code for problem in caught.value.problems] == [Code.LIMIT]
        assert "more than 256 comparisons and operations" in caught.value.problems[0].message
