"""What a module stores about tasks of other sites can be written, however large the numbers of their messages are."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import AttemptStatus, TaskTransfer
from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.ids import AttemptId, TaskId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.output_names import DECLARED_PREFIX
from messiahs.core.model.task_files import InputFile, Output
from messiahs.trace.format.rows import decode_row, encode_row
from messiahs.trace.format.segments import state_bytes
from messiahs.wire.codec import control_from_bytes, control_to_bytes, transfer_from_bytes, transfer_to_bytes
from tests.property import strategies as any_valid
from tests.property.budget import examples
from tests.unit.core.border.gate import HOME, OUTSIDE_CLAIM, gate, granted_outside, shown, toward
from tests.unit.core.rig import CHILD, PARENT, Rig, only, statuses, transfer

SIZES = st.sampled_from([0, 1, INTEGER_HIGHEST - 1, INTEGER_HIGHEST])
NUMBERS = st.sampled_from([0, 1, 2**32 - 1])
LARGE = st.sampled_from([1, 2**63 - 1])
SUBMISSIONS = st.builds(TaskId, st.just(HOME), any_valid.epochs | st.just(2**64 - 1), LARGE)
OUTPUTS = st.lists(SIZES, min_size=1, max_size=4).map(
    lambda sizes: tuple(Output(name=f"{DECLARED_PREFIX}{at}", size_bytes=size) for at, size in enumerate(sizes))
)
INPUTS = st.lists(SIZES, max_size=4).map(
    lambda sizes: tuple(InputFile(name=f"f{at}", sha256=b"d" * 32, size_bytes=size) for at, size in enumerate(sizes))
)


def transferred(rig: Rig, attempt: AttemptId, *, inputs: tuple[InputFile, ...]) -> tuple[Action, ...]:
    """Bring a task over the wire."""
    ticket = rig.state.hop.passed[OUTSIDE_CLAIM].ticket
    assert ticket is not None
    message: TaskTransfer = transfer(OUTSIDE_CLAIM, ticket, attempt)
    (task,) = message.tasks
    task = replace(task, command=replace(task.command, inputs=inputs))
    message = transfer_from_bytes(transfer_to_bytes(replace(message, tasks=(task,))))
    return rig.handle(TransferReceived(sender=CHILD, message=message))


def reported(rig: Rig, status: AttemptStatus) -> tuple[Action, ...]:
    """Report an attempt over the wire, by the id that the outside knows."""
    message = statuses(replace(status, attempt=shown(rig, status.attempt)), claim=OUTSIDE_CLAIM)
    (heard,) = control_from_bytes(control_to_bytes((message,)))
    return rig.hear(PARENT, heard)


@examples(50)
@given(st.data())
def test_all_that_a_border_stores_about_tasks_can_be_written_and_read(data: st.DataObject) -> None:
    rig = gate(toward(PARENT))
    granted_outside(rig)
    submission = data.draw(SUBMISSIONS)
    actions: list[Action] = []
    for _ in range(data.draw(st.integers(1, 6))):
        attempt = AttemptId(submission._replace(member=data.draw(NUMBERS)), data.draw(NUMBERS))
        actions += transferred(rig, attempt, inputs=data.draw(INPUTS))
        status = replace(data.draw(any_valid.attempt_statuses), attempt=attempt, outputs=data.draw(OUTPUTS))
        actions += reported(rig, status)
        actions += rig.wait(SECOND)
    rows = [action.row for action in only(tuple(actions), Store)]
    assert any(isinstance(row, AuditRow) for row in rows)
    assert [decode_row(*encode_row(row)) for row in rows] == rows
    assert state_bytes(rig.state)
