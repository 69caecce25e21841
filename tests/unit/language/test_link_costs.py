"""Communication costs in policies: `$cand.round_trip`, `$cand.throughput`, `$peer.…`, and who is shown them."""

from dataclasses import replace

import pytest

from messiahs.core.interface.policies import Candidate
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND
from messiahs.core.model.link_costs import UNKNOWN_COSTS, LinkCosts
from messiahs.core.model.neighbors import Neighbor
from messiahs.errors import PolicyError
from tests.unit.language.policy_rig import Draws, candidate, policy, ranked, ranking
from tests.unit.language.trial_rig import came

NEAR, FAR = LinkCosts(2 * MILLISECOND, 1_000_000), LinkCosts(80 * MILLISECOND, 50_000_000)
PARENT = Neighbor(system=SystemId("up"), is_parent=True, is_primary_parent=True)


def order(rank: str, **costs: LinkCosts) -> list[str]:
    candidates: list[Candidate] = [replace(candidate(name), costs=said) for name, said in costs.items()]
    return list(ranked(policy(f"rank candidates by {rank};"), ranking(*candidates), Draws()))


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        ("least $cand.round_trip", ["near", "far", "unknown"]),
        ("most $cand.throughput", ["far", "near", "unknown"]),
        ("first where $cand.round_trip > 79ms", ["far", "near", "unknown"]),
        ("first where $cand.round_trip > 1s", ["far", "near", "unknown"]),
        ("first where $cand.throughput >= 20MB", ["far", "near", "unknown"]),
        ("least $cand.round_trip default 10ms", ["near", "unknown", "far"]),
        ("first where $cand.round_trip in (2ms, 3ms), least $cand.round_trip default 1s", ["near", "far", "unknown"]),
        ("first where $cand.round_trip + 10ms < 20ms", ["near", "far", "unknown"]),
    ],
)
def test_candidates_are_ranked_by_the_costs_of_their_links(rank: str, expected: list[str]) -> None:
    assert order(rank, far=FAR, near=NEAR, unknown=UNKNOWN_COSTS) == expected


def test_a_duration_of_another_dimension_is_refused() -> None:
    with pytest.raises(PolicyError, match="compared with a size"):
        policy("rank candidates by first where $cand.round_trip < 3MB;")
    with pytest.raises(PolicyError, match="not a whole number of seconds"):
        policy("accept from any { require $est_time < 1500ms; limit 9 tasks; }")


def test_a_bare_number_beside_a_round_trip_is_shown_in_milliseconds() -> None:
    (warning, *_) = policy("rank candidates by first where $cand.round_trip < 20;").warnings
    assert "20 means 20ms" in warning.message


def test_a_policy_test_states_costs_of_candidates_and_of_the_peer() -> None:
    rules = """accept from any { require $peer.round_trip <= 50ms and $peer.throughput >= 1MB else "far"; }
        rank candidates by least $cand.round_trip;"""
    steps = """
        candidate "a" { round_trip = 90ms; throughput = 5MB; } candidate "b" { round_trip = 2s; }
        candidate "c" { round_trip = 4ms; } expect rank "c", "a", "b";
        peer { name = "x"; } expect refuse "far";
        peer { name = "x"; round_trip = 50ms; throughput = 1MB; } expect accept;
        peer { name = "x"; round_trip = 51ms; throughput = 1MB; } expect refuse "far";"""
    assert came(steps, rules) == []


@pytest.mark.parametrize(
    ("rules", "within", "apart"),
    [
        ("", True, False),
        ("reveal to parent { all; }", True, False),
        ("reveal to parent { all except $comm_cost; }", False, False),
        ("reveal to parent { only $arch; }", False, False),
        ("reveal to parent { only $arch, $comm_cost; }", True, True),
        ("combine { $comm_cost: drop; } reveal to parent { only $arch, $comm_cost; }", False, False),
        ("reveal to parent nothing;", False, False),
    ],
)
def test_costs_behind_a_module_are_shown_with_comm_cost_and_to_another_site_only_where_that_is_named(
    rules: str, *, within: bool, apart: bool
) -> None:
    disclosure = policy(rules).disclosure
    shown = tuple(disclosure.reveals_costs_to(PARENT, is_apart=is_apart) for is_apart in (False, True))
    assert shown == (within, apart)
