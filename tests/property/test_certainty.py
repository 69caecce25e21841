"""Static statements about predicates are true: compared with trying all values, on small ranges of integers."""

from collections.abc import Iterator
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.attributes import Kind, Value
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.predicate.satisfiability import Effort, can_be_true
from messiahs.language.predicate.syntax import (
    COMPARATORS,
    Chain,
    Comparison,
    Connective,
    Expression,
    Not,
    Order,
    Variable,
    comparisons_of,
)
from messiahs.language.predicate.truth import truth_of
from messiahs.language.predicate.value_sets import everything, integers
from messiahs.language.runtime.candidate_ranking import First, keys_of
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.readings import MACHINE
from messiahs.language.syntax.problems import Code
from tests.property.budget import examples

NAMES = ("a", "b", "c", "s", "t")
PLACES = {name: place for place, name in enumerate(NAMES)}
INTEGERS = range(-1, 4)
STRINGS = ("", "a", "a\0", "aa", "b")
DOMAINS = {
    **dict.fromkeys(NAMES[:3], integers(INTEGERS[0], INTEGERS[-1])),
    **dict.fromkeys(NAMES[3:], everything(Kind.STRING)),
}
LITERALS = {Kind.INTEGER: st.integers(-2, 4), Kind.STRING: st.sampled_from(STRINGS)}
VARIABLES = {Kind.INTEGER: NAMES[:3], Kind.STRING: NAMES[3:]}


def _comparisons(kind: Kind, variables: tuple[str, ...]) -> st.SearchStrategy[Expression]:
    operand = st.sampled_from(variables).map(Variable) | LITERALS[kind]
    return st.builds(Comparison, kind=st.just(kind), left=operand, order=st.sampled_from(Order), right=operand)


def _larger(smaller: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    terms = st.lists(smaller, max_size=3).map(tuple)
    return st.builds(Not, smaller) | st.builds(Chain, st.sampled_from(Connective), terms)


def _expressions(variables: dict[Kind, tuple[str, ...]]) -> st.SearchStrategy[Expression]:
    comparisons = st.one_of([_comparisons(kind, names) for kind, names in variables.items()])
    return st.recursive(comparisons, _larger, max_leaves=8)


def _is_true_somewhere(expression: Expression) -> bool:
    operands = {side for each in comparisons_of(expression) for side in (each.left, each.right)}
    used = {operand.name for operand in operands if isinstance(operand, Variable)}
    values: list[tuple[Value, ...]] = [
        ((0,) if name not in used else tuple(INTEGERS) if name in NAMES[:3] else STRINGS) for name in NAMES
    ]
    truth = truth_of(expression, PLACES)
    return any(truth(row) for row in product(*values))


@examples(1000)
@given(_expressions(VARIABLES))
def test_a_predicate_that_is_never_true_is_false_for_all_values(expression: Expression) -> None:
    if not can_be_true(expression, DOMAINS, Effort(10_000)):
        assert not _is_true_somewhere(expression)


@examples(1000)
@given(_expressions({Kind.INTEGER: NAMES[:3]}))
def test_of_integers_without_gaps_the_answer_is_exact(expression: Expression) -> None:
    pairs = [(each.left, each.right) for each in comparisons_of(expression)]
    # Orders between variables with gaps in their values are beyond it.
    if not any(isinstance(left, Variable) and isinstance(right, Variable) for left, right in pairs):
        assert can_be_true(expression, DOMAINS, Effort(100_000)) == _is_true_somewhere(expression)


@examples(200)
@given(_expressions(VARIABLES), st.integers(0, 30))
def test_without_effort_the_answer_is_that_it_may_be_true(expression: Expression, effort: int) -> None:
    if not can_be_true(expression, DOMAINS, Effort(effort)):
        assert not _is_true_somewhere(expression)


TERMS = [
    *(f"$a {word} {number}" for word in ("<", "<=", ">", ">=", "=", "<>") for number in (0, 1, 3)),
    *(f'$s {word} "{text}"' for word in ("eq", "ne", "ls", "le", "gr", "ge") for text in ("", "a", "ab")),
    *(f'$s like "{pattern}"' for pattern in ("a*", "*b", "ab", "*")),
    '$s default "b" like "*b"',
    '$s default "a" eq "a"',
    "$a default 2 = 2",
    "$a default 9 > 3",
    "$a = $b",
    "$a default 1 < $b",
    "$b in (0, 2)",
    "has $a",
    "has $b",
    "has $s",
]
WORDS = st.recursive(
    st.sampled_from(TERMS),
    lambda smaller: (
        st.tuples(smaller, st.sampled_from(["and", "or", "xor"]), smaller).map(" ".join).map("({})".format)
        | smaller.map("not {}".format)
    ),
    max_leaves=6,
)
DECLARED = "attribute $a int 0..3; attribute $b int 0..2; attribute $s string;\n"


def _machines() -> Iterator[dict[str, Value]]:
    for a, b, s in product((None, 0, 1, 2, 3), (None, 0, 1, 2), (None, "", "a", "ab", "b", "ba")):
        said = {"a": a, "b": b, "s": s}
        yield {name: value for name, value in said.items() if value is not None}


@examples(500)
@given(WORDS)
def test_warnings_about_a_policy_are_true(predicate: str) -> None:
    compiled = _policy_of(predicate)
    if isinstance(compiled, CompiledPolicy):
        # About the whole predicate, not a part of it.
        found = [each for each in compiled.warnings if (each.code, each.width) == (Code.ALWAYS_TRUE, len(predicate))]
    else:
        assert {each.code for each in compiled.problems if not each.is_warning} == {Code.NEVER_TRUE}
        found, compiled = [*compiled.problems], _policy_of(f"not ({predicate})")
    if found:
        assert isinstance(compiled, CompiledPolicy)
        assert all(_judged(keys_of(compiled.location), machine) in (True, None) for machine in _machines())


def _policy_of(predicate: str) -> CompiledPolicy | PolicyError:
    try:
        return parse_policy(f"{DECLARED} rank candidates by first where {predicate};", file="any.policy")
    except PolicyError as error:
        return error


def _judged(ranking: object, machine: dict[str, Value]) -> bool | None:
    """Evaluate the only key of a ranking; None if an attribute is unset."""
    assert isinstance(ranking, tuple)
    (key,) = ranking
    assert isinstance(key, First)
    facts = {MACHINE: machine}
    return None if key.condition.unset_in(facts) else key.condition.holds(facts)


def test_all_comparators_are_among_the_terms_that_are_tried() -> None:
    assert {word for term in TERMS for word in term.split() if word in COMPARATORS} == set(COMPARATORS)
