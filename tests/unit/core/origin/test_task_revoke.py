"""Tasks whose executor wants to be rid of them: what it asks for, what their origin does, and how it ends."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, EndAttempt, StartAttempt, Store
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import PolicyChanged, TransferReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    Substate,
    TaskKill,
    TaskRevoke,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskTransfer,
)
from messiahs.core.interface.output_events import OutputsHome
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_files import Output
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    ORIGIN,
    PARENT,
    SIBLING,
    TASK,
    Rig,
    accept,
    attempt,
    have_results,
    message_in,
    only,
    remote,
    reported,
    request,
    sent,
    status,
    statuses,
    tdv,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

RULE = 'running { move when $ran >= 5s and $here.load > 50% grace 60s else "the day begins"; }'
OTHER = ClaimId(SystemId("other"), Epoch(4), 1)
REVOKE = TaskRevoke(claim=CLAIM, attempts=(attempt(),), text="the day begins")


@pytest.fixture
def executor(module: ModuleFactory, policy: ScriptedPolicy) -> Rig:
    """Make a machine whose owner wants tasks to move after five seconds, and on which one runs since four."""
    policy.running = parse_policy(RULE, file="test.policy").running
    rig = module(policy=policy, neighbors=(Neighbor(system=PARENT, is_parent=True, is_primary_parent=True),))
    rig.greet(PARENT)
    rig.see(PARENT)
    rig.measure(load=9000)
    claim = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    rig.wait(4 * SECOND)
    return rig


@pytest.fixture
def origin(rig: Rig) -> Rig:
    """Bind a task to a claim that the child brought, and let it run."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING, substate=Substate.RUNNING)))
    return rig


def move_on(rig: Rig) -> tuple[Action, ...]:
    """Let the origin hear that its task is to move, and find a place for it at the sibling."""
    asked = sent(rig.hear(CHILD, REVOKE), SchedRequest)
    while asked and asked[0][0] != SIBLING:
        ((system, ask),) = asked
        asked = sent(rig.hear(system, SchedDeny(request=ask.id, reasons=(), asks_left=60)), SchedRequest)
    ((_, ask),) = asked
    return rig.hear(SIBLING, accept(ask.id, claim=OTHER))


def test_the_executor_asks_its_origin_to_place_the_task_elsewhere_and_lets_it_run_on(executor: Rig) -> None:
    actions = executor.wait(2 * SECOND)
    revoke = message_in(actions, TaskRevoke)
    assert (revoke.attempts, revoke.text) == ((remote(),), "the day begins")
    assert only(actions, EndAttempt) == ()
    assert sent(executor.wait(5 * SECOND), TaskRevoke) == ()


def test_tasks_like_it_get_no_new_places_meanwhile(executor: Rig) -> None:
    executor.wait(2 * SECOND)
    (reason,) = message_in(executor.hear(PARENT, request(7, search=b"n" * 16)), SchedDeny).reasons
    assert "revoked" in reason.text


def test_the_executor_ends_it_when_there_is_another_place(executor: Rig) -> None:
    revoke = message_in(executor.wait(2 * SECOND), TaskRevoke)
    actions = executor.hear(PARENT, TaskKill(claim=revoke.claim, attempts=revoke.attempts, is_move=True))
    (end,) = only(actions, EndAttempt)
    assert (end.attempt, end.cause, end.grace_ns) == (remote(), "moved", executor.state.policy.timeouts.kill_grace_ns)
    (ended,) = message_in(
        executor.end(AttemptEnded(attempt=remote(), signal=15, cause=Cause.MOVED)), TaskStatus
    ).attempts
    assert (ended.state, ended.cause, ended.text) == (TaskState.REVOKED, "moved", "the day begins")


def test_without_another_place_the_executor_does_what_its_rule_says_when_the_grace_is_over(executor: Rig) -> None:
    executor.wait(2 * SECOND)
    assert only(executor.wait(58 * SECOND), EndAttempt) == ()
    (end,) = only(executor.wait(3 * SECOND), EndAttempt)
    assert (end.cause, end.grace_ns) == ("revoked", 0)


def test_a_move_that_is_not_wanted_any_more_is_called_off(executor: Rig) -> None:
    revoke = message_in(executor.wait(2 * SECOND), TaskRevoke)
    executor.measure(load=100)
    late = executor.hear(PARENT, TaskKill(claim=revoke.claim, attempts=revoke.attempts, is_move=True))
    assert only(late, EndAttempt) == ()
    assert message_in(late, TaskRevoke).attempts == ()
    assert only(executor.wait(100 * SECOND), EndAttempt) == ()


