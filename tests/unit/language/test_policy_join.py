"""The block `join`: without a rule no system is admitted."""

import pytest

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Accepted, JoinQuery
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import NOON, policy, refusal
from tests.unit.language.test_policy_examples import DEPARTMENT


def _asks(name: str, role: Relation, members: int = 0) -> JoinQuery:
    return JoinQuery(name=SystemId(name), role=role, members=members, now=NOON)


@pytest.mark.parametrize("text", ["", "join { }", "join { allow child when 1 = 1; }"])
@pytest.mark.parametrize("role", [Relation.SIBLING, Relation.PARENT])
def test_a_system_without_a_rule_may_not_join(text: str, role: Relation) -> None:
    assert refusal(policy(text).admission.judge(_asks("x", role))).code is DenyCode.REFUSED_BY_POLICY


def test_a_rule_admits_systems_for_which_it_is_true_in_its_role() -> None:
    rules = policy('join { allow child when $peer.name like "*.example"; allow parent when $name eq "top"; }')
    assert rules.admission.judge(_asks("a.example", Relation.CHILD)) == Accepted()
    assert rules.admission.judge(_asks("top", Relation.PARENT)) == Accepted()
    assert refusal(rules.admission.judge(_asks("a.other", Relation.CHILD))).text == "nobody may join as child"
    assert refusal(rules.admission.judge(_asks("a.example", Relation.PARENT)))


def test_an_undefined_rule_admits_no_system() -> None:
    assert refusal(policy("join { allow child when $peer.balance > 0s; }").admission.judge(_asks("x", Relation.CHILD)))


def test_a_limit_counts_present_neighbors() -> None:
    rules = policy("join { allow child when 1 = 1 limit 2; }")
    assert rules.admission.judge(_asks("x", Relation.CHILD, 1)) == Accepted()
    full = refusal(rules.admission.judge(_asks("x", Relation.CHILD, 2)))
    assert (full.code, full.rule) == (DenyCode.LIMIT_REACHED, "allow child when 1 = 1 limit 2")


def test_a_full_rule_does_not_exclude_a_system_that_another_rule_admits() -> None:
    rules = policy('join { allow child when 1 = 1 limit 0; allow child when $peer.name eq "x"; }')
    assert rules.admission.judge(_asks("x", Relation.CHILD, 5)) == Accepted()


def test_the_department_knows_its_members() -> None:
    rules = policy(DEPARTMENT)
    assert rules.admission.judge(_asks("vax.cs.example.edu", Relation.CHILD, 499)) == Accepted()
    assert rules.admission.judge(_asks("pucc.example.edu", Relation.SIBLING)) == Accepted()
    assert refusal(rules.admission.judge(_asks("pucc.example.edu", Relation.CHILD)))


PROBLEMS = [
    ("join;", "1:5", Code.SYNTAX, "`join` needs a block"),
    ("join { } join { }", "1:10", Code.TWICE, "`join` occurs twice"),
    ("join { allow cousin when 1 = 1; }", "1:14", Code.UNKNOWN_NAME, "`cousin` is not a role"),
    ("join { allow child unless 1 = 1; }", "1:20", Code.SYNTAX, "`when` is missing"),
    ("join { allow child when 1 = 1 limit -1; }", "1:37", Code.RANGE, "0 or more"),
    ("join { allow child when $here.load = 1%; }", "1:25", Code.SCOPE, "`join` does not know $here."),
]


@pytest.mark.parametrize(("text", "place", "code", "message"), PROBLEMS)
def test_each_mistake_is_reported_at_its_position(text: str, place: str, code: Code, message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy(text, file="x.policy")
    (problem,) = [problem for problem in raised.value.problems if not problem.is_warning]
    assert (f"{problem.line}:{problem.column}", problem.code) == (place, code)
    assert message in problem.message
