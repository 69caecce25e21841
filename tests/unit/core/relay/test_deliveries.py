"""What machines have delivered to an origin, and what that allows them."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.limits import FIRST_LEASE_NS, SHORTEST_LEASE_NS
from messiahs.core.interface.messages import (
    AttemptStatus,
    ClaimEnd,
    SchedAccept,
    SchedRequest,
    Substate,
    TaskState,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.spliced_bytes import InputsMoving
from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import HOUR, MINUTE, SECOND
from messiahs.core.relay.deliveries import GROWTH_PER_RESULT, UNPROVEN_LIMIT, has_lost
from messiahs.core.state.origin import WINDOW_LIMIT
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    PARENT,
    Rig,
    accept,
    attempt,
    message_in,
    only,
    request,
    sent,
    status,
    statuses,
    tdv,
)

MEMBERS = 8
NEXT_CLAIM = CLAIM._replace(number=CLAIM.number + 1)


@pytest.fixture
def strange(module: ModuleFactory) -> Rig:
    """Make an origin whose child is at another site, and shows free slots."""
    rig = module(apart=(CHILD,))
    rig.greet(CHILD)
    rig.see(CHILD)
    return rig


def granted(rig: Rig, *, members: int = MEMBERS, **said: Value) -> SchedRequest:
    """Submit tasks, and have the machine of the other site grant all places."""
    ((_, ask),) = sent(rig.submit(members=members, tdv=tdv(**said)), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=members, window=members))
    return ask


def bound(rig: Rig) -> int:
    return sum(len(claim.bound) for claim in rig.state.origin.claims.values())


def result(number: int) -> AttemptStatus:
    return status(attempt(member=number))


def running(number: int) -> AttemptStatus:
    return status(attempt(member=number), TaskState.EXECUTING, substate=Substate.RUNNING)


def lost(number: int, *, tries: int = 1) -> AttemptStatus:
    return status(attempt(tries, member=number), TaskState.REVOKED, cause=Cause.LOST)


def test_a_machine_of_another_site_gets_one_task_and_one_more_for_each_result(strange: Rig) -> None:
    granted(strange)
    assert bound(strange) == 1
    strange.hear(CHILD, statuses(result(1), window=MEMBERS))
    assert bound(strange) == 2
    strange.hear(CHILD, statuses(result(2), result(3), window=MEMBERS))
    assert bound(strange) == 4


def test_a_machine_of_the_own_site_gets_as_many_tasks_as_it_has_places(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig)
    assert bound(rig) == MEMBERS


def test_a_claim_of_a_machine_that_has_as_many_tasks_as_it_may_is_given_back(strange: Rig) -> None:
    ((_, ask),) = sent(strange.submit(members=MEMBERS), SchedRequest)
    actions = strange.hear(CHILD, accept(ask.id, places=MEMBERS, window=MEMBERS))
    ((_, again),) = sent(actions, SchedRequest)
    assert len(again.avoids) == 1
    actions = strange.hear(CHILD, accept(again.id, claim=NEXT_CLAIM, places=MEMBERS - 1))
    assert (CHILD, ClaimEnd(claim=NEXT_CLAIM)) in sent(actions, ClaimEnd)
    assert list(strange.state.origin.claims) == [CLAIM]


def counts_while_running(rig: Rig, half_minutes: int, *, first: int = 1) -> list[int]:
    """Report all tasks as running every half minute, and return how many are bound after each."""
    counts = []
    for renewal in range(first, first + half_minutes):
        rig.wait(FIRST_LEASE_NS)
        known = [
            status(each, TaskState.EXECUTING, substate=Substate.RUNNING)
            for claim in rig.state.origin.claims.values()
            for each in claim.bound
        ]
        rig.hear(CHILD, statuses(*known, window=64, renewal=renewal))
        counts.append(bound(rig))
    return counts


def test_a_machine_of_another_site_that_only_claims_to_run_its_tasks_gets_four_of_them(strange: Rig) -> None:
    granted(strange)
    assert counts_while_running(strange, 10) == [2, *[UNPROVEN_LIMIT] * 9]


def test_a_machine_of_another_site_gets_no_more_while_a_task_there_is_suspended(strange: Rig) -> None:
    granted(strange)
    assert counts_while_running(strange, 1) == [2]
    strange.wait(FIRST_LEASE_NS)
    held = status(attempt(member=2), TaskState.EXECUTING, substate=Substate.SUSPENDED)
    strange.hear(CHILD, statuses(running(1), held, window=64, renewal=2))
    assert bound(strange) == 2


def test_a_machine_gets_no_more_while_a_task_there_is_past_its_time(strange: Rig) -> None:
    granted(strange, members=64, est_time=HOUR // SECOND)
    half_minutes = 65 * MINUTE // FIRST_LEASE_NS
    assert counts_while_running(strange, half_minutes)[-1] == UNPROVEN_LIMIT
    strange.hear(CHILD, statuses(result(4), window=64))
    # The hour of the first task ends now, with its tenth and its grace.
    strange.wait(MINUTE)
    counts_while_running(strange, 2, first=half_minutes + 1)
    (record,) = strange.state.origin.deliveries.values()
    assert record.results == UNPROVEN_LIMIT


def test_after_a_result_long_tasks_that_run_double_the_window_every_half_minute_as_far_as_results_allow(
    strange: Rig,
) -> None:
    granted(strange, members=64)
    strange.hear(CHILD, statuses(result(1), window=64))
    assert bound(strange) == 2
    most = UNPROVEN_LIMIT + GROWTH_PER_RESULT
    assert counts_while_running(strange, 4) == [4, 8, most, most]
    strange.hear(CHILD, statuses(result(2), window=64))
    assert counts_while_running(strange, 2, first=5) == [most + GROWTH_PER_RESULT] * 2


def test_a_machine_of_another_site_that_lost_a_task_begins_anew_and_results_before_allow_nothing(strange: Rig) -> None:
    granted(strange, members=64)
    strange.hear(CHILD, statuses(result(1), window=64))
    counts_while_running(strange, 3)
    strange.hear(CHILD, statuses(lost(2), window=64))
    (record,) = strange.state.origin.deliveries.values()

    def allowed_after(renewal: int) -> int:
        counts_while_running(strange, 1, first=renewal)
        return record.results

    assert [allowed_after(renewal) for renewal in range(4, 8)] == [1, 3, 3, 3]
    strange.hear(CHILD, statuses(result(3), window=64))
    assert [allowed_after(renewal) for renewal in range(8, 12)] == [9, 11, 11, 11]


def test_a_machine_of_the_own_site_that_lost_a_task_is_asked_so_that_long_tasks_raise_its_window(
    module: ModuleFactory,
) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig)
    rig.hear(CHILD, statuses(lost(1), window=MEMBERS))
    (record,) = rig.state.origin.deliveries.values()
    known = [running(each.task.member) for claim in rig.state.origin.claims.values() for each in claim.bound]
    for renewal, results in ((1, 1), (2, 3), (3, 7)):
        assert sent(rig.wait(FIRST_LEASE_NS), TaskStatusQuery)
        rig.hear(CHILD, statuses(*known, window=MEMBERS, renewal=renewal))
        assert record.results == results


def test_each_result_lengthens_a_short_lease_which_the_executor_is_told(strange: Rig) -> None:
    ((_, ask),) = sent(strange.submit(members=MEMBERS), SchedRequest)
    strange.hear(CHILD, replace(accept(ask.id, places=MEMBERS, window=MEMBERS), lease_ns=FIRST_LEASE_NS))
    ack = message_in(strange.hear(CHILD, statuses(result(1), window=MEMBERS, renewal=1)), TaskStatusAck)
    assert ack.lease_ns == 2 * FIRST_LEASE_NS
    actions = strange.hear(CHILD, statuses(result(2), running(3), window=MEMBERS, renewal=2))
    assert message_in(actions, TaskStatusAck).lease_ns == 3 * FIRST_LEASE_NS
    (claim,) = strange.state.origin.claims.values()
    assert Store(row=claim.row) in only(actions, Store)
    assert claim.row.lease_ns == 3 * FIRST_LEASE_NS


def test_the_lease_of_another_site_is_short_until_it_has_delivered(strange: Rig) -> None:
    ask = granted(strange)
    assert ask.lease_ns == FIRST_LEASE_NS


def test_an_executor_grants_the_lease_that_is_asked_for_and_lengthens_it_with_its_origin(rig: Rig) -> None:
    rig.measure()
    given = message_in(rig.hear(PARENT, request(lease_ns=FIRST_LEASE_NS)), SchedAccept)
    assert given.lease_ns == FIRST_LEASE_NS
    rig.wait(FIRST_LEASE_NS // 5)
    rig.hear(PARENT, TaskStatusAck(claim=given.claim, renewal=1, lease_ns=2 * FIRST_LEASE_NS))
    assert rig.state.executor.claims[given.claim].row.lease_ns == 2 * FIRST_LEASE_NS
    rig.wait(2 * FIRST_LEASE_NS // 5)
    rig.hear(PARENT, TaskStatusAck(claim=given.claim, renewal=2, lease_ns=HOUR))
    assert rig.state.executor.claims[given.claim].row.lease_ns == rig.state.policy.timeouts.lease_ns


@pytest.mark.parametrize(("asked_ns", "lease_ns"), [(1, SHORTEST_LEASE_NS), (HOUR, 15 * MINUTE), (0, 15 * MINUTE)])
def test_no_lease_that_is_asked_for_is_shorter_than_ten_seconds_or_longer_than_the_policy_says(
    rig: Rig, asked_ns: int, lease_ns: int
) -> None:
    rig.measure()
    assert message_in(rig.hear(PARENT, request(lease_ns=asked_ns)), SchedAccept).lease_ns == lease_ns


def test_a_claim_from_another_site_is_marked_by_the_hop_at_the_border(module: ModuleFactory) -> None:
    rig = module(apart=(CHILD,))
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request(hops_left=3)), SchedRequest)
    assert ask.lease_ns == FIRST_LEASE_NS
    assert message_in(rig.hear(CHILD, accept(ask.id)), SchedAccept).is_foreign


def test_a_machine_that_loses_tasks_begins_anew_and_its_neighbor_ranks_last(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig, members=3)
    rig.hear(CHILD, statuses(lost(1), lost(2), window=3))
    (record,) = rig.state.origin.deliveries.values()
    assert record.results == 0
    assert has_lost(rig.state, CHILD, rig.now)
    assert not rig.state.origin.avoided
    rig.wait(SECOND)
    rig.hear(CHILD, statuses(lost(3), window=3))
    # The second loss without any result: it only loses.
    assert list(rig.state.origin.avoided) == [(CHILD, CLAIM.executor.encode())]
    rig.wait(MINUTE)
    assert has_lost(rig.state, CHILD, rig.now)
    rig.wait(MINUTE)
    assert not has_lost(rig.state, CHILD, rig.now)


def test_tasks_that_an_owner_ends_are_no_loss(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig, members=1)
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.REVOKED, cause=Cause.VACATED), window=1))
    assert rig.state.origin.deliveries == {}


def test_tasks_that_are_denied_after_they_have_run_are_losses_from_the_third_in_a_row_on(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig, members=4)
    for member in (1, 2, 3):
        assert rig.state.origin.deliveries == {}
        running = status(attempt(member=member), TaskState.EXECUTING)
        rig.hear(CHILD, statuses(running, window=4))
        rig.wait(SECOND)
        rig.hear(CHILD, statuses(status(attempt(member=member), TaskState.DENIED), window=4))
        assert has_lost(rig.state, CHILD, rig.now)
    (record,) = rig.state.origin.deliveries.values()
    assert record.results == 0


@pytest.mark.parametrize("cause", [Cause.SPAWN_FAILED, Cause.STAGING_FAILED])
def test_tasks_that_could_not_be_started_are_losses_from_the_third_in_a_row_on(
    module: ModuleFactory, cause: Cause
) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig, members=4)
    for member in (1, 2, 3):
        assert not has_lost(rig.state, CHILD, rig.now)
        rig.hear(CHILD, statuses(status(attempt(member=member), TaskState.REVOKED, cause=cause), window=4))
        rig.wait(SECOND)
    assert has_lost(rig.state, CHILD, rig.now)


def test_tasks_of_a_claim_that_are_denied_on_arrival_are_no_losses(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig, members=4)
    for member in (1, 2, 3, 4):
        rig.wait(SECOND)
        rig.hear(CHILD, statuses(status(attempt(member=member), TaskState.DENIED), window=4))
    assert rig.state.origin.deliveries == {}
    assert not has_lost(rig.state, CHILD, rig.now)


@pytest.mark.parametrize(("held_ns", "is_late"), [(4 * SECOND, False), (6 * SECOND, True)])
def test_a_machine_that_holds_a_task_and_then_denies_it_ranks_last(
    module: ModuleFactory, held_ns: int, *, is_late: bool
) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig, members=1)
    rig.wait(held_ns)
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.DENIED), window=1))
    assert has_lost(rig.state, CHILD, rig.now) == is_late


def test_the_time_in_which_inputs_move_is_not_held_against_a_machine_that_denies_a_task(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig, members=1)
    rig.wait(MINUTE)
    rig.handle(InputsMoving(claim=CLAIM))
    rig.wait(SECOND)
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.DENIED), window=1))
    assert not has_lost(rig.state, CHILD, rig.now)


def test_a_machine_of_the_own_site_is_trusted_again_after_enough_results(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    granted(rig, members=2)
    rig.hear(CHILD, statuses(lost(1), window=2))
    (record,) = rig.state.origin.deliveries.values()
    record.results = WINDOW_LIMIT - 1
    rig.hear(CHILD, statuses(result(2), window=2))
    assert rig.state.origin.deliveries == {}


@pytest.mark.parametrize("cause", [Cause.NO_INTERPRETER, Cause.NO_PLACE])
@pytest.mark.parametrize(("environment", "counts"), [("cd" * 32, 0), ("", 1)])
def test_an_environment_that_does_not_fit_a_machine_keeps_it_from_no_other_task(
    strange: Rig, cause: Cause, environment: str, counts: int
) -> None:
    granted(strange, environment=environment)
    unfit = status(attempt(member=1), TaskState.REVOKED, cause=cause)
    strange.wait(SECOND)
    strange.hear(CHILD, statuses(unfit, window=MEMBERS))
    assert has_lost(strange.state, CHILD, strange.now) == bool(counts)
    assert len(strange.state.origin.avoided) == counts
