"""Predicates of policy files beyond the paper's: scopes, defaults, `has`, `in`, `like`, quantities, `let`."""

import pytest

from messiahs.core.interface.policies import Accepted
from messiahs.core.model.attributes import Value
from messiahs.core.model.neighbors import Relation
from tests.unit.language.policy_rig import policy, request, sdv, tdv

DECLARED = "attribute $gpus int optional;\nattribute $licence string optional;\n"


def _is_accepted(predicate: str, stated: dict[str, Value], *, lets: str = "") -> bool:
    rules = policy(f"{DECLARED}{lets}accept from any {{ require {predicate}; limit 99 tasks; }}")
    return rules.acceptance.judge(request(tdv(**stated), here=sdv(keyboard_idle=600))) == Accepted()


@pytest.mark.parametrize(
    ("predicate", "stated"),
    [
        ("$mem <= 8GiB", {"mem": 8 << 30}),
        ("$mem <= 8GB", {"mem": 8 * 10**9}),
        ("$mem >= 1.5GiB", {"mem": 3 << 29}),
        ("$est_time <= 2d and $est_time > 47h", {"est_time": 172800}),
        ("$est_time = 1.5h", {"est_time": 5400}),
        ("$here.load = 10%", {}),
        ("$here.load > 9.99%", {}),
        ("$here.keyboard_idle >= 10min", {}),
        ("$now.clock = 12:00 and $now.weekday = 3 and $now.day = 15", {}),
        ("12:00 >= $now.clock", {}),
        ("$now.month = 7", {}),
        ("$now.date = 2026-07-15", {}),
        ("$now.date >= 2026-07-13 and $now.date <= 2026-07-31", {}),
        ("$now.date in (2026-07-14, 2026-07-15)", {}),
        ("not $now.date > 2026-07-15", {}),
        ('$peer.name eq "leaf" and $peer.relation eq "child" and $task.from eq "leaf"', {}),
        ('$task.user eq "ann" and $user eq "ann" and $here.arch eq "x86_64"', {}),
        ("$gpus default 0 <= 4", {}),
        ("$gpus default 0 <= 4", {"gpus": 4}),
        ("$gpus default 0 <= 4", {"gpus": "many"}),
        ("not ($gpus default 0 > 4)", {}),
        ("has $gpus", {"gpus": 0}),
        ("has $gpus", {"gpus": "many"}),
        ("not has $gpus", {}),
        ("not has $gpus and $cpus = 1", {}),
        ("$cpus in (1, 2)", {}),
        ('$user in ("bob", "ann")', {}),
        ('not $user in ("bob", "eve")', {}),
        ('$licence default "" in ("", "academic")', {}),
        ("2 in (1, 2)", {}),
        ('$origin like "*.example"', {}),
        ('$origin like "cs.*"', {}),
        ('$origin like "c*.*e"', {}),
        ('$origin like "cs.example"', {}),
        ('$origin like "**"', {}),
        ('$licence default "x" like "x*"', {}),
        ('"abc" like "a*c"', {}),
        ("$cpus = 1 # and $cpus = 2\n", {}),
        ("$cpus = 1 xor $cpus = 2", {}),
    ],
)
def test_true_predicates_accept(predicate: str, stated: dict[str, Value]) -> None:
    assert _is_accepted(predicate, stated)


@pytest.mark.parametrize(
    ("predicate", "stated"),
    [
        ("$mem <= 8GB", {"mem": 8 << 30}),
        ("$mem <= 8GB", {}),
        ("not $mem > 8GB", {}),
        ("$cpus = 1 or $mem <= 8GB", {}),
        ("$cpus = 1 xor $mem <= 8GB", {}),
        ("$gpus <= 4", {"gpus": "many"}),
        ("not $gpus <= 4", {"gpus": "many"}),
        ("has $gpus and $gpus = 0", {}),
        ("not has $gpus or $gpus = 0", {}),
        ("has $gpus", {}),
        ('$origin like "*.org"', {}),
        ('$origin like "example"', {}),
        ('$origin like "*cs.example*cs.example*"', {}),
        ('$origin like "cs.e*e.example"', {}),
        ('not $licence like "x*"', {}),
        ("not $peer.balance < 0s", {}),
        ("$here.waiting = 0", {}),
        ("$here.gpus = 0", {"gpus": 0}),
    ],
)
def test_false_or_undefined_predicates_refuse(predicate: str, stated: dict[str, Value]) -> None:
    assert not _is_accepted(predicate, stated)


@pytest.mark.parametrize(
    ("lets", "predicate", "is_accepted"),
    [
        ("let day = $now.clock < 20:00;", "day", True),
        ("let day = $now.clock < 20:00;", "not day", False),
        ("let day = $now.clock < 20:00; let work = day and $now.weekday <= 5;", "work", True),
        ("let small = $mem <= 1GB;", "small", False),
        ("let small = $mem <= 1GB;", "not small", False),
        ("let small = $mem default 0 <= 1GB;", "small", True),
        ("let a = $cpus = 1 or $cpus = 2;", 'a and $user eq "bob"', False),
        ("let a = $cpus = 1 or $cpus = 2;", "not a", False),
    ],
)
def test_a_let_is_its_predicate_in_parentheses_and_its_variables_are_used(
    lets: str, predicate: str, *, is_accepted: bool
) -> None:
    assert _is_accepted(predicate, {}, lets=lets) is is_accepted


def test_the_subject_of_a_let_is_that_of_the_block_that_uses_it() -> None:
    rules = policy(
        "attribute $gpus int; let some = $gpus > 0; accept from any { require some; limit 9 tasks; }\n"
        "advertise every 2s { set $willingness = 1 when some else 2; }"
    )
    assert isinstance(rules.acceptance.judge(request(tdv(gpus=1), relation=Relation.PARENT)), Accepted)
    described = rules.disclosure.describe_here(sdv(gpus=0), request().now).description()
    assert described["willingness"] == 2


def test_a_pattern_with_many_stars_costs_no_more_than_its_length() -> None:
    # Trying every way to divide the text would take 2^50 steps.
    assert not _is_accepted(f'$licence like "{"*a" * 60}b"', {"licence": "a" * 64})
