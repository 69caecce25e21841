"""How long a task is suspended, as its origin counts it."""

import pytest

from messiahs.core.interface.actions import Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import SchedRequest, Substate, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.instants import SECOND
from tests.unit.core.rig import CHILD, TASK, Rig, accept, attempt, only, sent, status, statuses


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Bind one task to a claim."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


def test_the_time_for_which_a_task_is_suspended_is_counted_apart(bound: Rig) -> None:
    def becomes(substate: Substate) -> TaskRow:
        bound.hear(CHILD, statuses(status(attempt(1), TaskState.EXECUTING, substate=substate)))
        return bound.state.origin.tasks[TASK]

    becomes(Substate.RUNNING)
    for _ in range(2):
        bound.wait(SECOND)
        assert becomes(Substate.SUSPENDED).suspended_at == bound.now
        bound.wait(5 * SECOND)
        assert becomes(Substate.SUSPENDED).suspended_at == bound.now - 5 * SECOND
        assert becomes(Substate.RUNNING).suspended_at is None
    assert bound.state.origin.tasks[TASK].suspended_ns == 10 * SECOND
    becomes(Substate.SUSPENDED)
    bound.wait(SECOND)
    ended = [each.row for each in only(bound.hear(CHILD, statuses(status(attempt(1)))), Store)]
    (row,) = [each for each in ended if isinstance(each, TaskRow)]
    assert (row.state, row.suspended_at, row.suspended_ns) == (TaskState.FINISHED, None, 11 * SECOND)


def test_the_next_attempt_of_a_task_has_not_been_suspended(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(1), TaskState.EXECUTING, substate=Substate.SUSPENDED)))
    bound.wait(SECOND)
    bound.hear(CHILD, statuses(status(attempt(1), TaskState.REVOKED, cause=Cause.VACATED)))
    row = bound.state.origin.tasks[TASK]
    assert (row.substate, row.suspended_at, row.suspended_ns) == (Substate.QUEUED, None, 0)
