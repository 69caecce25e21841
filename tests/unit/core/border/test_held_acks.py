"""An acknowledgment that waits for the audit log leaves a border with shown ids (core/audit/storing.py)."""

from dataclasses import replace

from messiahs.core.audit.storing import STORED_AFTER_NS
from messiahs.core.interface.actions import Report
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import TaskStatusAck
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.task_files import InputFile
from tests.unit.core.border.gate import (
    INSIDE_CLAIM,
    OUTSIDE_CLAIM,
    bring,
    granted_inside,
    inside,
)
from tests.unit.core.border.gate import shown as shown_id
from tests.unit.core.rig import CHILD, COMMAND, PARENT, Rig, only, remote, sent, status, statuses, transfer

ATTEMPT = inside(1, member=3)


def hold_back(rig: Rig) -> AttemptId:
    """Let the ack of an attempt wait; return the id by which its executor knows the attempt."""
    bring(rig, ATTEMPT)
    rig.wait(STORED_AFTER_NS)
    shown = shown_id(rig, ATTEMPT)
    rig.hear(PARENT, statuses(status(shown), claim=OUTSIDE_CLAIM))
    assert rig.hear(CHILD, TaskStatusAck(claim=OUTSIDE_CLAIM, taken=(ATTEMPT,))) == ()
    return shown


def test_it_leaves_with_its_attempts_when_the_log_is_stored_at_last(out: Rig) -> None:
    shown = hold_back(out)
    actions = out.wait(STORED_AFTER_NS)
    assert sent(actions, TaskStatusAck) == ((PARENT, TaskStatusAck(claim=OUTSIDE_CLAIM, taken=(shown,))),)
    assert only(actions, Report) == ()


def test_it_leaves_with_its_attempts_when_inputs_from_outside_are_counted(out: Rig) -> None:
    granted_inside(out, 2)
    shown = hold_back(out)
    inward = out.state.hop.passed[INSIDE_CLAIM]
    assert inward.shown is not None
    assert inward.ticket is not None
    message = transfer(inward.shown, inward.ticket, remote())
    command = replace(COMMAND, inputs=(InputFile(name="given", sha256=b"d" * 32, size_bytes=5),))
    tasks = tuple(replace(each, command=command) for each in message.tasks)
    actions = out.handle(TransferReceived(sender=PARENT, message=replace(message, tasks=tasks)))
    assert sent(actions, TaskStatusAck) == ((PARENT, TaskStatusAck(claim=OUTSIDE_CLAIM, taken=(shown,))),)
    assert only(actions, Report) == ()
