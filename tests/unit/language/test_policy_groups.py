"""Groups of policy files: texts that belong together, listed once."""

import pytest

from messiahs.core.interface.policies import Accepted
from messiahs.core.model.attributes import Value
from messiahs.errors import PolicyError
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import policy, request, tdv

GROUPS = 'group physics = ("ann", "bob"); group partners = ("cs.example", "\\"");'


def _is_accepted(predicate: str, stated: dict[str, Value]) -> bool:
    rules = policy(f"attribute $account string; accept from any {{ require {predicate}; limit 99 tasks; }} {GROUPS}")
    return rules.acceptance.judge(request(tdv(**stated))) == Accepted()


@pytest.mark.parametrize(
    ("predicate", "stated", "is_accepted"),
    [
        ("$user in physics", {"user": "bob"}, True),
        ("$user in physics", {"user": "Bob"}, False),
        ("$user in physics", {"user": "eve"}, False),
        ("not $user in physics", {"user": "eve"}, True),
        ("$user in physics or $origin in partners", {"user": "eve"}, True),
        ("$origin in partners", {"origin": '"'}, True),
        ("$account in physics", {}, False),
        ("not $account in physics", {}, False),
        ("not $account in physics", {"account": 7}, False),
        ('not $account default "" in physics', {}, True),
        ("$peer.name in partners", {}, False),
    ],
)
def test_a_text_is_in_a_group_or_not_and_without_one_all_is_false(
    predicate: str, stated: dict[str, Value], *, is_accepted: bool
) -> None:
    assert _is_accepted(predicate, stated) is is_accepted


def test_a_group_may_be_longer_than_a_predicate() -> None:
    names = ", ".join(f'"user{number}"' for number in range(5_000))
    rules = policy(f"group many = ({names}); accept from any {{ require $user in many; limit 9 tasks; }}")
    assert rules.acceptance.judge(request(tdv(user="user4999"))) == Accepted()
    assert rules.acceptance.judge(request(tdv(user="user5000"))) != Accepted()


def test_a_definition_that_nothing_else_names_is_a_warning() -> None:
    text = """group used = ("ann");
group forgotten = ("eve");
let inner = $user in used;
let outer = inner and $cpus < 9;
let idle = $cpus < 2;
accept from any { require outer; limit 9 tasks; }"""
    found = [(f"{each.line}:{each.column}", each.message) for each in policy(text).warnings if each.code == Code.UNUSED]
    assert found == [
        ("2:7", "`group forgotten` is never used in this policy"),
        ("5:5", "`let idle` is never used in this policy"),
    ]


@pytest.mark.parametrize(
    ("text", "place", "code", "hint"),
    [
        ("let a = $user in physic;", "1:18", Code.UNKNOWN_NAME, "did you mean `physics`?"),
        ("let a = $cpus in physics;", "1:9", Code.TYPE, ""),
        ("let a = $cpus + 1 in physics;", "1:9", Code.TYPE, ""),
        ('let a = $user in physics and $user eq "eve";', "1:9", Code.NEVER_TRUE, ""),
        ('group physics = ("eve");', "2:7", Code.TWICE, "join the two lists"),
        ('group rest = ("eve", 1);', "1:22", Code.SYNTAX, ""),
        ("migrate { ask every 1min when $load < 5% wanting { $user in physics }; }", "1:52", Code.NOT_OF_THE_PAPER, ""),
        ('rank tasks by first where $peer.relation eq "self";', "1:27", Code.SCOPE, "write $task.relation"),
        ('running { kill when $peer.name eq "cs"; }', "1:21", Code.SCOPE, "write $task.from"),
    ],
)
def test_a_mistake_has_its_place_and_its_remedy(text: str, place: str, code: Code, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy(f"{text}\n{GROUPS}")
    (problem,) = (each for each in caught.value.problems if not each.is_warning)
    assert (f"{problem.line}:{problem.column}", problem.code) == (place, code)
    assert hint in problem.hint
