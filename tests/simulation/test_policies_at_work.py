"""Policies in virtual time: when attributes are advertised, limits that count separately, and a changed policy."""

from collections import Counter

import pytest

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import Measured, PolicyChanged
from messiahs.core.model.attributes import Value
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.vectors.vectors import vector_of
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.hosts.federation import SimulatedFederation
from tests.simulation.policy_chain import LEAF, MIDDLE, OPEN, ROOT, chain, seen_below, task
from tests.unit.core.rig import sdv


def _is_advertised(federation: SimulatedFederation, name: str, value: int) -> bool:
    """Return whether the leaf's parent has received this value of one attribute."""
    (seen,) = seen_below(federation, MIDDLE)
    (expected,) = vector_of(sdv(**{name: value})).classes
    return dict(seen.attributes)[name] == dict(expected.attributes)[name]


def _let_pass(federation: SimulatedFederation, nanoseconds: int) -> None:
    federation.run(lambda: False, until=Instant(federation.now + nanoseconds))


def test_a_large_change_is_sent_before_the_period_ends_and_a_small_one_at_its_end() -> None:
    rules = OPEN + " advertise every 10min or after change of 50% { } timeouts { input 1h; }"
    federation = chain({LEAF: rules})
    federation.post(LEAF, Measured(sdv=sdv(slots=2, load=1_000)))
    _let_pass(federation, SECOND)
    assert _is_advertised(federation, "load", 1_000)
    federation.post(LEAF, Measured(sdv=sdv(slots=2, load=1_600)))
    _let_pass(federation, SECOND)
    assert _is_advertised(federation, "load", 1_000)
    federation.post(LEAF, Measured(sdv=sdv(slots=2, load=4_000)))
    _let_pass(federation, SECOND)
    assert _is_advertised(federation, "load", 4_000)
    federation.post(LEAF, Measured(sdv=sdv(slots=2, load=5_000)))
    _let_pass(federation, 10 * MINUTE)
    assert _is_advertised(federation, "load", 5_000)


def test_an_attribute_set_by_the_clock_changes_at_the_next_period() -> None:
    # Virtual time begins at midnight.
    federation = chain({LEAF: OPEN + " advertise every 30s { set $willingness = 90 when $now.clock >= 0:02 else 10; }"})
    _let_pass(federation, 100 * SECOND)
    assert _is_advertised(federation, "willingness", 10)
    federation.run(lambda: federation.now >= 2 * MINUTE + 30 * SECOND, until=Instant(3 * MINUTE))
    assert _is_advertised(federation, "willingness", 90)


def _most_at_once(federation: SimulatedFederation, attribute: str, tasks: int) -> Counter[Value]:
    """Let all tasks end, and return the maximum of places that their claims had at the leaf, by value and in total."""
    most: Counter[Value] = Counter()

    def note(_: SystemId, __: Action) -> None:
        places: Counter[Value] = Counter()
        for claim in federation.members[LEAF].module.state.executor.claims.values():
            places[claim.row.tdv.description()[attribute]] += claim.row.places
        for value, count in (*places.items(), ("together", places.total())):
            most[value] = max(most[value], count)

    federation.observe = note
    federation.run(lambda: len(federation.ended) == tasks, until=Instant(30 * MINUTE))
    assert len(federation.ended) == tasks
    return most


def test_a_limit_per_origin_counts_each_origin_separately() -> None:
    federation = chain({LEAF: "accept from any { limit 1 tasks per $origin; }"}, slots=8)
    for origin in (ROOT, MIDDLE):
        federation.post(origin, task(origin, members=4))
    assert _most_at_once(federation, "origin", 8) == {"root": 1, "middle": 1, "together": 2}


def test_a_limit_per_declared_attribute_counts_each_value_separately() -> None:
    rules = "attribute $account string; accept from any { limit 2 tasks per $account; }"
    federation = chain({LEAF: rules}, slots=8)
    for account in ("red", "blue"):
        federation.post(ROOT, task(ROOT, members=5, account=account))
    assert _most_at_once(federation, "account", 10) == {"red": 2, "blue": 2, "together": 4}


@pytest.mark.parametrize("place", [MIDDLE, LEAF])
def test_a_changed_policy_accepts_waiting_tasks(place: SystemId) -> None:
    federation = chain({place: 'accept from any { require $user eq "nobody" else "closed"; limit 9 tasks; }'})
    federation.post(ROOT, task(ROOT))
    _let_pass(federation, MINUTE)
    assert not federation.ended
    federation.post(place, PolicyChanged(policy=parse_policy(OPEN, file="open.policy")))
    federation.run(lambda: bool(federation.ended), until=Instant(20 * MINUTE))
    (row,) = federation.ended.values()
    assert row.executed_on == LEAF


def test_a_running_task_finishes_under_a_policy_that_would_refuse_it() -> None:
    federation = chain({})
    federation.post(ROOT, task(ROOT))
    _let_pass(federation, SECOND // 10)
    assert federation.members[LEAF].module.state.executor.claims
    for place in (MIDDLE, LEAF):
        federation.post(place, PolicyChanged(policy=parse_policy("", file="closed.policy")))
    federation.run(lambda: bool(federation.ended), until=Instant(5 * MINUTE))
    (row,) = federation.ended.values()
    assert (row.executed_on, row.attempt) == (LEAF, 1)
