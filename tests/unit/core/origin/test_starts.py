"""When a task started, as its origin shows it: no later report moves that."""

import pytest

from messiahs.core.interface.actions import Store
from messiahs.core.interface.messages import SchedRequest, Substate, TaskState
from messiahs.core.model.instants import SECOND
from tests.unit.core.rig import CHILD, TASK, Rig, accept, attempt, only, sent, status, statuses


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Bind one task to a claim."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


@pytest.mark.parametrize("between", [Substate.QUEUED, Substate.STAGING, Substate.SUSPENDED, Substate.RUNNING])
def test_a_late_or_repeated_report_moves_no_start(bound: Rig, between: Substate) -> None:
    began_at = bound.now
    for substate in (Substate.RUNNING, between, Substate.RUNNING):
        bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING, substate=substate)))
        assert bound.state.origin.tasks[TASK].started_at == began_at
        bound.wait(SECOND)


def test_a_start_is_stored_once_so_that_a_report_after_a_restart_does_not_move_it(bound: Rig) -> None:
    running = statuses(status(attempt(), TaskState.EXECUTING))
    (stored,) = only(bound.hear(CHILD, running), Store)
    assert stored.row == bound.state.origin.tasks[TASK]
    assert bound.state.origin.tasks[TASK].started_at == bound.now
    assert only(bound.hear(CHILD, running), Store) == ()
