"""`python -m tests.unit.executor.lone_runner NUMBER`: what a runner reads of /proc, turn by turn, for so many attempts.

Prints two lists of numbers of opened files, one number for each turn: of the turns that look at all suspended attempts
once, and of those that weigh them all. A process of its own, because a runner reaps every child of its process.
"""

import json
import os
import select
import sys
import tempfile
from pathlib import Path

from messiahs.core.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.executor.frames import Start, Suspend, Weigh, Weighed
from messiahs.executor.starter.journal import Journal
from messiahs.executor.starter.kernel import boot_id, boottime_ns
from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.runner import Runner
from messiahs.executor.starter.spawn import Spawner
from messiahs.executor.starter.strays import Children

_SECOND_NS = 1_000_000_000


class Counting:
    """How many files of /proc were opened (mutable)."""

    def __init__(self) -> None:
        self.opened = 0

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        """Take an event of the interpreter."""
        if event == "open" and isinstance(arguments[0], str | bytes) and os.fsencode(arguments[0]).startswith(b"/proc"):
            self.opened += 1


def main() -> None:
    """Start sleeping tasks, count, and end them."""
    number = int(sys.argv[1])
    attempts = tuple(AttemptId(TaskId(SystemId("x"), Epoch(1), each), 1) for each in range(number))
    with tempfile.TemporaryDirectory() as folder:
        runner = _runner(Path(folder))
        for attempt in attempts:
            runner.apply(_start(attempt, places=number))
        while runner.wake_at == 0:
            _turn(runner)
        for attempt in attempts:
            runner.apply(Suspend(attempt=attempt))
        while runner.wake_at == 0:
            _turn(runner)
        counting = Counting()
        sys.addaudithook(counting.hear)
        sys.stdout.write(json.dumps([_looked(runner, counting), _weighed(runner, counting, attempts)]))
        runner.end_all()
        while not runner.is_idle:
            _turn(runner)


def _runner(folder: Path) -> Runner:
    (folder / "tasks").mkdir()
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    spawner = Spawner(user="x", path=os.environ["PATH"], nothing=nothing)
    pool, journal = Pool(folder / "tasks"), Journal(folder)
    runner = Runner(pool=pool, journal=journal, spawner=spawner, children=Children(), boot=boot_id())
    runner.recover()
    return runner


def _start(attempt: AttemptId, *, places: int) -> Start:
    claim = ClaimId(SystemId("x"), Epoch(1), 1)
    until = boottime_ns() + 3600 * _SECOND_NS
    return Start(
        attempt=attempt, claim=claim, argv=("sleep", "600"), env=(), places=places, limit_ns=None, lease_until=until
    )


def _turn(runner: Runner) -> None:
    runner.reap()
    runner.enforce()
    runner.settle()


def _looked(runner: Runner, counting: Counting) -> list[int]:
    """Let all be due that were looked at just now."""
    due = boottime_ns() + _SECOND_NS
    while (left_ns := due - boottime_ns()) > 0:
        select.select([], [], [], left_ns / _SECOND_NS)
    counts = []
    while runner.wake_at <= boottime_ns():
        before = counting.opened
        _turn(runner)
        counts.append(counting.opened - before)
    return counts


def _weighed(runner: Runner, counting: Counting, attempts: tuple[AttemptId, ...]) -> list[int]:
    runner.reports.clear()
    counts, before = [], counting.opened
    runner.apply(Weigh(attempts=attempts))
    while not any(isinstance(report, Weighed) for report in runner.reports):
        _turn(runner)
        counts.append(counting.opened - before)
        before = counting.opened
    return counts or [counting.opened - before]


if __name__ == "__main__":
    main()
