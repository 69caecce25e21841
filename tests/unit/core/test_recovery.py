"""Coming back from rows: at every point of a task's life, and with the same end."""

from collections import Counter
from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, DiscardAttempt, EndAttempt, ExtendLease, StartAttempt
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested, LinkDown, Submitted, TransferReceived
from messiahs.core.interface.messages import (
    SchedAccept,
    SchedRequest,
    TaskKill,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskTransfer,
)
from messiahs.core.interface.rows import GrantedClaimRow, Row, SubmissionRow, key_of
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import ClientKey, IdsGiven, SystemId
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.core.task_filter.local_resources import promised_slots
from tests.unit.core.pair import LEFT, RIGHT, SETTLED_NS, Pair
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    COMMAND,
    LEASE_NS,
    ORIGIN,
    PARENT,
    RENEWAL_NS,
    TASK,
    Rig,
    accept,
    attempt,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    status,
    statuses,
    tdv,
    transfer,
)

MEMBERS = 3


def live(kill_at: tuple[SystemId, int] | None = None, *, before_commit: bool = False) -> Pair:
    """Run an array from submit to its end; one module is killed at one of its commits."""
    pair = Pair()
    pair.start()
    pair.run(lambda: False, for_ns=SETTLED_NS)
    pair.kill_at, pair.before_commit = kill_at, before_commit
    submitted = Submitted(
        answer_to=AnswerTo(1), key=ClientKey("k"), tdv=tdv(), requirement="", command=COMMAND, members=MEMBERS
    )
    pair.post(LEFT, submitted)
    pair.run(lambda: bool(pair.answers) or not pair.hosts[LEFT].is_up, for_ns=SECOND)
    if not pair.answers:
        # The client asks again, with the same key, until it has an answer.
        pair.run(lambda: pair.hosts[LEFT].is_up, for_ns=10 * SECOND)
        pair.post(LEFT, submitted)
    pair.run(lambda: len(pair.ended()) == MEMBERS, for_ns=HOUR)
    pair.run(lambda: False, for_ns=40 * SECOND)
    return pair


COMMITS = {LEFT: 10, RIGHT: 13}


def test_the_life_that_is_interrupted_below_has_as_many_commits_as_are_tried() -> None:
    pair = live()
    assert pair.commits == COMMITS


@pytest.mark.parametrize("before_commit", [True, False])
@pytest.mark.parametrize(
    ("system", "commit"), [(system, commit) for system, count in COMMITS.items() for commit in range(1, count + 1)]
)
def test_a_module_killed_at_any_commit_loses_and_repeats_nothing(
    system: SystemId, commit: int, *, before_commit: bool
) -> None:
    pair = live((system, commit), before_commit=before_commit)
    assert len(pair.ended()) == MEMBERS
    assert max(Counter(pair.started).values()) == 1
    rows = pair.ended()
    assert [row.state for row in rows] == [TaskState.FINISHED] * MEMBERS
    assert sum(isinstance(row, SubmissionRow) for row in pair.hosts[LEFT].rows.values()) == 1
    assert [row.attempt for row in rows] == [1] * MEMBERS
    for host in pair.hosts.values():
        state = host.module.state
        assert not (state.origin.claims)
        assert not (state.executor.claims)
        assert not (state.executor.attempts)
    left_behind = [key.name for key, _ in pair.hosts[RIGHT].rows]
    ledger = {"USAGE", "CONSUMER", "NEIGHBOR_ACCOUNT"}
    assert {"COUNTERS"} <= set(left_behind) - ledger <= {"COUNTERS", "REMEMBERED"}


def resumed(
    *rows: Row,
    running: tuple[RunningAttempt, ...] = (),
    has_rebooted: bool = False,
    forgotten: IdsGiven | None = None,
) -> tuple[Rig, tuple[Action, ...]]:
    rig = Rig(module=make_module())
    actions = rig.resume(Remains(rows=rows, running=running, has_rebooted=has_rebooted, forgotten=forgotten))
    return rig, actions


def granted_rows(rig: Rig, *members: int) -> tuple[Row, ...]:
    """Return the rows of a claim that was granted through the parent, with attempts in it."""
    rig.measure()
    claim = message_in(rig.hear(PARENT, request(count=4)), SchedAccept)
    attempts = [remote(member=member) for member in members]
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *attempts)))
    state = rig.state
    return (state.counters, *(each.row for each in state.executor.claims.values()), *state.executor.attempts.values())


