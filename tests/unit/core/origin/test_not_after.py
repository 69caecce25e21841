"""The lease of a claim is extended only as long as its tasks may take, counted from their bind."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.limits import FIRST_LEASE_NS, RENEWALS_PER_LEASE
from messiahs.core.interface.messages import ClaimEnd, SchedRequest, Substate, TaskState, TaskStatusAck, TaskTransfer
from messiahs.core.interface.spliced_bytes import InputsMoving
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.origin.resting import certain_ns
from messiahs.core.state.lives import HeldPhase
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    TASK,
    Rig,
    accept,
    attempt,
    message_in,
    sent,
    status,
    statuses,
    tdv,
)

RENEWAL_NS = FIRST_LEASE_NS // RENEWALS_PER_LEASE
SHORT, LONG = 2, 3_600
RUNNING = status(attempt(), TaskState.EXECUTING, substate=Substate.RUNNING)


@pytest.fixture
def strange(module: ModuleFactory) -> Rig:
    """Make an origin whose child is at another site, and shows free slots."""
    rig = module(apart=(CHILD,))
    rig.greet(CHILD)
    rig.see(CHILD)
    return rig


def bind(rig: Rig, *, limit_seconds: int | None, members: int = 0) -> None:
    """Bind the first task to a claim with the lease of a machine that has delivered nothing."""
    said = {} if limit_seconds is None else {"est_time": limit_seconds}
    ((_, ask),) = sent(rig.submit(members=members, tdv=tdv(**said)), SchedRequest)
    places = max(1, members)
    rig.hear(CHILD, replace(accept(ask.id, places=places, window=places), lease_ns=FIRST_LEASE_NS))


def renew(rig: Rig, number: int, *known: object) -> tuple[Action, ...]:
    rig.wait(RENEWAL_NS)
    (first, *_) = known or (RUNNING,)
    assert isinstance(first, type(RUNNING))
    return rig.hear(CHILD, statuses(first, renewal=number))


def answered(actions: Iterable[Action]) -> list[int]:
    return [ack.renewal for _, ack in sent(actions, TaskStatusAck) if ack.renewal]


def test_a_lease_is_not_extended_beyond_the_time_of_its_tasks_which_are_then_bound_anew(strange: Rig) -> None:
    bind(strange, limit_seconds=SHORT)
    for number in range(1, 5):
        assert answered(renew(strange, number)) == []
    assert strange.state.origin.tasks[TASK].claim == CLAIM
    strange.wait(certain_ns(FIRST_LEASE_NS) - 4 * RENEWAL_NS)
    row = strange.state.origin.tasks[TASK]
    assert (row.claim, row.state, row.history[-1].event) == (None, TaskState.EXECUTING, Cause.LOST)


@pytest.mark.parametrize("limit_seconds", [LONG, None])
def test_the_lease_of_tasks_that_may_take_longer_is_extended(strange: Rig, limit_seconds: int | None) -> None:
    bind(strange, limit_seconds=limit_seconds)
    assert [answered(renew(strange, number)) for number in range(1, 4)] == [[1], [2], [3]]


@pytest.fixture
def own(module: ModuleFactory) -> Rig:
    """Make an origin whose child is at the own site, and shows free slots."""
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    return rig


def requested(rig: Rig, limit_seconds: int | None) -> SchedRequest:
    said = {} if limit_seconds is None else {"est_time": limit_seconds}
    ((_, ask),) = sent(rig.submit(tdv=tdv(**said)), SchedRequest)
    return ask


@pytest.mark.parametrize(("limit_seconds", "lease_ns"), [(2, 18_300), (60, 114_000), (3_600, 0), (None, 0)])
def test_a_lease_is_requested_that_ends_soon_after_the_time_of_the_tasks(
    own: Rig, limit_seconds: int | None, lease_ns: int
) -> None:
    assert requested(own, limit_seconds).lease_ns == lease_ns * MILLISECOND


def test_at_the_own_site_a_task_past_its_time_is_bound_anew_when_its_lease_has_ended(own: Rig) -> None:
    ask = requested(own, SHORT)
    own.hear(CHILD, replace(accept(ask.id), lease_ns=ask.lease_ns))
    interval_ns = ask.lease_ns // RENEWALS_PER_LEASE
    for number in range(1, 5):
        own.wait(interval_ns)
        assert answered(own.hear(CHILD, statuses(RUNNING, renewal=number))) == []
    own.wait(certain_ns(ask.lease_ns) - 4 * interval_ns)
    row = own.state.origin.tasks[TASK]
    assert (row.claim, row.state, row.history[-1].event) == (None, TaskState.EXECUTING, Cause.LOST)
    assert [via for via, _ in own.state.origin.avoided] == [CHILD]


def test_a_machine_of_which_nothing_was_heard_is_asked_again_at_once(own: Rig) -> None:
    ask = requested(own, SHORT)
    own.hear(CHILD, replace(accept(ask.id), lease_ns=ask.lease_ns))
    own.wait(certain_ns(ask.lease_ns))
    assert own.state.origin.tasks[TASK].claim is None
    assert own.state.origin.avoided == {}


def test_an_executor_with_a_longer_lease_than_requested_has_each_renewal_answered(own: Rig) -> None:
    ask = requested(own, SHORT)
    own.hear(CHILD, replace(accept(ask.id), lease_ns=2 * ask.lease_ns))
    assert answered(renew(own, 1)) == [1]


@pytest.mark.parametrize("is_marked", [False, True], ids=["at the neighbor", "behind it"])
def test_a_machine_of_another_site_with_a_longer_lease_than_that_of_the_policy_gets_no_task(
    module: ModuleFactory, *, is_marked: bool
) -> None:
    rig = module(apart=() if is_marked else (CHILD,))
    rig.greet(CHILD)
    rig.see(CHILD)
    longest_ns = rig.state.policy.timeouts.lease_ns
    ((_, ask),) = sent(rig.submit(tdv=tdv()), SchedRequest)
    lying = replace(accept(ask.id), lease_ns=longest_ns + 1, is_foreign=is_marked)
    actions = rig.hear(CHILD, lying)
    assert message_in(actions, ClaimEnd).claim == CLAIM
    assert rig.state.origin.claims == {}
    assert not sent(actions, TaskTransfer)
    assert [mark for _, mark in rig.state.origin.avoided] == [lying.claim.executor.encode()]
    # The task waits for another machine, and its user reads why.
    (reason,) = rig.state.origin.shapes[next(iter(rig.state.origin.shapes))].reasons
    assert "is longer than the one of this module's policy" in str(reason)


def test_a_machine_of_release_0_1_0_at_another_site_keeps_the_lease_of_its_policy(strange: Rig) -> None:
    ((_, ask),) = sent(strange.submit(tdv=tdv()), SchedRequest)
    longest_ns = strange.state.policy.timeouts.lease_ns
    strange.hear(CHILD, replace(accept(ask.id), lease_ns=longest_ns))
    assert strange.state.origin.claims[CLAIM].row.lease_ns == longest_ns


def test_a_suspended_task_keeps_its_lease_and_has_its_time_afterwards(strange: Rig) -> None:
    bind(strange, limit_seconds=SHORT)
    suspended = replace(RUNNING, substate=Substate.SUSPENDED)
    for number in range(1, 9):
        renew(strange, number, suspended)
    assert answered(renew(strange, 9, suspended)) == [9]
    strange.hear(CHILD, statuses(RUNNING))
    (claim,) = strange.state.origin.claims.values()
    strange.wait(SECOND)
    strange.hear(CHILD, statuses(RUNNING))
    assert claim.phase is HeldPhase.OPEN


def test_a_task_whose_inputs_move_has_its_time_afterwards(strange: Rig) -> None:
    bind(strange, limit_seconds=SHORT)
    seen = []
    for number in range(1, 5):
        strange.handle(InputsMoving(claim=CLAIM))
        seen += answered(renew(strange, number))
    assert seen == [3]


def test_a_renewal_that_was_not_needed_is_answered_when_another_task_is_bound(strange: Rig) -> None:
    bind(strange, limit_seconds=15, members=3)
    first = status(attempt(member=1), TaskState.EXECUTING, substate=Substate.RUNNING)
    assert [answered(renew(strange, number, first)) for number in range(1, 5)] == [[1], [], [], []]
    strange.wait(SECOND)
    actions = strange.hear(CHILD, statuses(status(attempt(member=1)), window=3))
    assert len(message_in(actions, TaskTransfer).tasks) == 2
    assert answered(actions) == [4]


def test_a_claim_with_a_task_after_its_time_takes_no_other(strange: Rig) -> None:
    bind(strange, limit_seconds=SHORT, members=3)
    strange.wait(20 * SECOND)
    strange.hear(CHILD, statuses(status(attempt(member=1), TaskState.EXECUTING, substate=Substate.RUNNING), window=3))
    (claim,) = strange.state.origin.claims.values()
    assert claim.phase is HeldPhase.ENDING
