"""Which inputs go first when a disk is short of room: those of tasks that ended well."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from messiahs.core.interface.actions import Store
from messiahs.core.interface.ended_members import EndedMembers
from messiahs.core.interface.messages import AttemptStatus, Command, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.storage.clock import Clock
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.transfer.spent_inputs import SpentInputs

OWN, EPOCH = SystemId("left"), Epoch(7)


def file_of(number: int) -> InputFile:
    return InputFile(name=f"in-{number}", sha256=bytes([number]) * 32, size_bytes=1)


def submission(number: int, *inputs: InputFile) -> SubmissionRow:
    task = TaskId(OWN, EPOCH, number)
    command = Command(argv=("true",), inputs=inputs)
    return SubmissionRow(
        id=task,
        key=ClientKey(str(task)),
        tdv=TDV(()),
        requirement="",
        command=command,
        members=0,
        submitted_at=Instant(number * SECOND),
    )


def ended(row: SubmissionRow, *, exit_code: int) -> TaskRow:
    status = AttemptStatus(attempt=AttemptId(row.id, 1), state=TaskState.FINISHED, exit_code=exit_code)
    return TaskRow(id=row.id, state=TaskState.FINISHED, result=status)


def array(row: SubmissionRow, *, exit_code: int, own: InputFile) -> SubmissionRow:
    endings = (EndedMembers(state=TaskState.FINISHED, exit_code=exit_code, count=1),)
    return replace(row, members=1, member_inputs=((own,),), endings=endings)


def spent_of(folder: Path, rows: list[SubmissionRow], *, tasks: Sequence[TaskRow]) -> dict[bytes, int]:
    store = RowStore(folder / "module.db")
    store.commit([*(Store(row=row) for row in rows), *(Store(row=task) for task in tasks)], Instant(1))
    clock = Clock(Instant(0))
    latest = [row.id for row in rows] + [TaskId(OWN, EPOCH, 99)]
    found = SpentInputs(lambda _: latest, store, clock).finding()()
    store.close()
    ahead_seconds = clock.wall_offset_ns() / SECOND
    return {sha256: round(at - ahead_seconds) for sha256, at in found.items()}


def test_inputs_of_tasks_that_ended_well_are_spent_since_the_last_of_these_was_submitted(tmp_path: Path) -> None:
    first, second = submission(1, file_of(1), file_of(2)), submission(5, file_of(2))
    tasks = [ended(first, exit_code=0), ended(second, exit_code=0)]
    assert spent_of(tmp_path, [first, second], tasks=tasks) == {file_of(1).sha256: 1, file_of(2).sha256: 5}


def test_what_a_failed_task_needs_to_be_retried_is_not_spent(tmp_path: Path) -> None:
    good, bad, untried = submission(1, file_of(1), file_of(2)), submission(2, file_of(2)), submission(3, file_of(3))
    tasks = [ended(good, exit_code=0), ended(bad, exit_code=3)]
    assert spent_of(tmp_path, [good, bad, untried], tasks=tasks) == {file_of(1).sha256: 1}


def test_members_of_arrays_have_inputs_of_their_own(tmp_path: Path) -> None:
    good = array(submission(1, file_of(1)), exit_code=0, own=file_of(2))
    bad = array(submission(2, file_of(3)), exit_code=1, own=file_of(4))
    assert spent_of(tmp_path, [good, bad], tasks=()) == {file_of(1).sha256: 1, file_of(2).sha256: 1}
