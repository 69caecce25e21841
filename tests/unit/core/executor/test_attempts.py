"""Tasks at their executor: which are taken, started, reported, ended and refused."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import (
    Action,
    Decision,
    DiscardAttempt,
    EndAttempt,
    Forget,
    Report,
    SendControl,
    StartAttempt,
    Store,
)
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import StoreChanged, TransferReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    Command,
    DenyCode,
    SchedAccept,
    Substate,
    TaskKill,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.policies import Refused
from messiahs.core.interface.rows import AttemptRow, RowKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId, Ticket
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.task_files import Output
from messiahs.core.model.usage import Containment, Usage
from messiahs.core.task_filter.local_resources import promised_slots
from tests.unit.core.rig import (
    COMMAND,
    EPOCH,
    LEASE_NS,
    ME,
    ORIGIN,
    PARENT,
    REMOTE_TASK,
    STRANGER,
    Rig,
    message_in,
    only,
    remote,
    request,
    sent,
    tdv,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy


@pytest.fixture
def claim(rig: Rig) -> SchedAccept:
    """Grant a claim of four places, asked for through the parent."""
    rig.measure()
    return message_in(rig.hear(PARENT, request(count=4, tdv=tdv(est_time=60))), SchedAccept)


def bring(rig: Rig, claim: SchedAccept, *attempts: AttemptId) -> tuple[Action, ...]:
    return rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *attempts)))


def ended(rig: Rig, attempt: AttemptId, **how: object) -> tuple[TaskState, str]:
    event = AttemptEnded(attempt=attempt, **how)  # type: ignore[arg-type]
    (status,) = message_in(rig.end(event), TaskStatus).attempts
    return status.state, status.cause


def test_a_task_is_stored_and_started_with_its_limits(rig: Rig, claim: SchedAccept) -> None:
    stored, start = bring(rig, claim, remote())
    row = rig.state.executor.attempts[remote()]
    assert stored == Store(row=row)
    assert row == AttemptRow(id=remote(), claim=claim.claim, command=COMMAND, status=row.status)
    assert (row.status.state, row.status.substate) == ("executing", "queued")
    assert start == StartAttempt(
        attempt=remote(),
        claim=claim.claim,
        command=COMMAND,
        places=4,
        limit_ns=60 * SECOND,
        lease_until=rig.state.executor.claims[claim.claim].row.lease_until,
    )


def test_a_transfer_that_comes_twice_is_only_reported(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote())
    actions = rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    assert [each.attempt for each in message_in(actions, TaskStatus).attempts] == [remote()]
    assert len(actions) == 1


@pytest.mark.parametrize(
    ("sender", "ticket", "number", "code"),
    [
        (ORIGIN, Ticket(b"x" * 16), None, "wrong_ticket"),
        (STRANGER, None, None, "wrong_ticket"),
        (ORIGIN, None, 99, "no_such_claim"),
    ],
)
def test_a_transfer_without_a_claim_and_its_ticket_is_reported_and_starts_nothing(
    rig: Rig, claim: SchedAccept, sender: SystemId, ticket: Ticket | None, number: int | None, code: str
) -> None:
    name = claim.claim if number is None else ClaimId(ME, EPOCH, number)
    message = transfer(name, ticket or claim.ticket, remote())
    (report,) = only(rig.handle(TransferReceived(sender=sender, message=message)), Report)
    assert report.code == code
    assert rig.state.executor.attempts == {}


def test_an_origin_brings_its_own_tasks_only(rig: Rig, claim: SchedAccept) -> None:
    foreign = AttemptId(TaskId(STRANGER, Epoch(1), 1), 1)
    (report,) = bring(rig, claim, foreign)
    assert isinstance(report, Report)
    assert report.code == "out_of_range"
    assert rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=(foreign,))) == ()
    assert rig.state.executor.attempts == {}


def test_each_task_passes_accept_again_and_one_that_was_refused_is_refused_for_ever(
    rig: Rig, policy: ScriptedPolicy, claim: SchedAccept
) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, text="office hours")
    actions = rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    (status,) = message_in(actions, TaskStatus).attempts
    assert (status.state, status.cause, status.text) == ("denied", "refused", "office hours")
    assert only(actions, Store) == (Store(row=rig.state.executor.attempts[remote()]),)
    policy.verdict = ScriptedPolicy().verdict
    again = rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    assert message_in(again, TaskStatus).attempts == (status,)
    rig.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))
    assert only(bring(rig, claim, remote()), StartAttempt) == ()
    assert remote() in rig.state.executor.attempts


def test_of_a_refused_task_no_command_is_stored(rig: Rig, policy: ScriptedPolicy, claim: SchedAccept) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY)
    (sent,) = transfer(claim.claim, claim.ticket, remote()).tasks
    assert sent.command.argv
    (stored,) = only(bring(rig, claim, remote()), Store)
    assert isinstance(stored.row, AttemptRow)
    assert (stored.row.status.state, stored.row.command) == ("denied", Command(argv=()))


def test_an_origin_receives_neither_the_rule_nor_the_values_that_refused_its_task(
    rig: Rig, policy: ScriptedPolicy, claim: SchedAccept
) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require $here.load < 5%")
    policy.why = "$here.load < 5% is false ($here.load is 9%)"
    actions = rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    (status,) = message_in(actions, TaskStatus).attempts
    assert (status.cause, status.text) == ("refused", "refused_by_policy")
    (decision,) = only(actions, Decision)
    assert decision.text == f"refused_by_policy ({policy.why})"


def test_a_full_disk_refuses_tasks_that_are_on_their_way(rig: Rig, claim: SchedAccept) -> None:
    rig.handle(StoreChanged(has_space=False))
    actions = rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    (status,) = message_in(actions, TaskStatus).attempts
    assert (status.state, status.text) == ("denied", "the disk of the executor is full")


def test_a_claim_that_has_ended_takes_what_was_bound_before_its_origin_heard_of_that(
    rig: Rig, claim: SchedAccept
) -> None:
    assert message_in(rig.wait(30 * SECOND), ClaimEnd).claim == claim.claim
    (held,) = rig.state.executor.claims.values()
    bring(rig, claim, remote())
    assert (held.is_ending, held.row.places, held.live) == (True, 1, 1)
    assert promised_slots(rig.state, 4) == 1
    ended(rig, remote(), exit_code=0)
    assert promised_slots(rig.state, 4) == 0


def test_a_claim_that_has_ended_refuses_what_comes_when_others_have_its_places(rig: Rig, claim: SchedAccept) -> None:
    rig.wait(30 * SECOND)
    assert message_in(rig.hear(PARENT, request(2, search=b"o" * 16, count=4)), SchedAccept).places == 4
    actions = rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    (status,) = message_in(actions, TaskStatus).attempts
    assert (status.state, status.text) == ("denied", "the places of the claim were given to others")


def test_a_claim_whose_lease_ran_out_refuses_what_comes_after_all(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote(member=1))
    ended(rig, remote(member=1), exit_code=0)
    rig.wait(LEASE_NS)
    late = transfer(claim.claim, claim.ticket, remote(member=2))
    (status,) = message_in(rig.handle(TransferReceived(sender=ORIGIN, message=late)), TaskStatus).attempts
    assert (status.state, status.text) == ("denied", "the claim has ended")


def test_a_start_is_reported_only_if_the_task_runs_for_a_while(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote(member=1), remote(member=2))
    for member in (1, 2):
        assert rig.handle(AttemptStarted(attempt=remote(member=member))) == ()
    rig.wait(100 * MILLISECOND)
    ended(rig, remote(member=1), exit_code=0)
    report = message_in(rig.wait(100 * MILLISECOND), TaskStatus)
    assert [(each.attempt.task.member, each.substate) for each in report.attempts] == [(2, Substate.RUNNING)]
    assert [report.attempts for _, report in sent(rig.wait(SECOND), TaskStatus)] == [()]


@pytest.mark.parametrize("is_start_reported", [True, False])
def test_the_wait_for_a_place_is_counted_even_if_only_the_end_is_reported(
    rig: Rig, claim: SchedAccept, *, is_start_reported: bool
) -> None:
    bring(rig, claim, remote())
    rig.wait(8 * SECOND)
    if is_start_reported:
        rig.handle(AttemptStarted(attempt=remote()))
    rig.wait(SECOND)
    ended(rig, remote(), exit_code=0, ran_ns=SECOND)
    assert rig.state.executor.mean_wait_ns == SECOND


def test_a_start_of_an_attempt_that_is_unknown_or_over_says_nothing(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote())
    ended(rig, remote(), exit_code=0)
    assert rig.handle(AttemptStarted(attempt=remote())) == ()
    assert rig.handle(AttemptStarted(attempt=remote(5))) == ()
    assert not rig.state.timers.is_set(TimerKind.STATUS, claim.claim)


@pytest.mark.parametrize(
    ("how", "state", "cause"),
    [
        ({"exit_code": 0}, "finished", ""),
        ({"exit_code": 3}, "finished", ""),
        ({"signal": 11}, "aborted", ""),
        ({"signal": 9, "cause": Cause.TIME_LIMIT}, "aborted", "time_limit"),
        ({"cause": Cause.NOT_FOUND}, "aborted", "not_found"),
        ({"exit_code": 0, "cause": "output_missing"}, "aborted", "output_missing"),
        ({"signal": 15, "cause": Cause.KILLED}, "killed", "killed"),
        ({"cause": Cause.LOST}, "revoked", "lost"),
        ({"signal": 9, "cause": Cause.LEASE_EXPIRED}, "revoked", "lease_expired"),
        ({"cause": Cause.SPAWN_FAILED}, "revoked", "spawn_failed"),
        ({"signal": 15, "cause": "unbound"}, "revoked", "unbound"),
    ],
)
def test_how_an_attempt_ended_gives_its_state(
    rig: Rig, claim: SchedAccept, how: dict[str, object], state: str, cause: str
) -> None:
    bring(rig, claim, remote())
    assert ended(rig, remote(), **how) == (state, cause)


def test_a_result_is_stored_before_it_is_reported_and_kept_until_it_is_taken(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote())
    outputs = (Output(name="stdout", size_bytes=3),)
    usage = Usage(cpu_ns=5, peak_memory_bytes=1 << 20)
    contained = Containment(isolation="sandbox")
    ended = AttemptEnded(attempt=remote(), exit_code=0, ran_ns=7, usage=usage, containment=contained, outputs=outputs)
    actions = rig.end(ended)
    row = rig.state.executor.attempts[remote()]
    assert (row.status.exit_code, row.status.ran_ns, row.status.outputs) == (0, 7, outputs)
    assert (row.status.usage, row.status.containment) == (usage, contained)
    report = TaskStatus(claim=claim.claim, attempts=(row.status,), window=4 + 256)
    assert actions[0] == Store(row=row)
    assert sent(actions, TaskStatus) == ((PARENT, report),)
    taken = rig.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))
    assert taken == (Forget(key=(RowKind.ATTEMPT, remote())), DiscardAttempt(attempt=remote()))


def test_results_that_come_at_one_instant_are_reported_in_one_message(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, *(remote(member=member) for member in (1, 2, 3)))
    rig.handle(AttemptStarted(attempt=remote(member=3)))
    rig.handle(AttemptEnded(attempt=remote(member=1), exit_code=0))
    actions = rig.end(AttemptEnded(attempt=remote(member=2), exit_code=1))
    # What has only just started is not worth a word yet.
    assert [each.exit_code for each in message_in(actions, TaskStatus).attempts] == [0, 1]
    (later,) = message_in(rig.wait(SECOND // 4), TaskStatus).attempts
    assert (later.attempt, later.state) == (remote(member=3), "executing")


def test_a_result_is_never_taken_back(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote())
    ended(rig, remote(), exit_code=0)
    assert rig.handle(AttemptEnded(attempt=remote(), cause=Cause.LOST)) == ()
    assert rig.state.executor.attempts[remote()].status.exit_code == 0


def test_a_copy_that_comes_when_the_result_was_taken_does_not_start(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote())
    ended(rig, remote(), exit_code=0)
    rig.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))
    assert only(bring(rig, claim, remote()), StartAttempt) == ()
    assert rig.state.executor.attempts == {}


def test_an_end_of_an_attempt_that_nobody_knows_is_tidied_up(rig: Rig) -> None:
    actions = rig.handle(AttemptEnded(attempt=remote(), exit_code=0))
    assert actions == (DiscardAttempt(attempt=remote()),)


def test_an_attempt_that_is_not_bound_any_more_is_ended_and_then_forgotten(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote())
    unbound = TaskStatusAck(claim=claim.claim, unbound=(remote(),))
    (end,) = rig.hear(PARENT, unbound)
    assert isinstance(end, EndAttempt)
    assert end.cause == "unbound"
    ended(rig, remote(), cause=Cause.UNBOUND)
    assert rig.hear(PARENT, unbound) == (Forget(key=(RowKind.ATTEMPT, remote())), DiscardAttempt(attempt=remote()))


def test_a_kill_ends_the_attempt_and_its_status_follows(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote())
    grace_ns = rig.state.policy.timeouts.kill_grace_ns
    assert rig.hear(PARENT, TaskKill(claim=claim.claim, attempts=(remote(),))) == (
        EndAttempt(attempt=remote(), grace_ns=grace_ns, cause=Cause.KILLED),
    )
    assert ended(rig, remote(), signal=15, cause=Cause.KILLED) == ("killed", "killed")


def test_a_query_is_answered_with_what_became_of_the_attempt(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote())
    (status,) = message_in(
        rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=(remote(),))), TaskStatus
    ).attempts
    assert status == rig.state.executor.attempts[remote()].status


def test_an_attempt_that_never_arrived_is_stored_as_ended_before_that_is_said_and_never_starts(
    rig: Rig, claim: SchedAccept
) -> None:
    actions = rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=(remote(),)))
    stored, answer = actions
    row = rig.state.executor.attempts[remote()]
    assert stored == Store(row=row)
    assert isinstance(answer, SendControl)
    assert (row.status.state, row.status.cause) == ("denied", "unknown")
    for _ in range(2):
        assert only(bring(rig, claim, remote()), StartAttempt) == ()
        rig.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))
    rig.wait(30 * SECOND)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote(2))))
    assert remote() in rig.state.executor.attempts


def test_a_query_that_names_nothing_is_answered_by_everything(rig: Rig, claim: SchedAccept) -> None:
    bring(rig, claim, remote(member=1), remote(member=2))
    status = message_in(rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=())), TaskStatus)
    assert [each.attempt.task.member for each in status.attempts] == [1, 2]
    assert status.renewal == 1


def test_a_claim_that_has_ended_is_said_to_have_and_its_attempts_are_lost(rig: Rig, claim: SchedAccept) -> None:
    gone = replace(claim, claim=ClaimId(ME, EPOCH, 99)).claim
    said = (SendControl(to=PARENT, message=ClaimEnd(claim=gone, is_forgotten=True)),)
    assert rig.hear(PARENT, TaskStatusQuery(claim=gone, attempts=())) == said
    (lost,) = message_in(rig.hear(PARENT, TaskStatusQuery(claim=gone, attempts=(remote(),))), TaskStatus).attempts
    assert (lost.attempt, lost.state, lost.cause) == (remote(), "revoked", "lost")


def test_of_a_claim_of_an_earlier_life_of_the_state_no_attempt_is_called_lost(rig: Rig) -> None:
    old = ClaimId(ME, Epoch(1), 1)
    assert rig.hear(PARENT, TaskStatusQuery(claim=old, attempts=(remote(),))) == ()


def test_an_origin_cannot_make_a_claim_remember_without_end(rig: Rig, claim: SchedAccept) -> None:
    for start in range(0, 10_000, 1_250):
        rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=_named(start, 1_250)))
    assert len(rig.state.executor.attempts) == 8_192


def test_one_message_makes_no_more_rows_than_an_origin_can_have_bound_tasks(rig: Rig, claim: SchedAccept) -> None:
    actions = rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=_named(0, 8_192)))
    assert len(only(actions, Store)) == 1_280
    answered = [each for _, message in sent(actions, TaskStatus) for each in message.attempts]
    assert [each.attempt for each in answered] == list(_named(0, 1_280))
    again = rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=_named(1_280, 10)))
    assert len(message_in(again, TaskStatus).attempts) == 10


def _named(start: int, count: int) -> tuple[AttemptId, ...]:
    return tuple(AttemptId(REMOTE_TASK._replace(member=start + each), 1) for each in range(count))
