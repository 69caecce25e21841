"""The use of processes so far, as counted by the kernel (Linux, /proc)."""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The use of one process since its start: all its threads, and the children that it has waited for."""

    cpu_seconds: float
    children_cpu_seconds: float
    wakeups: Counter[str]
    """How often threads went to sleep of their own accord, and so were woken, by the names of threads."""

    def since(self, before: "Usage") -> "Usage":
        """Return the use since an earlier measurement."""
        return Usage(
            cpu_seconds=self.cpu_seconds - before.cpu_seconds,
            children_cpu_seconds=self.children_cpu_seconds - before.children_cpu_seconds,
            wakeups=self.wakeups - before.wakeups,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The memory of a process; `proportional_bytes` divides shared memory by the number of processes that share it."""

    own_bytes: int
    """Memory without a file: heaps and stacks."""
    file_bytes: int
    """Programs and libraries, which other processes may have mapped as well."""
    proportional_bytes: int

    @property
    def resident_bytes(self) -> int:
        """Return the RSS as tools show it."""
        return self.own_bytes + self.file_bytes


def usage_of(pid: int) -> Usage:
    """Read the use of a process."""
    # The second field is the name of the program, in parentheses, and may hold anything.
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    user, system, children_user, children_system = map(int, fields[11:15])
    scheduled_seconds, wakeups = _of_threads(pid)
    return Usage(
        # Ticks are coarser, and include threads that have ended.
        cpu_seconds=max(scheduled_seconds, (user + system) / _TICKS),
        children_cpu_seconds=(children_user + children_system) / _TICKS,
        wakeups=wakeups,
    )


def memory_of(pid: int) -> Memory:
    """Read the memory of a process."""
    status = _amounts((_PROC / str(pid) / "status").read_text())
    mapped = _amounts((_PROC / str(pid) / "smaps_rollup").read_text())
    return Memory(
        own_bytes=1024 * status["RssAnon"],
        file_bytes=1024 * (status["RssFile"] + status["RssShmem"]),
        proportional_bytes=1024 * mapped["Pss"],
    )


def _of_threads(pid: int) -> tuple[float, Counter[str]]:
    """Return the seconds on a processor (0.0 where the kernel does not count them by the nanosecond), and wake-ups.

    Threads that have ended are in neither.
    """
    nanoseconds, wakeups = 0, Counter[str]()
    for thread in (_PROC / str(pid) / "task").iterdir():
        schedule = thread / "schedstat"
        try:
            scheduled = int(schedule.read_text().split()[0]) if schedule.exists() else 0
            lines = (thread / "status").read_text().splitlines()
            name = (thread / "comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            # It has ended since it was listed.
            continue
        nanoseconds += scheduled
        wakeups[name] += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return nanoseconds / 1e9, wakeups


def _amounts(text: str) -> dict[str, int]:
    """Read lines like `Pss:  1234 kB`, and leave out others."""
    words = (line.split() for line in text.splitlines() if line.endswith(" kB"))
    return {name.rstrip(":"): int(amount) for name, amount, _ in words}
