"""Which files are still needed."""

from dataclasses import replace

from messiahs.core.descriptions import TDV
from messiahs.core.ids import AttemptId, ClaimId, ClientKey, Epoch, SystemId, TaskId
from messiahs.core.instants import Instant
from messiahs.core.messages import AttemptStatus, Command, InputFile, TaskState
from messiahs.core.rows import AttemptRow, SubmissionRow
from messiahs.core.state import Submission
from messiahs.daemon.collecting import live_inputs
from tests.unit.core.rig import make_module

TASK = TaskId(SystemId("blays"), Epoch(1), 1)


def file(number: int) -> InputFile:
    return InputFile(name="in", sha256=bytes([number]) * 32, size_bytes=1)


def command(number: int) -> Command:
    return Command(argv=("true",), inputs=(file(number),))


def test_what_live_submissions_their_members_and_attempts_name_is_needed_and_nothing_else() -> None:
    state = make_module().state
    live = SubmissionRow(
        id=TASK,
        key=ClientKey("k"),
        tdv=TDV(()),
        requirement="",
        command=command(1),
        members=2,
        member_inputs=((file(2),), (file(3),)),
        submitted_at=Instant(1),
    )
    over = replace(live, id=TASK._replace(number=2), command=command(4), member_inputs=(), ended_at=Instant(2))
    state.origin.submissions = {row.id: Submission(row=row) for row in (live, over)}
    for number, status in ((5, TaskState.EXECUTING), (6, TaskState.FINISHED)):
        attempt = AttemptId(TASK, number)
        state.executor.attempts[attempt] = AttemptRow(
            id=attempt,
            claim=ClaimId(SystemId("cs"), Epoch(1), 1),
            command=command(number),
            status=AttemptStatus(attempt=attempt, state=status),
        )
    assert live_inputs(state) == {bytes([number]) * 32 for number in (1, 2, 3, 5)}