def test_an_origin_that_has_not_heard_of_the_end_of_a_move_is_told_when_it_answers_a_renewal(executor: Rig) -> None:
    revoke = message_in(executor.wait(2 * SECOND), TaskRevoke)
    agreed = TaskStatusAck(claim=revoke.claim, renewal=1, moving=revoke.attempts)
    assert executor.hear(PARENT, agreed) == ()
    executor.measure(load=100)
    assert message_in(executor.hear(PARENT, agreed), TaskRevoke) == TaskRevoke(claim=revoke.claim, attempts=())
    assert executor.hear(PARENT, replace(agreed, moving=())) == ()


def test_the_origin_says_with_each_renewal_for_what_it_looks_for_another_place(origin: Rig) -> None:
    origin.hear(CHILD, REVOKE)
    running = status(attempt(), TaskState.EXECUTING)
    assert message_in(origin.hear(CHILD, statuses(running, renewal=3)), TaskStatusAck).moving == (attempt(),)
    origin.hear(CHILD, TaskRevoke(claim=CLAIM, attempts=()))
    assert message_in(origin.hear(CHILD, statuses(running, renewal=4)), TaskStatusAck).moving == ()


def test_what_ends_already_for_a_move_is_not_called_off(executor: Rig) -> None:
    revoke = message_in(executor.wait(2 * SECOND), TaskRevoke)
    kill = TaskKill(claim=revoke.claim, attempts=revoke.attempts, is_move=True)
    executor.hear(PARENT, kill)
    agreed = TaskStatusAck(claim=revoke.claim, renewal=1, moving=revoke.attempts)
    assert executor.hear(PARENT, agreed) == ()
    assert executor.hear(PARENT, kill) == ()
    assert message_in(executor.greet(PARENT), TaskRevoke).attempts == revoke.attempts
    executor.end(AttemptEnded(attempt=remote(), signal=15, cause=Cause.MOVED))
    assert sent(executor.hear(PARENT, agreed), TaskRevoke) == ()


def test_the_place_of_what_has_ended_is_kept_while_its_outputs_come_home(origin: Rig) -> None:
    move_on(origin)
    out = (Output(name="stdout", size_bytes=3),)
    origin.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.MOVED, outputs=out)))
    assert sent(origin.hear(CHILD, TaskRevoke(claim=CLAIM, attempts=())), ClaimEnd) == ()
    assert message_in(origin.handle(OutputsHome(attempt=attempt())), TaskTransfer).claim == OTHER


def test_a_policy_that_wants_no_move_any_more_calls_it_off(executor: Rig) -> None:
    revoke = message_in(executor.wait(2 * SECOND), TaskRevoke)
    loaded = executor.handle(PolicyChanged(policy=parse_policy("", file="new")))
    assert message_in((*loaded, *executor.wait(0)), TaskRevoke).attempts == ()
    late = executor.hear(PARENT, TaskKill(claim=revoke.claim, attempts=revoke.attempts, is_move=True))
    assert only(late, EndAttempt) == ()


def test_the_origin_is_asked_again_when_its_path_was_lost(executor: Rig) -> None:
    executor.wait(2 * SECOND)
    assert message_in(executor.greet(PARENT), TaskRevoke).attempts == (remote(),)


def test_the_origin_looks_for_another_place_before_anything_ends(origin: Rig) -> None:
    actions = origin.hear(CHILD, REVOKE)
    assert sent(actions, TaskKill) == ()
    assert message_in(actions, SchedRequest).count == 1
    row = origin.state.origin.tasks[TASK]
    assert only(actions, Store) == (Store(row=row),)
    assert (row.history[-1].event, row.history[-1].text) == ("moving", "the day begins")


def test_one_attempt_ends_before_the_next_is_bound_to_the_place_that_was_found(origin: Rig) -> None:
    actions = move_on(origin)
    ((to, kill),) = sent(actions, TaskKill)
    assert (to, kill) == (CHILD, TaskKill(claim=CLAIM, attempts=(attempt(),), is_move=True))
    assert sent(actions, TaskTransfer) == ()
    assert sent(actions, ClaimEnd) == ()
    ended = origin.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.MOVED, text="the day begins")))
    moved = message_in(ended, TaskTransfer)
    assert (moved.claim, [task.attempt for task in moved.tasks]) == (OTHER, [attempt(2)])
    assert [entry.event for entry in origin.state.origin.tasks[TASK].history] == ["bound", "moving", "moved", "bound"]


