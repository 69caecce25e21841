"""Why a condition is false: every comparison with its values, and those that fail."""

import pytest

from messiahs.core.interface.policies import Placed
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, TDV
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY
from messiahs.language.runtime.condition_explanation import Explanation, explain, values_text, why_false
from messiahs.language.runtime.readings import request_facts
from messiahs.language.syntax.written import text_of
from tests.unit.language.policy_rig import machines, policy, request, sdv, tdv

LETS = "let night = $now.clock >= 20:00 or $now.clock < 7:00;\nlet busy = $here.load > 50%;\n"


def _explained(predicate: str, said: dict[str, Value]) -> Explanation:
    rules = policy(f"{LETS}accept from any {{ require {predicate}; limit 9 tasks; }}").acceptance.for_any
    assert rules is not None
    return explain(rules.requirements[0].condition, request_facts(request(tdv(**said))))


@pytest.mark.parametrize(
    ("predicate", "said", "findings", "against"),
    [
        ("$mem <= 8GiB", {"mem": 1}, ["true"], []),
        ("$mem <= 8GiB", {"mem": 9 << 30}, ["false"], [0]),
        ("$mem <= 8GiB", {}, ["missing"], [0]),
        ("$mem <= 8GiB", {"mem": "much"}, ["mistyped"], [0]),
        ("$mem <= 8GiB and $cpus = 2 and $disk = 0", {"mem": 9 << 30, "disk": 0}, ["false", "false", "true"], [0, 1]),
        # Everything that an `or` lacks is against it, and nothing if one part is true.
        ("$cpus = 2 or $cpus = 3", {}, ["false", "false"], [0, 1]),
        ("$cpus = 1 or $cpus = 3", {}, ["true", "false"], []),
        ("$cpus = 1 or $mem = 3 or $cpus = 2", {}, ["true", "missing", "false"], [1]),
        ("not ($cpus = 1 and $cpus < 9)", {}, ["true", "true"], [0, 1]),
        ("not ($cpus = 1 or $cpus = 3)", {}, ["true", "false"], [0]),
        ("not ($cpus = 2 and $mem = 3)", {}, ["false", "missing"], [1]),
        ("$cpus = 1 xor $cpus < 9", {}, ["true", "true"], [0, 1]),
        ("night and not busy", {}, ["false", "false", "false"], [0, 1]),
        ("not not busy", {}, ["false"], [0]),
        ('has $mem and $user in ("bob", "eve")', {}, ["false", "false"], [0, 1]),
        ('$user like "b*" and $task.priority default 3 = 3', {}, ["false", "true"], [0]),
    ],
)
def test_each_comparison_is_evaluated_and_those_that_fail_are_named(
    predicate: str, said: dict[str, Value], findings: list[str], against: list[int]
) -> None:
    explained = _explained(predicate, said)
    assert [term.finding for term in explained.terms] == findings
    assert [explained.terms.index(term) for term in explained.against] == against
    assert explained.holds is (not against)


@pytest.mark.parametrize(
    ("predicate", "said", "expected"),
    [
        ("$mem <= 8GiB", {"mem": 9 << 30}, "$mem <= 8GiB is false ($mem is 9GiB)"),
        ("$est_time <= 10h", {}, "$est_time <= 10h is missing ($est_time has no value)"),
        ("$est_time <= 10h", {"est_time": "1"}, '$est_time <= 10h is mistyped ($est_time is "1")'),
        ("not busy and $here.load = 0%", {}, "$here.load = 0% is false ($here.load is 10%)"),
        ("$mem default 9GiB = 0", {}, "$mem default 9GiB = 0 is false ($mem is 9GiB by default)"),
        ("1 = 2 or $cpus = 2", {"cpus": 1}, "1 = 2 is false, $cpus = 2 is false ($cpus is 1)"),
        # A stranger chooses it, and it must not begin a line of the log.
        ('$user eq "a"', {"user": 'b"\nc\u202e'}, '$user eq "a" is false ($user is "b\\"\\nc\ufffd")'),
        ("$mem = $disk and $cpus = 1", {"mem": 1, "disk": 2}, "$mem = $disk is false ($disk is 2B, $mem is 1B)"),
    ],
)
def test_failing_comparisons_are_shown_with_values_in_policy_notation(
    predicate: str, said: dict[str, Value], expected: str
) -> None:
    assert why_false(_explained(predicate, said)) == expected


def test_comparisons_of_a_let_are_shown_with_its_name_as_in_its_definition() -> None:
    explained = _explained("not busy and (night or $cpus = 1)", {})
    assert [(term.let, term.term.text) for term in explained.terms] == [
        ("busy", "$here.load > 50%"),
        ("night", "$now.clock >= 20:00"),
        ("night", "$now.clock < 7:00"),
        ("", "$cpus = 1"),
    ]
    assert [LETS[term.term.start :].startswith(term.term.text) for term in explained.terms] == [True] * 3 + [False]
    assert [values_text(term) for term in explained.terms][1] == "$now.clock is 12:00"
    assert explained.condition.written is not None
    assert text_of(explained.condition.written) == "not busy and (night or $cpus = 1)"


RULES = """accept from any {
    require $mem <= 8GiB else "too large";
    require $cpus = 1;
    when $here.load < 5%;
    when $cpus = 4;
    limit 2 tasks;
}
accept from "friend" { when $cpus = 1; when $cpus = 2; limit 1 tasks; }
accept from "below" { require $here.free_slots >= 99; limit 9 tasks; }
"""


@pytest.mark.parametrize(
    ("peer", "task", "placed", "expected"),
    [
        (
            "any",
            tdv(mem=9 << 30, cpus=3),
            0,
            (
                "require $mem <= 8GiB: $mem <= 8GiB is false ($mem is 9GiB); "
                "require $cpus = 1: $cpus = 1 is false ($cpus is 3); "
                "when $here.load < 5%: $here.load < 5% is false ($here.load is 10%); "
                "when $cpus = 4: $cpus = 4 is false ($cpus is 3)"
            ),
        ),
        ("friend", tdv(), 0, ""),
        ("friend", tdv(cpus=2), 1, "limit 1 tasks: 1 of 1 slots taken, 1 wanted"),
    ],
)
def test_every_rule_that_refuses_a_request_is_reported_to_the_owner(
    peer: str, task: TDV, placed: int, expected: str
) -> None:
    query = request(task, system=peer, placed=(Placed(tdv=tdv(), slots=placed),))
    assert policy(RULES).acceptance.why_refused(query) == expected


def test_without_a_machine_the_explanation_counts_machines_below_that_could_satisfy_a_rule() -> None:
    def why(here: SDV | None, free_slots: int) -> str:
        query = request(system="below", here=here)
        if here is None:
            below = IndexedVector(machines({"free_slots": free_slots}) if free_slots else EMPTY)
            query = type(query)(tdv=query.tdv, asker=query.asker, here=None, subtree=below, now=query.now)
        return policy(RULES).acceptance.why_refused(query)

    assert why(None, 0) == "require $here.free_slots >= 99: 0 of 0 machines could meet it"
    assert why(None, 100) == ""
    assert why(sdv(), 0).endswith("is false ($here.free_slots is 8)")


def test_long_texts_of_strangers_are_truncated() -> None:
    many = policy("accept from any { " + 'require $user eq "' + "x" * 900 + '";' + "limit 9 tasks; }")
    why = many.acceptance.why_refused(request())
    assert len(why) == 1003
    assert why.endswith("...")
