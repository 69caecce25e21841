"""The size of inputs and `$comm_load` in policies: they are weighed against round trips and throughput."""

from dataclasses import replace

import pytest

from messiahs.core.interface.policies import Accepted, Refused
from messiahs.core.model.instants import MILLISECOND
from messiahs.core.model.link_costs import UNKNOWN_COSTS, LinkCosts
from messiahs.errors import PolicyError
from messiahs.language.predicate.predicates import parse_predicate
from tests.unit.language.policy_rig import Draws, candidate, policy, ranked, ranking, request, tdv
from tests.unit.language.trial_rig import came

MIB = 1 << 20
NEAR, WIDE = LinkCosts(2 * MILLISECOND, 1_000_000), LinkCosts(80 * MILLISECOND, 50_000_000)
MOVING = """rank candidates by least $cand.round_trip default 10ms
    + ($task.input_size + $task.comm_load default 0B) * 1000 / $cand.throughput default 10MB;"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ["near", "unknown", "wide"]),
        ({"input_size": MIB}, ["wide", "unknown", "near"]),
        ({"comm_load": MIB}, ["wide", "unknown", "near"]),
        ({"comm_load": 50_000}, ["unknown", "near", "wide"]),
    ],
)
def test_the_cost_of_moving_a_task_decides_among_links(said: dict[str, int], expected: list[str]) -> None:
    candidates = [
        replace(candidate(name), costs=costs)
        for name, costs in (("wide", WIDE), ("near", NEAR), ("unknown", UNKNOWN_COSTS))
    ]
    assert list(ranked(policy(MOVING), ranking(*candidates, task=tdv(**said)), Draws())) == expected


def test_a_task_without_an_input_size_has_small_inputs_or_is_of_an_earlier_release() -> None:
    rules = policy("accept from any { require $input_size <= 1GiB and not $input_size > 2GiB; limit 9 tasks; }")
    assert isinstance(rules.acceptance.judge(request(tdv())), Accepted)
    assert isinstance(rules.acceptance.judge(request(tdv(input_size=1 << 30))), Accepted)
    assert isinstance(rules.acceptance.judge(request(tdv(input_size=2 << 30))), Refused)
    assert parse_predicate("$input_size <= 5").holds(tdv().description())


def test_a_policy_test_states_both_and_an_input_size_of_0_by_default() -> None:
    rules = """accept from any { limit 9 tasks; require $input_size + $comm_load default 0B <= 3MiB else "too much"; }
        running { kill when $task.input_size >= 8MiB; }"""
    steps = """
        peer { name = "x"; } expect accept; expect nothing;
        task { input_size = 2MiB; } expect accept;
        task { comm_load = 2MiB; } expect refuse "too much";
        task { input_size = 8MiB; } after 1s; expect kill;"""
    assert came(steps, rules) == []


def test_a_file_cannot_declare_it_otherwise() -> None:
    with pytest.raises(PolicyError, match="already known"):
        policy("attribute $input_size int;")
