"""What one claim says about attempts concerns no other claim, though both name the same origin."""

import pytest

from messiahs.core.executor.local_ids import row_of
from messiahs.core.interface.actions import (
    Action,
    DiscardAttempt,
    EndAttempt,
    Forget,
    SendControl,
    StartAttempt,
    Store,
)
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    SchedAccept,
    TaskKill,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, RowKind
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import SECOND
from messiahs.core.queries import is_attempt_of, is_executing, local_id, neighbor_of_attempt
from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.trace.format.rows import decode_row, encode_row
from tests.unit.core.rig import CHILD, ORIGIN, PARENT, Rig, make_module, message_in, only, remote, request, transfer


@pytest.fixture
def honest(rig: Rig) -> SchedAccept:
    """Grant a claim through the parent, to the origin that the task has."""
    rig.measure(slots=8)
    return message_in(rig.hear(PARENT, request(1, count=2)), SchedAccept)


@pytest.fixture
def hostile(rig: Rig, honest: SchedAccept) -> SchedAccept:
    """Grant a claim through the child, whose request only states that origin."""
    assert honest.places == 2
    return message_in(rig.hear(CHILD, request(2, count=2, search=b"o" * 16)), SchedAccept)


def bring(rig: Rig, claim: SchedAccept, *attempts: AttemptId) -> tuple[Action, ...]:
    return rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *attempts)))


def test_an_attempt_is_of_the_neighbor_through_which_it_came(
    rig: Rig, honest: SchedAccept, hostile: SchedAccept
) -> None:
    bring(rig, honest, remote())
    bring(rig, hostile, remote())
    assert neighbor_of_attempt(rig.state, here(rig, honest)) == PARENT
    assert neighbor_of_attempt(rig.state, here(rig, hostile)) == CHILD
    assert neighbor_of_attempt(rig.state, remote(member=99)) is None


def test_an_attempt_of_the_module_itself_is_of_no_neighbor(rig: Rig) -> None:
    rig.measure()
    (start,) = only(rig.submit(), StartAttempt)
    assert neighbor_of_attempt(rig.state, start.attempt) is None


def here(rig: Rig, claim: SchedAccept) -> AttemptId:
    """Return the id by which the executor knows the attempt of a claim."""
    row = row_of(rig.state, claim.claim, remote())
    assert row is not None
    return row.id


@pytest.fixture
def start(rig: Rig, honest: SchedAccept, hostile: SchedAccept) -> StartAttempt:
    """Run an attempt in the hostile claim, and then the one of the same id in the other."""
    bring(rig, hostile, remote())
    stored, started = bring(rig, honest, remote())
    assert isinstance(stored, Store)
    assert isinstance(started, StartAttempt)
    return started


def test_attempts_that_were_denied_in_advance_start_in_their_own_claim(
    rig: Rig, honest: SchedAccept, hostile: SchedAccept
) -> None:
    denied = rig.hear(CHILD, TaskStatusQuery(claim=hostile.claim, attempts=(remote(),)))
    assert message_in(denied, TaskStatus).attempts[0].state is TaskState.DENIED
    (start,) = only(bring(rig, honest, remote()), StartAttempt)
    assert start.claim == honest.claim
    (status,) = message_in(rig.end(AttemptEnded(attempt=start.attempt, exit_code=0)), TaskStatus).attempts
    assert (status.attempt, status.state, status.exit_code) == (remote(), TaskState.FINISHED, 0)


def test_an_attempt_starts_beside_one_of_the_same_id_and_differs_in_its_epoch_alone(start: StartAttempt) -> None:
    task = start.attempt.task
    assert start.attempt != remote()
    assert start.attempt == AttemptId(remote().task._replace(epoch=task.epoch), remote().number)
    assert str(start.attempt) == str(remote())


def test_an_attempt_that_comes_again_in_its_own_claim_starts_once(
    rig: Rig, honest: SchedAccept, start: StartAttempt
) -> None:
    again = bring(rig, honest, remote())
    assert [each.attempt for each in message_in(again, TaskStatus).attempts] == [remote()]
    assert only(again, StartAttempt) == ()
    rig.end(AttemptEnded(attempt=start.attempt, exit_code=0))
    taken = rig.hear(PARENT, TaskStatusAck(claim=honest.claim, taken=(remote(),)))
    assert taken == (Forget(key=(RowKind.ATTEMPT, start.attempt)), DiscardAttempt(attempt=start.attempt))
    late = bring(rig, honest, remote())
    assert only(late, StartAttempt) == ()
    assert message_in(late, TaskStatus).attempts[0].state is TaskState.FINISHED


