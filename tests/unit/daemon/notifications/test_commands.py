"""Commands that notify users: what ends them, and what is told of that."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.notifications import Notification, NotificationRow
from messiahs.core.model.ids import Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.notifications import commands
from messiahs.daemon.notifications.commands import Outcome, run_command
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.processes


def notice(command: str) -> NotificationRow:
    return NotificationRow(
        id=TaskId(system=SystemId("me"), epoch=Epoch(1), number=1),
        notification=Notification(text=command, uid=os.getuid()),
        user="ann",
        name="",
        state=TaskState.FINISHED,
        exit_code=0,
        submitted_at=Instant(1),
        ended_at=Instant(2),
    )


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "COMMAND_SECONDS", 0.5)


class HaltedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is set by hand, so that later calls come only then."""

    now = 1.0

    def time(self) -> float:
        """Return the time."""
        return self.now


def test_a_command_that_takes_too_long_is_killed_with_what_it_has_begun(tmp_path: Path) -> None:
    loop, pid = HaltedLoop(), tmp_path / "pid"

    async def scene() -> Outcome:
        command = asyncio.create_task(run_command(notice(f"sleep 600 & echo begun; echo $! >{pid}; wait")))
        # Its time does not pass before it has begun.
        await asyncio.to_thread(eventually, lambda: pid.exists() and pid.read_text())
        loop.now += commands.COMMAND_SECONDS
        return await command

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        outcome = runner.run(scene())
    assert (outcome.problem, outcome.output) == ("the command was killed after 0.5 s", "begun")
    eventually(lambda: not psutil.pid_exists(int(pid.read_text())))


def test_where_memory_is_short_a_command_and_what_it_begins_end_before_the_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "COMMAND_SECONDS", PATIENCE_SECONDS)
    own = Path("/proc/self/oom_score_adj").read_text()
    outcome = asyncio.run(run_command(notice("cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj; :'")))
    assert outcome == Outcome(output="1000\n1000")
    assert Path("/proc/self/oom_score_adj").read_text() == own


def test_of_a_command_that_prints_without_end_one_piece_is_read_in_each_pause() -> None:
    loop = HaltedLoop()

    async def scene() -> tuple[list[int], str]:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        output = commands._Output(reading)
        printed = []
        for _ in range(3):
            printed.append(0)
            for _ in range(100):
                with suppress(BlockingIOError):
                    printed[-1] += os.write(writing, b"y\n" * 32_768)
                await asyncio.sleep(0)
            loop.now += 1.0
            await asyncio.sleep(0)
        os.close(writing)
        return printed, output.close()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        printed, last = runner.run(scene())
    # What a pipe holds, and what was read of it.
    assert [count <= 2 * 65_536 for count in printed] == [True, True, True], printed
    assert sum(printed) >= 3 * 65_536
    assert last == "y\n" * 511 + "y"


def test_a_command_that_cannot_be_killed_is_told_and_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def starting(*words: str, **options: Any) -> asyncio.subprocess.Process:  # noqa: ANN401 - as it is declared
        begun.append(await start(*words, **options))
        return begun[0]

    def refuse(group: int, number: int) -> None:
        raise PermissionError(group, number)

    async def scene() -> Outcome:
        # As for `exec sudo ...` in the module of an ordinary account.
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "create_subprocess_exec", starting)
            patch.setattr(os, "killpg", refuse)
            outcome = await run_command(notice("exec sleep 600"))
        assert begun[0].returncode is None
        begun[0].kill()
        await begun[0].wait()
        return outcome

    problem = asyncio.run(scene()).problem
    assert problem == "the command has rights of another account, so it could not be killed, after 0.5 s"
