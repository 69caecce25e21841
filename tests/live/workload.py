"""A load that checks itself: tasks write their number to a file, and notice when two attempts run at once."""

import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from messiahs.daemon.process.pid_files import recorded_process
from messiahs.executor.linux.processes import ProcessIdentity, is_alive, kill
from tests.live.conftest import Federation
from tests.waiting import eventually, let_pass

PATIENCE_SECONDS = 300.0
HARMLESS = {"bound", "route", "refused", "finished"}
"""Refused: bound by an origin that was away for seconds, to places that were granted to others; it never ran.

Route: its bytes took another way than the straight one.
"""
_SEED = "MESSIAHS_CHAOS_SEED"
_SCRIPT = """
exec 9>>"$0/locks/$MESSIAHS_ARRAY_INDEX"
flock -n 9 || echo "$MESSIAHS_ARRAY_INDEX $MESSIAHS_ATTEMPT" >>"$0/doubles"
sleep 0.03
echo "$MESSIAHS_ARRAY_INDEX $MESSIAHS_ATTEMPT" >>"$0/numbers"
sleep 0.02
"""
"""The kernel releases the lock when the last process of the attempt is dead, and not before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """An array of tasks, each of which writes its number and its attempt to a file while it holds a lock."""

    folder: Path
    """A folder that any account can write to."""
    tasks: int

    def command(self) -> tuple[str, ...]:
        """Return the command of every task; it reads its number and its attempt from the environment."""
        locks = self.folder / "locks"
        locks.mkdir(exist_ok=True)
        return ("sh", "-c", _SCRIPT, str(self.folder))

    def submit(self, federation: Federation) -> str:
        """Submit the array and return its id."""
        return federation.submit("--array", f"1-{self.tasks}", "--", *self.command())

    def written(self) -> list[tuple[int, int]]:
        """Return the numbers that were written, each with its attempt, in order."""
        return _pairs(self.folder / "numbers")

    def doubles(self) -> list[tuple[int, int]]:
        """Return the numbers of tasks of which two attempts ran at once."""
        return _pairs(self.folder / "doubles")

    def times_written(self) -> Counter[int]:
        """Return how often each number was written."""
        return Counter(number for number, _ in self.written())


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Strikes at random moments of a load; one seed gives one plan, counted in written numbers instead of seconds."""

    workload: Workload
    dice: random.Random

    def rage(self, blow: Callable[[], None], *, times: int, waiting: "subprocess.Popen[str]") -> None:
        """Strike `times` times while the load makes progress, sometimes twice in quick succession."""
        highest = self.workload.tasks * 9 // 10
        moments = sorted(self.dice.randrange(1, highest) for _ in range(times))
        for moment in moments:
            eventually(lambda moment=moment: len(self.workload.written()) >= moment)  # type: ignore[misc]
            # At a random moment after the write, not only right after it.
            let_pass(self.dice.uniform(0, 0.1))
            assert waiting.poll() is None, f"the load was over before the storm: {waiting.communicate()}"
            blow()


def what_befell(federation: Federation, array: str) -> set[str]:
    """Return all events in the histories of an array's members."""
    members = federation.members(array)
    return {step["event"] for member in members for step in member["history"]}


def kill_process(federation: Federation, module: str, *, process: str) -> ProcessIdentity | None:
    """Kill -9 the daemon or starter of a module, if it is running, and return which process that was."""
    identity = recorded_process(federation.folder(module) / f"{process}.pid")
    if identity is not None:
        kill(identity)
    return identity


def kill_machine(federation: Federation, module: str) -> None:
    """Kill a daemon and its starter, and so its tasks, like the loss of a machine."""
    kill_process(federation, module, process="daemon")
    starter = kill_process(federation, module, process="starter")
    if starter is not None:
        eventually(lambda: not is_alive(starter))


@contextmanager
def seeded(default: int) -> Iterator[random.Random]:
    """Return a random generator; a failure prints its seed."""
    seed = int(os.environ.get(_SEED, default))
    try:
        yield random.Random(seed)
    except BaseException:
        print(f"the dice of this run: {_SEED}={seed}")  # noqa: T201 - pytest shows it with the failure
        raise


def _pairs(file: Path) -> list[tuple[int, int]]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(number), int(attempt)) for number, attempt in (line.split() for line in lines)]
