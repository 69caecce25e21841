"""Random federations with faults that heal: every task ends exactly once.

The fixed seeds are always the same; the fresh ones never are. A failure prints the command that replays it.
"""

import os
from collections import Counter

import pytest

from messiahs.core.interface.dependencies import When
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.update import advertising, self_description
from messiahs.sim.load.changes import Change
from messiahs.sim.load.draw import draw
from messiahs.sim.load.faults import Fault
from messiahs.sim.swarm import run_seed

FIXED = range(10)
DRAWN = range(40)
HOPS = 940_000
"""A run whose tasks pass from one site to another."""
CHANGING = (19, 79, 93, 102)
"""Runs in which systems come and go."""
DRAINED = (228, 246, 256)
"""Runs in the end of which a system is drained."""
LEFT_ON_THE_WAY = 2_659_602_068
"""A run in which a system leaves before it has reported what its claim used to all modules on the way."""
FRESH = tuple(int.from_bytes(os.urandom(4)) for _ in range(3))


def _runs_clean(seed: int) -> None:
    failure = run_seed(seed).failure
    if failure is not None:
        text = "\n".join(failure.lines)
        pytest.fail(f"{text}\n{failure.text}\nat {failure.at_ns} ns; replay it with: {failure.command}", pytrace=False)


@pytest.mark.parametrize("seed", FIXED)
def test_a_federation_heals_from_every_fault_of_a_fixed_seed(seed: int) -> None:
    _runs_clean(seed)


@pytest.mark.swarm
@pytest.mark.parametrize("place", range(len(FRESH)))
def test_a_federation_heals_from_every_fault_of_a_fresh_seed(place: int) -> None:
    _runs_clean(FRESH[place])


def test_a_sum_that_cannot_come_any_more_is_no_difference_between_ledgers() -> None:
    _runs_clean(LEFT_ON_THE_WAY)


def test_in_some_fixed_runs_every_module_requests_running_tasks() -> None:
    policies = [[system.policy.transfer for system in draw(seed).systems.values()] for seed in DRAWN]
    assert any(len(systems) > 1 and all(each.offers_running for each in systems) for systems in policies)


def test_in_some_runs_hops_crash_while_bytes_of_another_site_pass_through_them() -> None:
    assert "border" in draw(HOPS).systems
    run = run_seed(HOPS)
    assert run.failure is None
    assert run.faults[Fault.HOP_CRASH]


def test_in_some_fixed_runs_tasks_wait_for_others_in_every_way() -> None:
    orders = [order for seed in FIXED for order in draw(seed).orders]
    assert {when for order in orders for _, when in order.after} == set(When)
    assert any(order.wanted_of(other, when) for order in orders for other, when in order.after)
    assert any(order.after and order.bundle for order in orders)


def test_the_first_runs_draw_every_kind_of_need_and_wish() -> None:
    runs = [draw(seed) for seed in DRAWN]
    orders = [order for run in runs for order in run.orders]
    needs = [order.event.tdv.description() for order in orders]
    assert {2, 4} <= {need["cpus"] for need in needs}
    assert any("disk" in need for need in needs)
    assert any(order.event.members > 1_000 for order in orders)
    assert any(order.event.command.inputs for order in orders)
    assert any(order.retried_at_ns is not None for order in orders)
    assert any(len({family.timeouts.lease_ns for family in run.families.values()}) > 1 for run in runs)
    assert any(run.conditions.unlimited for run in runs)
    assert any("est_time" in need for need in needs)
    assert {kind for run in runs for kind in run.kinds} == set(Fault)


def test_the_first_runs_draw_policies_that_use_another_name_towards_some_neighbor() -> None:
    systems = [system for seed in DRAWN for system in draw(seed).systems.values()]
    names = {system.policy.disclosure.name_for(neighbor) for system in systems for neighbor in system.neighbors}
    assert names == {"", "site-7"}


@pytest.mark.parametrize("seed", CHANGING)
def test_a_federation_heals_while_systems_join_leave_and_are_drained(seed: int) -> None:
    _runs_clean(seed)


def test_some_runs_make_every_change() -> None:
    made = Counter[str]()
    for seed in CHANGING:
        made += run_seed(seed).faults
    assert set(Change) <= set(made)


def test_a_drained_machine_that_is_still_reported_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(state: ModuleState, now: Instant, *, only_changed: bool) -> bool:
        drain, state.membership.drain = state.membership.drain, None
        is_new = self_description.describe(state, now, only_changed=only_changed)
        state.membership.drain = drain
        return is_new

    monkeypatch.setattr(advertising, "describe", describe)
    failures = [failure.text for seed in DRAINED if (failure := run_seed(seed).failure) is not None]
    assert any("guest" in text and "reports" in text for text in failures), failures