def test_a_task_that_ends_by_itself_meanwhile_is_done_and_the_other_place_is_given_back(origin: Rig) -> None:
    move_on(origin)
    ended = origin.hear(CHILD, statuses(status(attempt())))
    assert TASK not in origin.state.origin.tasks
    assert (SIBLING, ClaimEnd(claim=OTHER)) in sent(ended, ClaimEnd)


def test_a_move_that_is_called_off_gives_the_other_place_back(origin: Rig) -> None:
    move_on(origin)
    actions = origin.hear(CHILD, TaskRevoke(claim=CLAIM, attempts=()))
    assert sent(actions, ClaimEnd) == ((SIBLING, ClaimEnd(claim=OTHER)),)
    assert origin.state.origin.tasks[TASK].claim == CLAIM
    origin.hear(CHILD, statuses(status(attempt())))
    assert TASK not in origin.state.origin.tasks


def test_a_kill_that_was_lost_is_repeated(origin: Rig) -> None:
    move_on(origin)
    assert message_in(origin.hear(CHILD, REVOKE), TaskKill) == TaskKill(
        claim=CLAIM, attempts=(attempt(),), is_move=True
    )


def test_without_another_place_the_origin_keeps_looking_while_the_task_runs(origin: Rig) -> None:
    asked = sent(origin.hear(CHILD, REVOKE), SchedRequest)
    while asked:
        ((system, ask),) = asked
        asked = sent(origin.hear(system, SchedDeny(request=ask.id, reasons=(), asks_left=60)), SchedRequest)
    assert sent(origin.wait(2 * SECOND), SchedRequest)
    assert origin.state.origin.tasks[TASK].claim == CLAIM


def test_a_task_that_is_moving_takes_no_other_of_its_shape_along(origin: Rig) -> None:
    have_results(origin)
    origin.hear(CHILD, statuses(window=4))
    origin.hear(CHILD, REVOKE)
    actions = origin.submit(key="another")
    assert sent(actions, TaskTransfer) == ()


def test_nobody_but_the_path_of_a_claim_moves_its_tasks(origin: Rig) -> None:
    assert reported(origin.hear(PARENT, REVOKE)) == "no_such_claim"
    unknown = TaskRevoke(claim=OTHER, attempts=(attempt(),))
    assert message_in(origin.hear(CHILD, unknown), ClaimEnd) == ClaimEnd(claim=OTHER)


def test_a_task_of_an_own_user_moves_away_from_the_own_machine(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.running = parse_policy(RULE, file="test.policy").running
    rig.measure(load=9000)
    assert only(rig.submit(), StartAttempt)
    rig.handle(AttemptStarted(attempt=attempt()))
    asked = sent(rig.wait(8 * SECOND), SchedRequest)
    ((system, ask),) = asked
    assert system in (CHILD, SIBLING, PARENT)
    (end,) = only(rig.hear(system, accept(ask.id, claim=OTHER)), EndAttempt)
    assert end.cause == "moved"
    moved = message_in(rig.end(AttemptEnded(attempt=attempt(), signal=15, cause=Cause.MOVED)), TaskTransfer)
    assert (moved.claim, [task.attempt for task in moved.tasks]) == (OTHER, [attempt(2)])


def test_a_revocation_that_is_repeated_after_the_move_moves_nothing_again(origin: Rig) -> None:
    move_on(origin)
    origin.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.MOVED)))
    again = origin.hear(CHILD, REVOKE)
    assert not any(sent(again, kind) for kind in (TaskKill, SchedRequest))
    row = origin.state.origin.tasks[TASK]
    assert (row.claim, row.attempt) == (OTHER, 2)
    assert "moving" not in [entry.event for entry in row.history[-2:]]


@pytest.mark.parametrize(
    "named",
    [attempt(2), remote(), attempt(task=TASK._replace(number=2)), attempt(member=1)],
    ids=["an attempt to come", "another origin's", "a task of another claim", "no member"],
)
def test_a_revocation_that_names_what_its_claim_does_not_hold_moves_nothing(origin: Rig, named: AttemptId) -> None:
    ((_, ask),) = sent(origin.submit(key="another", tdv=tdv(cpus=2)), SchedRequest)
    origin.hear(CHILD, accept(ask.id, claim=OTHER))
    rows = dict(origin.state.origin.tasks)
    actions = origin.hear(CHILD, TaskRevoke(claim=CLAIM, attempts=(named,)))
    assert not any(sent(actions, kind) for kind in (TaskKill, SchedRequest, ClaimEnd))
    assert origin.state.origin.tasks == rows
