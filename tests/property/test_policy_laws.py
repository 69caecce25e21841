"""Laws of policies: evaluation over classes is sound, arithmetic keeps its ranges, and `like` matches like a regex."""

import re

from hypothesis import given, reject
from hypothesis import strategies as st

from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import coalesce, vector_of
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.runtime.candidate_ranking import First, Most, keys_of
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.condition_explanation import explain
from messiahs.language.runtime.readings import MACHINE, matches
from messiahs.language.syntax.problems import Code
from tests.property.budget import examples

INTEGERS = st.sampled_from([-(2**63), -9, -1, 0, 1, 2, 3, 9, 10, 11, 100, 2**62, 2**63 - 1])
STRINGS = st.sampled_from(["", "a", "b", "ab", "aab"])
TERMS = [
    "$a < 3",
    "$a default 2 >= 2",
    "$a default 9 in (9, 10)",
    "has $a",
    "has $c",
    "$b = $a",
    "$b in (-1, 2, 100)",
    '$c eq "ab"',
    '$c default "a" like "a*"',
    '$c like "*b"',
    '$c in ("a", "b")',
    "$c in letters",
    '$c default "a" in letters',
    "1 = 1",
    "$a + 1 > $b default 2",
    "$a * $b >= 9",
    "$b / $a = 1",
    "($a - $b) * 2 in (0, 2, 4)",
    "100 / ($a default 0) < $b + 3",
]
MACHINES = st.fixed_dictionaries({}, optional={"a": INTEGERS, "b": INTEGERS, "c": STRINGS})
DECLARED = 'group letters = ("a", "b"); attribute $a int; attribute $b int; attribute $c string;\n'


def _larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.tuples(smaller, st.sampled_from(["and", "or", "xor"]), smaller).map(" ".join)
    return joined.map("({})".format) | smaller.map("not {}".format)


PREDICATES = st.recursive(st.sampled_from(TERMS), _larger, max_leaves=6)
OPERATIONS = st.tuples(st.sampled_from(["+", "-", "*"]), st.sampled_from(["$a", "$b default 2", "$b", "3", "-1"]))
DIVISIONS = st.tuples(st.just("/"), st.sampled_from(["2", "-3", "100", "$b", "($a - 1)"]))
SUMS = st.lists(OPERATIONS | DIVISIONS, max_size=4).map(
    lambda steps: "$a" + "".join(f" {sign} {by}" for sign, by in steps)
)


def _policy(key: str) -> CompiledPolicy:
    try:
        return parse_policy(f"{DECLARED} rank candidates by {key};", file="law.policy")
    except PolicyError as error:
        if any(problem.code != Code.NEVER_TRUE for problem in error.problems if not problem.is_warning):
            raise
        reject()


@examples(200)
@given(PREDICATES, MACHINES)
def test_an_explanation_agrees_with_the_decision(predicate: str, machine: dict[str, Value]) -> None:
    (key,) = keys_of(_policy(f"first where {predicate}").location)
    assert isinstance(key, First)
    explained = explain(key.condition, {MACHINE: machine})
    values = [operand.value_in({MACHINE: machine}) for operand in key.condition.operands]
    assert bool(explained.undefined) is (None in values)
    assert explained.holds is bool(explained.whole.is_true)
    assert explained.holds is (not explained.against)
    assert {term.is_true for term in explained.undefined} <= {None}


@examples(200)
@given(PREDICATES, st.lists(MACHINES, min_size=1, max_size=4))
def test_the_evaluation_of_a_class_agrees_with_its_machines(predicate: str, machines: list[dict[str, Value]]) -> None:
    (key,) = keys_of(_policy(f"first where {predicate}").location)
    assert isinstance(key, First)
    whole = IndexedVector(coalesce((vector_of(SDV(sorted_pairs(machine))) for machine in machines), keys=()))
    answers = [key.condition.holds({MACHINE: machine}) for machine in machines]
    surely, could = key.condition.over({}, MACHINE, whole)
    assert surely in (0, could)
    if surely:
        assert all(answers)
    if any(answers):
        assert could == 1


@examples(200)
@given(SUMS, st.lists(MACHINES, min_size=1, max_size=3))
def test_an_amount_of_a_machine_is_in_the_range_of_its_class(text: str, machines: list[dict[str, Value]]) -> None:
    (key,) = keys_of(_policy(f"most {text}").location)
    assert isinstance(key, Most)
    whole = IndexedVector(coalesce((vector_of(SDV(sorted_pairs(machine))) for machine in machines), keys=()))
    ranges = key.amount.ranges_in({}, MACHINE, whole, 1)
    for machine in machines:
        value = key.amount.value_in({MACHINE: machine})
        assert value is None or -(2**63) <= value < 2**63
        for least, greatest in ranges:
            assert value is not None
            assert least <= value <= greatest


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_a_pattern_matches_like_the_same_regular_expression(pattern: str, text: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text)
    assert matches(pattern, text) is (expected is not None)
