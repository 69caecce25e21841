"""A runner without a daemon. It reaps every child of its process, so it belongs into a process of its own."""

import os
from collections.abc import Callable
from pathlib import Path

from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.executor.attempt_values import Ended, Staged, Start
from messiahs.executor.linux.cgroups.finding import Place
from messiahs.executor.linux.kernel import boot_id, boottime_ns
from messiahs.executor.linux.strays import Children
from messiahs.executor.starter.grouped_processes import GroupedProcesses
from messiahs.executor.starter.journal import Journal
from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.runner import Runner
from messiahs.executor.starter.spawn import Spawner
from messiahs.executor.starter.staging import INLINE_BYTES
from messiahs.executor.starter.task_groups import TaskGroups

SECOND_NS = 1_000_000_000


def make_runner(folder: Path) -> Runner:
    """Make a runner that has its files in a folder and has taken over nothing."""
    (folder / "tasks").mkdir(exist_ok=True)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    spawner = Spawner(user="x", path=os.environ["PATH"], nothing=nothing)
    pool, journal = Pool(folder / "tasks"), Journal(folder)
    groups = TaskGroups(Place(problem="no groups"))
    tasks = GroupedProcesses(spawner=spawner, children=Children(), pool=pool, groups=groups)
    runner = Runner(pool=pool, journal=journal, tasks=tasks, boot=boot_id())
    runner.recover()
    return runner


def attempt_of(number: int) -> AttemptId:
    return AttemptId(TaskId(SystemId("x"), Epoch(1), number), 1)


def absent_input() -> Staged:
    """Return an input that is not there, and so large that the task's own process copies it."""
    return Staged("data", "/absent", INLINE_BYTES + 1, is_executable=False)


def start_of(
    attempt: AttemptId,
    *argv: str,
    places: int = 100,
    inputs: tuple[Staged, ...] = (),
    outputs: tuple[str, ...] = (),
    claim_number: int = 1,
) -> Start:
    """Start a command, in a claim that all share if no other is named."""
    claim = ClaimId(SystemId("x"), Epoch(1), claim_number)
    until = boottime_ns() + 3600 * SECOND_NS
    return Start(
        attempt=attempt,
        claim=claim,
        argv=argv,
        env=(),
        places=places,
        limit_ns=None,
        lease_until=until,
        inputs=inputs,
        outputs=outputs,
    )


def turn(runner: Runner) -> None:
    runner.reap()
    runner.enforce()
    runner.settle()


def turns_until(runner: Runner, condition: Callable[[], bool]) -> None:
    """Take turns until something is true."""
    while not condition():
        turn(runner)


def ends(runner: Runner) -> dict[AttemptId, Ended]:
    """Name the ends that were reported."""
    return {report.attempt: report for report in runner.reports if isinstance(report, Ended)}
