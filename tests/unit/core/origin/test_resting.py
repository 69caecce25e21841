"""An origin that continues from an older copy places nothing while attempts can run that it does not know."""

from dataclasses import replace
from datetime import UTC, datetime

from messiahs.core.interface.actions import Action, Decision, SendTasks, Store
from messiahs.core.interface.messages import DenyCode, SchedRequest, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.instants import SECOND
from messiahs.core.origin.resting import certain_ns, rests_until
from tests.unit.core.rig import CHILD, Rig, accept, only, sent


def renewed(rig: Rig) -> int:
    """Let a module find that its state is an older copy, and return how long its tasks wait."""
    rig.state.counters = replace(rig.state.counters, renewed_at=rig.now)
    return certain_ns(rig.state.policy.timeouts.lease_ns)


def denied(actions: tuple[Action, ...]) -> list[str]:
    """Return the searches that found nothing."""
    return [each.task for each in only(actions, Decision) if each.what == "sched_deny"]


def test_no_place_is_searched_for_until_every_lease_has_ended(rig: Rig) -> None:
    rest_ns = renewed(rig)
    assert sent(rig.submit(), SchedRequest) == ()
    assert denied(rig.wait(rest_ns - SECOND)) == []
    # Nobody is left to ask, after so long without a word.
    assert denied(rig.wait(SECOND)) == ["1 waiting"]


def test_users_read_why_their_tasks_wait_and_until_when(rig: Rig) -> None:
    rest_ns = renewed(rig)
    until = datetime.fromtimestamp(-(-(rig.now + rest_ns) // SECOND), UTC)
    rig.submit()
    ((reason,),) = [shape.reasons for shape in rig.state.origin.shapes.values()]
    assert (reason.code, "older copy" in reason.text) == (DenyCode.LOST, True)
    assert f"wait until {until:%Y-%m-%dT%H:%M:%SZ}" in reason.text


def test_a_task_that_does_not_wait_is_denied_at_once_with_the_reason(rig: Rig) -> None:
    renewed(rig)
    (row,) = [each.row for each in only(rig.submit(waits=False), Store) if isinstance(each.row, TaskRow)]
    assert (row.state, row.reasons[0].code) == (TaskState.DENIED, DenyCode.LOST)
    assert rig.state.origin.shapes == {}


def test_a_claim_that_is_held_takes_no_task_until_then(rig: Rig) -> None:
    ((_, request),) = sent(rig.submit(), SchedRequest)
    renewed(rig)
    granted = rig.hear(CHILD, accept(request.id))
    assert only(granted, SendTasks) == ()
    (held,) = rig.state.origin.claims.values()
    assert (held.bound, held.shape.count) == ({}, 1)


def test_a_module_that_always_had_its_state_waits_for_nothing(rig: Rig) -> None:
    assert rests_until(rig.state) == 0
    assert len(sent(rig.submit(), SchedRequest)) == 1
