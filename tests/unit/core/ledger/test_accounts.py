"""Accounts by day, consumer and neighbor: what they sum, how usage decays, and when rows are forgotten."""

from dataclasses import replace

import pytest

from messiahs.core.interface.ledger_rows import Parties
from messiahs.core.interface.policies import Limits, Timeouts
from messiahs.core.ledger import accounts
from messiahs.core.ledger.accounts import consumer_usage, enter, neighbor_usage, usage_rows
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, SECOND, Instant, after
from messiahs.core.state.module import ModuleState
from tests.unit.core.rig import CHILD, ME, ORIGIN, PARENT, START, Rig
from tests.unit.core.scripted_policy import ScriptedPolicy

DAY = 24 * HOUR
FROM_HERE = Parties(source=ME, sink=PARENT, origin=ORIGIN, user="ann")


@pytest.fixture
def state(rig: Rig, policy: ScriptedPolicy) -> ModuleState:
    policy.timeouts, policy.limits = Timeouts(half_life_ns=DAY), Limits(usage_days=10)
    return rig.state


def test_usage_halves_with_each_half_life_however_often_it_grows(state: ModuleState) -> None:
    for part in range(64):
        enter(state, FROM_HERE, 1_000 * SECOND, after(START, part))
    used = 64_000 * SECOND
    assert neighbor_usage(state, PARENT, START) == used
    for days, left in ((1, used // 2), (2, used // 4), (10, used // 1024)):
        at = after(START, days * DAY)
        assert neighbor_usage(state, PARENT, at) == pytest.approx(left, rel=1e-6)
        assert consumer_usage(state, PARENT, origin=ORIGIN, user="ann", now=at) == neighbor_usage(state, PARENT, at)
    assert neighbor_usage(state, PARENT, after(START, 1_000 * DAY)) == 0
    assert neighbor_usage(state, CHILD, START) == 0


def test_asking_often_does_not_change_what_is_left(state: ModuleState) -> None:
    enter(state, FROM_HERE, 10**18, START)
    for hour in range(1, 24):
        enter(state, FROM_HERE, 1, after(START, hour * HOUR))
    assert neighbor_usage(state, PARENT, after(START, DAY)) == pytest.approx(10**18 / 2, rel=1e-9)


def test_time_of_neighbors_for_own_users_counts_for_the_user_and_is_taken(state: ModuleState) -> None:
    enter(state, Parties(source=CHILD, sink=ME, origin=ME, user="bob"), 5 * SECOND, START)
    enter(state, Parties(source=ME, sink=ME, origin=ME, user="bob"), 2 * SECOND, START)
    assert consumer_usage(state, ME, origin=ME, user="bob", now=START) == 7 * SECOND
    assert (neighbor_usage(state, ME, START), neighbor_usage(state, CHILD, START)) == (2 * SECOND, 0)
    assert (state.ledger.neighbors[CHILD].taken_ns, state.ledger.neighbors[ME].given_ns) == (5 * SECOND, 2 * SECOND)


def test_days_are_forgotten_after_as_many_as_the_policy_keeps(state: ModuleState) -> None:
    for day in range(30):
        enter(state, FROM_HERE, SECOND, Instant(day * DAY))
    assert [row.day for row in usage_rows(state)] == list(range(20, 30))
    assert state.ledger.neighbors[PARENT].given_ns == 30 * SECOND


def test_users_beyond_the_bound_of_a_day_are_counted_together(state: ModuleState) -> None:
    for number in range(accounts.USERS_LIMIT + 5):
        enter(state, replace(FROM_HERE, user=f"u{number}"), SECOND, START)
    *_, others = usage_rows(state)
    assert (others.parties.user, others.processor_ns) == ("", 5 * SECOND)
    assert len(usage_rows(state)) == accounts.USERS_LIMIT + 1


def test_who_fills_the_ledger_loses_its_own_rows(state: ModuleState, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("USAGE_LIMIT", 20), ("CONSUMER_LIMIT", 20), ("NEIGHBOR_LIMIT", 3)):
        monkeypatch.setattr(accounts, name, limit)
    enter(state, FROM_HERE, SECOND, START)
    for number in range(100):
        enter(state, replace(FROM_HERE, sink=CHILD, user=f"u{number}"), SECOND, START)
    assert sum(row.parties.sink == PARENT for row in usage_rows(state)) == 1
    assert len(usage_rows(state)) == 20
    assert consumer_usage(state, PARENT, origin=ORIGIN, user="ann", now=START) == SECOND
    assert len(state.ledger.consumers) == 20
    for number in range(9):
        enter(state, replace(FROM_HERE, sink=SystemId(f"former{number}")), SECOND, START)
    assert {PARENT, CHILD} < set(state.ledger.neighbors)
    assert len(state.ledger.neighbors) == 3
