"""Tasks with a terminal run once: what was typed is gone with their attempt."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, SendControl, StartAttempt, Store, TaskEnded
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import SchedRequest, Substate, TaskKill, TaskRevoke, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.instants import SECOND
from messiahs.core.model.terminals import ONE_ATTEMPT, TerminalSize
from tests.unit.core.rig import CHILD, CLAIM, COMMAND, TASK, Rig, accept, attempt, only, sent, status, statuses

WITH_TERMINAL = replace(COMMAND, takes_stdin=True, terminal=TerminalSize(rows=24, columns=80))


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Bind a task with a terminal to a claim that the child brings."""
    ((_, ask),) = sent(rig.submit(command=WITH_TERMINAL), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


def row_in(actions: tuple[Action, ...]) -> TaskRow:
    rows = [action.row for action in only(actions, Store) if isinstance(action.row, TaskRow)]
    return rows[-1]


def begin(rig: Rig) -> None:
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING, substate=Substate.RUNNING)))


def lost(rig: Rig, cause: Cause, *, ran_ns: int = 0) -> tuple[Action, ...]:
    return rig.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=cause, ran_ns=ran_ns)))


@pytest.mark.parametrize("cause", [Cause.LOST, Cause.LEASE_EXPIRED, Cause.VACATED, Cause.REVOKED, Cause.UNBOUND])
def test_a_lost_attempt_is_the_last_one(bound: Rig, cause: Cause) -> None:
    begin(bound)
    actions = lost(bound, cause, ran_ns=SECOND)
    row = row_in(actions)
    assert (row.state, row.attempt) == (TaskState.ABORTED, 1)
    assert row.result is not None
    assert (row.result.cause, row.result.text) == (cause, ONE_ATTEMPT)
    assert TaskEnded(task=TASK) in actions
    assert not sent(actions, SchedRequest)
    bound.check()


@pytest.mark.parametrize("cause", [Cause.LOST, Cause.LEASE_EXPIRED])
def test_an_attempt_of_which_nothing_was_heard_may_have_run(bound: Rig, cause: Cause) -> None:
    assert row_in(lost(bound, cause)).state is TaskState.ABORTED


@pytest.mark.parametrize("cause", [Cause.SPAWN_FAILED, Cause.STAGING_FAILED, Cause.VACATED, Cause.MOVED])
def test_an_attempt_that_never_began_is_followed_by_another_one(bound: Rig, cause: Cause) -> None:
    assert row_in(lost(bound, cause)).state is TaskState.EXECUTING


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        (TaskState.REVOKED, Cause.SPAWN_FAILED),
        (TaskState.REVOKED, Cause.STAGING_FAILED),
        (TaskState.REVOKED, Cause.MOVED),
        (TaskState.DENIED, Cause.REFUSED),
        (TaskState.DENIED, Cause.NEVER_ARRIVED),
    ],
)
def test_an_attempt_that_was_reported_as_running_may_have_run_whatever_is_said_later(
    bound: Rig, state: TaskState, cause: Cause
) -> None:
    begin(bound)
    actions = bound.hear(CHILD, statuses(status(attempt(), state, cause=cause)))
    assert (row_in(actions).state, row_in(actions).attempt) == (TaskState.ABORTED, 1)
    assert not sent(actions, SchedRequest)
    bound.check()


def test_the_own_machine_is_believed_that_what_it_reported_as_running_was_never_prepared(rig: Rig) -> None:
    rig.measure(slots=1, free_slots=1)
    actions = (*rig.submit(command=WITH_TERMINAL), *rig.wait(0))
    (start,) = only(actions, StartAttempt)
    rig.handle(AttemptStarted(attempt=start.attempt))
    rig.wait(1 * SECOND)
    assert rig.state.origin.tasks[TASK].started_at is not None
    rig.end(AttemptEnded(attempt=start.attempt, cause=Cause.STAGING_FAILED, text="no space"))
    assert rig.state.origin.tasks[TASK].started_at is None
    rig.check()


def test_it_is_not_moved(bound: Rig) -> None:
    begin(bound)
    actions = bound.hear(CHILD, TaskRevoke(claim=CLAIM, attempts=(attempt(),), text="the day begins"))
    assert not sent(actions, SchedRequest)
    bound.wait(60 * SECOND)
    kills = [action for action in only(actions, SendControl) if isinstance(action.message, TaskKill)]
    assert kills == []
    assert bound.state.origin.tasks[TASK].attempt == 1
