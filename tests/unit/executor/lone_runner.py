"""`python -m tests.unit.executor.lone_runner NUMBER`: what a runner reads of /proc, turn by turn, for so many attempts.

Prints two lists of numbers of opened files, one number for each turn: of the turns that look at all suspended attempts
once, and of those that weigh them all. A process of its own, because a runner reaps every child of its process.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from messiahs.core.model.ids import AttemptId
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.protocol.frames import MeasureMemory, MemoryMeasured, Suspend
from messiahs.executor.starter.runner import Runner
from tests.unit.executor.runner_rig import SECOND_NS, attempt_of, make_runner, start_of, turn
from tests.waiting import eventually


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
    attempts = tuple(map(attempt_of, range(number)))
    with tempfile.TemporaryDirectory() as folder:
        runner = make_runner(Path(folder))
        for attempt in attempts:
            runner.apply(start_of(attempt, "sleep", "600", places=number))
        while runner.wake_at == 0:
            turn(runner)
        for attempt in attempts:
            runner.apply(Suspend(attempt=attempt))
        while runner.wake_at == 0:
            turn(runner)
        counting = Counting()
        sys.addaudithook(counting.hear)
        sys.stdout.write(json.dumps([_looked(runner, counting), _weighed(runner, counting, attempts)]))
        runner.end_all()
        while not runner.is_idle:
            turn(runner)


def _looked(runner: Runner, counting: Counting) -> list[int]:
    """Let all be due that were looked at just now."""
    due = boottime_ns() + SECOND_NS
    eventually(lambda: boottime_ns() >= due)
    counts = []
    while runner.wake_at <= boottime_ns():
        before = counting.opened
        turn(runner)
        counts.append(counting.opened - before)
    return counts


def _weighed(runner: Runner, counting: Counting, attempts: tuple[AttemptId, ...]) -> list[int]:
    runner.reports.clear()
    counts, before = [], counting.opened
    runner.apply(MeasureMemory(attempts=attempts))
    while not any(isinstance(report, MemoryMeasured) for report in runner.reports):
        turn(runner)
        counts.append(counting.opened - before)
        before = counting.opened
    return counts or [counting.opened - before]


if __name__ == "__main__":
    main()
