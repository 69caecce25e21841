"""An administrator revokes attempts on the own machine: what the executor does, and what origins are told."""

import pytest

from messiahs.core.executor.owner_rules import barred_until
from messiahs.core.interface.actions import Action, Decision, EndAttempt, Store
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, RevokeRequested, TransferReceived
from messiahs.core.interface.messages import SchedAccept, Substate, TaskKill, TaskState, TaskStatus
from messiahs.core.interface.rows import AttemptRow
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.recovery import Remains, RunningAttempt
from tests.unit.core.rig import (
    ORIGIN,
    PARENT,
    Rig,
    answered,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    transfer,
)

RUNNING, QUEUED, OTHER = remote(1), remote(2), remote(3)


@pytest.fixture
def machine(rig: Rig) -> Rig:
    """Run two tasks in one claim, with a third one behind them."""
    rig.measure(slots=2)
    claim = message_in(rig.hear(PARENT, request(count=2)), SchedAccept)
    message = transfer(claim.claim, claim.ticket, RUNNING, OTHER, QUEUED)
    rig.handle(TransferReceived(sender=ORIGIN, message=message))
    for attempt in (RUNNING, OTHER):
        rig.handle(AttemptStarted(attempt=attempt))
    return rig


def revoke(rig: Rig, *attempts: AttemptId, kills: bool = False, text: str = "maintenance") -> tuple[Action, ...]:
    return rig.handle(RevokeRequested(answer_to=AnswerTo(5), attempts=attempts, kills=kills, text=text))


@pytest.mark.parametrize("attempt", [RUNNING, QUEUED])
def test_a_revoked_attempt_has_the_grace_of_the_policy_and_its_origin_receives_the_reason(
    machine: Rig, attempt: AttemptId
) -> None:
    actions = revoke(machine, attempt)
    assert answered(actions).problem == ""
    grace_ns = machine.state.policy.timeouts.kill_grace_ns
    assert only(actions, EndAttempt) == (EndAttempt(attempt=attempt, grace_ns=grace_ns, cause=Cause.VACATED),)
    ((to, status),) = sent(actions, TaskStatus)
    (said,) = status.attempts
    assert (to, said.attempt, said.substate, said.text) == (PARENT, attempt, Substate.VACATING, "maintenance")
    assert not said.is_rule_text
    assert [(each.what, each.text) for each in only(actions, Decision)] == [("vacated", "maintenance")]
    (ended,) = message_in(
        machine.end(AttemptEnded(attempt=attempt, signal=15, cause=Cause.VACATED)), TaskStatus
    ).attempts
    assert (ended.state, ended.cause, ended.text) == (TaskState.REVOKED, "vacated", "maintenance")
    assert not ended.is_rule_text


def test_a_killed_attempt_has_no_grace(machine: Rig) -> None:
    assert only(revoke(machine, RUNNING, kills=True), EndAttempt) == (
        EndAttempt(attempt=RUNNING, grace_ns=0, cause=Cause.REVOKED),
    )


def test_an_attempt_that_takes_too_long_to_leave_may_be_killed_after_all(machine: Rig) -> None:
    revoke(machine, RUNNING)
    (end,) = only(revoke(machine, RUNNING, kills=True), EndAttempt)
    assert (end.grace_ns, end.cause) == (0, "revoked")


def test_without_a_reason_the_origin_receives_the_name_of_the_administrator(machine: Rig) -> None:
    (said,) = message_in(revoke(machine, RUNNING, text=""), TaskStatus).attempts
    assert said.text == "the administrator of the machine revoked it"


def test_a_shape_that_was_revoked_gets_no_new_place_for_a_minute(machine: Rig) -> None:
    for attempt in (RUNNING, OTHER, QUEUED):
        revoke(machine, attempt)
        machine.end(AttemptEnded(attempt=attempt, cause=Cause.VACATED))
    machine.wait(2 * SECOND)
    assert not sent(machine.hear(PARENT, request(2, search=b"o" * 16)), SchedAccept)
    machine.wait(60 * SECOND)
    assert sent(machine.hear(PARENT, request(3, search=b"p" * 16)), SchedAccept)


def test_what_has_ended_is_passed_over(machine: Rig) -> None:
    machine.end(AttemptEnded(attempt=RUNNING, exit_code=0))
    actions = revoke(machine, RUNNING, remote(99))
    assert answered(actions).problem == ""
    assert len(actions) == 1


def test_a_revocation_outlives_a_restart(machine: Rig) -> None:
    rows = {row.id: row for row in machine.state.executor.attempts.values()}
    for stored in only(revoke(machine, RUNNING), Store):
        assert isinstance(stored.row, AttemptRow)
        rows[stored.row.id] = stored.row
    claims = tuple(claim.row for claim in machine.state.executor.claims.values())
    again = Rig(module=make_module(), now=machine.now)
    running = tuple(RunningAttempt(attempt=each, is_running=True) for each in (RUNNING, OTHER))
    actions = again.resume(Remains(rows=(*claims, *rows.values()), running=running))
    (end,) = only(actions, EndAttempt)
    assert (end.attempt, end.cause) == (RUNNING, "vacated")


def test_a_machine_from_which_a_user_moved_a_task_takes_none_of_its_shape_for_a_minute(machine: Rig) -> None:
    (claim,) = machine.state.executor.claims
    shape = machine.state.executor.claims[claim].row.tdv
    machine.hear(PARENT, TaskKill(claim=claim, attempts=(RUNNING,)))
    assert barred_until(machine.state, ORIGIN, shape, machine.now) is None
    machine.hear(PARENT, TaskKill(claim=claim, attempts=(OTHER,), is_barring=True))
    assert barred_until(machine.state, ORIGIN, shape, machine.now) is not None
    machine.wait(MINUTE)
    assert barred_until(machine.state, ORIGIN, shape, machine.now) is None
