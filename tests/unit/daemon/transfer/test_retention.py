"""Which files are still needed."""

import asyncio
import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path

from messiahs.core.interface.messages import AttemptStatus, Command, InputFile, TaskState
from messiahs.core.interface.rows import AttemptRow, SubmissionRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.state.origin import Submission
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.arrivals import ArrivingFiles
from messiahs.daemon.transfer.retention import collect_for_ever, live_inputs
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


class _Messages(logging.Handler):
    """Gives what is logged in the event loop's own thread."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.queue: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.queue.put_nowait(record.getMessage())


async def _until(messages: _Messages, text: str) -> None:
    while text not in await messages.queue.get():
        pass


async def _collect_after_an_error(folder: Path) -> None:
    files = FileStore(folder)
    (sha256,) = files.keep_all((b"nobody needs it",))
    os.utime(files.path(sha256), (0, 0))
    arrivals = ArrivingFiles(files, claim_of=lambda _: None, in_use=frozenset)
    messages, log = _Messages(), logging.getLogger("messiahs.daemon.transfer.retention")
    away = folder.with_name("away")
    shutil.move(folder, away)
    level = log.level
    log.addHandler(messages)
    log.setLevel(logging.INFO)
    collecting = asyncio.create_task(collect_for_ever(arrivals, make_module().state, period_seconds=0))
    try:
        async with asyncio.timeout(60):
            await _until(messages, "could not be deleted")
            shutil.move(away, folder)
            await _until(messages, "were deleted")
    finally:
        collecting.cancel()
        log.removeHandler(messages)
        log.setLevel(level)
    assert files.size(sha256) is None


def test_collecting_goes_on_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    asyncio.run(_collect_after_an_error(tmp_path / "files"))