def test_an_attempt_that_had_not_been_started_is_started_and_one_that_runs_is_not_forgotten(rig: Rig) -> None:
    rows = granted_rows(rig, 1, 2)
    running = (RunningAttempt(attempt=remote(member=2), is_running=True),)
    after, actions = resumed(*rows, running=running)
    starts = [action.attempt for action in only(actions, StartAttempt)]
    assert starts == [remote(member=1), remote(member=2)]
    (claim,) = after.state.executor.claims.values()
    assert (claim.live, list(claim.started)) == (2, [remote(member=2)])


def test_the_places_of_a_claim_are_kept_for_what_was_on_its_way(rig: Rig) -> None:
    rows = granted_rows(rig, 1, 2)
    after, _ = resumed(*rows)
    (claim,) = after.state.executor.claims.values()
    assert (claim.row.places, claim.granted, promised_slots(after.state, 4)) == (4, 4, 4)
    late = transfer(claim.row.id, claim.row.ticket, remote(member=3), remote(member=4))
    started = only(after.handle(TransferReceived(sender=ORIGIN, message=late)), StartAttempt)
    assert [action.attempt for action in started] == [remote(member=3), remote(member=4)]


def test_a_claim_that_was_ending_keeps_no_places_but_those_of_its_tasks(rig: Rig) -> None:
    counters, granted, *attempts = granted_rows(rig, 1)
    assert isinstance(granted, GrantedClaimRow)
    after, _ = resumed(counters, replace(granted, is_ending=True), *attempts)
    assert promised_slots(after.state, 4) == 1


def test_an_attempt_that_ended_meanwhile_is_reported(rig: Rig) -> None:
    rows = granted_rows(rig, 1)
    ended = AttemptEnded(attempt=remote(member=1), exit_code=4)
    again, _ = resumed(*rows, running=(RunningAttempt(attempt=remote(member=1), is_running=False, ended=ended),))
    (said,) = message_in(again.wait(0), TaskStatus).attempts
    assert (said.state, said.exit_code) == ("finished", 4)


def test_from_an_older_copy_what_may_have_run_since_is_lost_and_never_starts_again(rig: Rig) -> None:
    rows = granted_rows(rig, 1, 2)
    running = (RunningAttempt(attempt=remote(member=2), is_running=True),)
    again, actions = resumed(*rows, running=running, forgotten=IdsGiven(claims=1_024))
    assert [action.attempt for action in only(actions, StartAttempt)] == [remote(member=2)]
    (said,) = message_in(again.wait(0), TaskStatus).attempts
    assert (said.attempt, said.state, said.cause) == (remote(member=1), "revoked", "lost")
    assert "older copy" in said.text


def test_after_a_reboot_what_may_have_run_is_lost_and_never_starts_again(rig: Rig) -> None:
    rows = granted_rows(rig, 1)
    again, actions = resumed(*rows, has_rebooted=True)
    assert only(actions, StartAttempt) == ()
    (said,) = message_in(again.wait(0), TaskStatus).attempts
    assert (said.state, said.cause) == ("revoked", "lost")


def test_an_attempt_without_a_row_or_a_claim_is_ended_or_tidied_up(rig: Rig) -> None:
    *_, row = granted_rows(rig, 1)
    over = AttemptEnded(attempt=remote(member=9), exit_code=0)
    running = (
        RunningAttempt(attempt=remote(member=8), is_running=True),
        RunningAttempt(attempt=remote(member=9), is_running=False, ended=over),
    )
    _, actions = resumed(row, running=running)
    assert actions == (
        EndAttempt(attempt=remote(member=8), grace_ns=0, cause=Cause.UNBOUND),
        DiscardAttempt(attempt=remote(member=9)),
        EndAttempt(attempt=remote(member=1), grace_ns=0, cause=Cause.UNBOUND),
    )


def test_a_lease_that_ran_out_while_nobody_was_there_ends_its_attempts(rig: Rig) -> None:
    rows = granted_rows(rig, 1)
    after = Rig(module=make_module())
    after.now = rig.now
    after.wait(HOUR)
    after.resume(Remains(rows=rows))
    (end,) = only(after.wait(0), EndAttempt)
    assert end.cause == "lease_expired"


