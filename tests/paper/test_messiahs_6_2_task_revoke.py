"""MESSIAHS 6.2, task_revoke: a test per statement, and where we depart from it, what happens instead."""

from messiahs.core.interface.actions import SendControl
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import SchedAccept, SchedRequest, TaskRevoke, TaskState, TaskTransfer
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.module import SchedulingModule
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    PARENT,
    SIBLING,
    TASK,
    Rig,
    accept,
    attempt,
    deny,
    make_module,
    message_in,
    sent,
    status,
    statuses,
    tdv,
)

REVOKE = TaskRevoke(claim=CLAIM, attempts=(attempt(),))
ELSEWHERE = CLAIM._replace(executor=SystemId("elsewhere"))


def _linked() -> Rig:
    module: SchedulingModule = make_module()
    rig = Rig(module=module)
    rig.resume()
    rig.greet(CHILD, SIBLING, PARENT)
    for system in (CHILD, SIBLING, PARENT):
        rig.see(system)
    return rig


def _bound() -> Rig:
    rig = _linked()
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


def test_the_recipient_attempts_to_reschedule_the_task_at_another_node() -> None:
    rig = _bound()
    ((first, ask),) = sent(rig.hear(CHILD, REVOKE), SchedRequest)
    granted = rig.hear(first, accept(ask.id, claim=ELSEWHERE))
    assert sent(granted, SchedAccept) == ()
    ended = rig.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.MOVED)))
    assert message_in(ended, TaskTransfer).claim == ELSEWHERE


def test_the_revocation_is_forwarded_by_who_does_not_own_the_task() -> None:
    # The paper forwards it only when no eligible node is left; here the origin alone binds attempts to places.
    rig = _linked()
    rig.state.hop.passed[CLAIM] = PassedClaimRow(
        id=CLAIM, toward_origin=PARENT, toward_executor=CHILD, tdv=tdv(), slots=1
    )
    assert rig.hear(CHILD, REVOKE) == (SendControl(to=PARENT, message=REVOKE),)


def test_a_task_for_which_no_suitable_system_is_found_is_not_lost() -> None:
    # The paper aborts it. Here its executor ends it when the owner waits no longer, and it waits for a next attempt.
    rig = _bound()
    asked = sent(rig.hear(CHILD, REVOKE), SchedRequest)
    while asked:
        ((system, ask),) = asked
        asked = sent(rig.hear(system, deny(ask.id)), SchedRequest)
    rig.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.REVOKED)))
    row = rig.state.origin.tasks[TASK]
    assert (row.state, row.claim, row.failures) == (TaskState.EXECUTING, None, 0)
    assert sent(rig.wait(5 * SECOND), SchedRequest)