def test_messages_of_a_claim_reach_its_own_attempt(
    rig: Rig, honest: SchedAccept, hostile: SchedAccept, start: StartAttempt
) -> None:
    (status,) = message_in(
        rig.hear(PARENT, TaskStatusQuery(claim=honest.claim, attempts=(remote(),))), TaskStatus
    ).attempts
    assert (status.attempt, status.state) == (remote(), TaskState.EXECUTING)
    (killed,) = only(rig.hear(CHILD, TaskKill(claim=hostile.claim, attempts=(remote(),))), EndAttempt)
    assert killed.attempt == remote()
    (ended,) = only(rig.hear(PARENT, TaskStatusAck(claim=honest.claim, unbound=(remote(),))), EndAttempt)
    assert ended.attempt == start.attempt


def test_the_end_of_a_claim_ends_its_own_attempts_alone(
    rig: Rig, honest: SchedAccept, hostile: SchedAccept, start: StartAttempt
) -> None:
    (ended,) = only(rig.hear(CHILD, ClaimEnd(claim=hostile.claim)), EndAttempt)
    assert ended.attempt == remote()
    rig.end(AttemptEnded(attempt=remote(), cause=Cause.UNBOUND))
    assert here(rig, honest) == start.attempt
    # The other claim is unknown now, and its attempt is lost, whatever runs in this one.
    (lost,) = message_in(
        rig.hear(CHILD, TaskStatusQuery(claim=hostile.claim, attempts=(remote(),))), TaskStatus
    ).attempts
    assert lost.cause == "lost"


def test_bytes_are_those_of_the_claim_that_a_peer_names(
    rig: Rig, honest: SchedAccept, hostile: SchedAccept, start: StartAttempt
) -> None:
    assert local_id(rig.state, honest.claim, remote()) == start.attempt
    assert local_id(rig.state, hostile.claim, remote()) == remote()
    rig.end(AttemptEnded(attempt=remote(), exit_code=0))
    of_claims = [is_executing(rig.state, remote(), claim=claim.claim) for claim in (honest, hostile)]
    assert of_claims == [True, False]
    assert is_attempt_of(rig.state, remote(), claim=honest.claim)
    assert not is_attempt_of(rig.state, start.attempt, claim=honest.claim)


def test_both_attempts_continue_after_a_restart(
    rig: Rig, honest: SchedAccept, hostile: SchedAccept, start: StartAttempt
) -> None:
    attempts, claims = rig.state.executor.attempts, rig.state.executor.claims
    rows: list[AttemptRow | GrantedClaimRow] = [*(claim.row for claim in claims.values()), *attempts.values()]
    stored = tuple(decode_row(*encode_row(row)) for row in rows)
    again = Rig(module=make_module())
    running = tuple(RunningAttempt(attempt=each, is_running=True, ran_ns=SECOND) for each in attempts)
    again.module.resume(Remains(rows=stored, running=running), rig.now)
    again.greet(PARENT, CHILD)
    assert (here(again, honest), here(again, hostile)) == (start.attempt, remote())
    brought = bring(again, honest, remote())
    assert only(brought, StartAttempt) == ()
    assert [each.attempt for each in message_in(brought, TaskStatus).attempts] == [remote()]
    again.check()


def test_a_claim_that_denies_without_end_forgets_its_own_attempts_alone(
    rig: Rig, honest: SchedAccept, hostile: SchedAccept
) -> None:
    bring(rig, honest, remote())
    names = tuple(AttemptId(remote().task, 1 + each) for each in range(5_000))
    for begin in range(0, len(names), 1_000):
        part = names[begin : begin + 1_000]
        rig.hear(CHILD, TaskStatusQuery(claim=hostile.claim, attempts=part))
        actions = rig.hear(CHILD, TaskStatusAck(claim=hostile.claim, taken=part))
        assert not any(isinstance(action, SendControl) for action in actions)
    assert here(rig, honest) == remote()
    assert row_of(rig.state, hostile.claim, remote()) is None
    assert row_of(rig.state, hostile.claim, names[-1]) is not None