def renewal(actions: tuple[Action, ...]) -> TaskStatus:
    """Return the one renewal of a lease."""
    (found,) = [message for _, message in sent(actions, TaskStatus) if message.renewal]
    return found


def test_an_answer_to_a_renewal_from_before_the_restart_extends_nothing(rig: Rig) -> None:
    rows = granted_rows(rig, 1)
    before = renewal(rig.wait(RENEWAL_NS))
    after = Rig(module=make_module(), now=rig.now)
    after.resume(Remains(rows=rows))
    ours = renewal(after.greet(PARENT))
    # The origin counts from when it answered, and that may have been long ago.
    assert after.hear(PARENT, TaskStatusAck(claim=before.claim, renewal=before.renewal)) == ()
    (extended,) = only(after.hear(PARENT, TaskStatusAck(claim=before.claim, renewal=ours.renewal)), ExtendLease)
    assert extended.until == rig.now + LEASE_NS


def origin_rows(rig: Rig, *, members: int, places: int) -> tuple[Row, ...]:
    ((_, ask),) = sent(rig.submit(members), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=places))
    origin = rig.state.origin
    submissions = tuple(each.row for each in origin.submissions.values())
    claims = tuple(each.row for each in origin.claims.values())
    return (rig.state.counters, *submissions, *claims, *origin.tasks.values())


def test_bound_tasks_stay_bound_and_are_sent_again(rig: Rig) -> None:
    after, actions = resumed(*origin_rows(rig, members=0, places=1))
    assert list(after.state.origin.claims[CLAIM].bound) == [attempt()]
    message = message_in(actions, TaskTransfer)
    assert [task.attempt for task in message.tasks] == [attempt()]


def test_members_that_were_never_tried_wait_as_runs(rig: Rig) -> None:
    rows = origin_rows(rig, members=1_000, places=2)
    after, _ = resumed(*rows)
    (shape,) = after.state.origin.shapes.values()
    assert list(shape.waiting) == [(TASK, 3, 1_000)]
    assert after.state.origin.submissions[TASK].open_members == 1_000


def test_members_that_have_ended_wait_no_more(rig: Rig) -> None:
    *rows, first, second = origin_rows(rig, members=4, places=2)
    done = rig.hear(CHILD, statuses(status(attempt(member=1)), window=2))
    stored = {key_of(row): row for row in (*rows, first, second)}
    stored |= {key_of(action.row): action.row for action in done if hasattr(action, "row")}
    after, _ = resumed(*stored.values())
    origin = after.state.origin
    assert origin.submissions[TASK].open_members == 3
    assert sorted(task.member for task in origin.tasks) == [2, 3]


def test_the_same_client_key_gives_the_same_id_after_a_restart(rig: Rig) -> None:
    after, _ = resumed(*origin_rows(rig, members=0, places=1))
    (answer,) = after.submit()
    assert getattr(answer, "task", None) == TASK


def test_the_origin_counts_a_lease_from_its_own_restart(rig: Rig) -> None:
    after, _ = resumed(*origin_rows(rig, members=0, places=1))
    after.wait(16 * 60 * SECOND)
    assert CLAIM in after.state.origin.claims
    after.wait(60 * SECOND)
    assert CLAIM not in after.state.origin.claims


def test_a_cancel_outlives_a_restart(rig: Rig) -> None:
    rows = origin_rows(rig, members=0, places=1)
    rig.handle(LinkDown(neighbor=CHILD))
    rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    (cancelled,) = rig.state.origin.tasks.values()
    after, _ = resumed(*rows[:-1], cancelled)
    after.greet(CHILD)
    kill = message_in(after.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING), window=1)), TaskKill)
    assert kill.attempts == (attempt(),)


def test_a_deadline_that_passed_meanwhile_denies_what_waits(rig: Rig) -> None:
    rig.submit(deadline_ns=SECOND)
    (submission,) = [each.row for each in rig.state.origin.submissions.values()]
    after, _ = resumed(rig.state.counters, submission)
    after.wait(2 * SECOND)
    assert after.state.origin.submissions == {}


def test_a_module_without_a_past_begins_to_advertise_and_nothing_else() -> None:
    rig, actions = resumed()
    assert actions == ()
    assert rig.state.timers.is_set(TimerKind.OUTPUT, rig.state.system)
    assert rig.module.next_deadline() == rig.now
