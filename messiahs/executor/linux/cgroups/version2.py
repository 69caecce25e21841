"""A control group of version 2: one folder, whose files depend on the controllers that were delegated."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from messiahs.executor.linux.cgroups.contract import KEPT_BYTES, GroupLimits, GroupUsage, Result, limits_above
from messiahs.executor.linux.cgroups.files import GroupFile, remove_folder

CONTROLLERS: Final = ("memory", "pids", "cpu")
_PERIOD_US: Final = 100_000
_WEIGHT: Final = 100
_HIGHEST_WEIGHT: Final = 10_000
_MICROSECOND_NS: Final = 1000


def controllers_in(folder: str) -> set[str]:
    """Return the controllers that limit tasks, as far as a folder has them."""
    file = GroupFile(f"{folder}/cgroup.controllers", os.O_RDONLY)
    try:
        return set(CONTROLLERS) & set(file.read().split()) if file else set()
    finally:
        file.close()


def enable(folder: str) -> None:
    """Let the groups below a folder have every controller that it has. Raises `OSError`."""
    for controller in sorted(controllers_in(folder)):
        file = GroupFile(f"{folder}/cgroup.subtree_control", os.O_WRONLY)
        try:
            file.write(f"+{controller}")
        finally:
            file.close()


class GroupV2:
    """A group in a folder, which is created if it is missing; with `divides` there are groups below it (mutable)."""

    def __init__(self, folder: str, *, divides: bool = False) -> None:
        self._folder = folder
        self._files: list[GroupFile] = []
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - a name from the kernel
        if divides:
            enable(folder)
        self._memory = self._file("memory.max")
        self._swap = self._file("memory.swap.max")
        self._peak = self._file("memory.peak", os.O_RDWR)
        if not self._peak:
            self._peak = self._file("memory.peak", os.O_RDONLY)
        self._usage = self._file("memory.current", os.O_RDONLY)
        self._swap_usage = self._file("memory.swap.current", os.O_RDONLY)
        self._events = self._file("memory.events", os.O_RDONLY)
        self._cpu = self._file("cpu.stat", os.O_RDONLY)
        self._quota = self._file("cpu.max")
        self._weight = self._file("cpu.weight")
        self._processes = self._file("pids.max")
        self._killer = self._file("cgroup.kill", os.O_WRONLY)
        self._state = self._file("cgroup.events", os.O_RDONLY)
        self._door = self._file("cgroup.procs")
        self._file("memory.oom.group").write("1")
        self._cpu_us = self._kills = self._peak_bytes = self._before_bytes = 0

    @property
    def limits(self) -> str:
        """The words for the files that exist."""
        words: Mapping[str, GroupFile] = {
            "memory": self._memory,
            "processes": self._processes,
            "processors": self._quota,
        }
        return ", ".join(word for word, file in words.items() if file)

    @property
    def entries(self) -> tuple[str, ...]:
        """The one file."""
        return (f"{self._folder}/cgroup.procs",)

    def enter(self) -> None:
        """Enter the group; that takes milliseconds."""
        self._door.write("0")

    @property
    def has_inside(self) -> bool:
        """All threads of a process are in one group."""
        return False

    def inside(self, call: Callable[[], Result]) -> Result:
        """Raise: processes enter by themselves."""
        raise NotImplementedError

    def begin(self, limits: GroupLimits) -> None:
        """Write the limits, and note the counters, which cannot be reset."""
        self._before_bytes = min(self._usage.number() or 0, KEPT_BYTES)
        limits = limits_above(limits, self._before_bytes)
        self._memory.write("max" if limits.memory_bytes is None else str(limits.memory_bytes))
        # What a task may not have in memory would otherwise fill the swap space of all.
        self._swap.write("max" if limits.memory_bytes is None else "0")
        count = limits.processors
        self._quota.write(f"max {_PERIOD_US}" if count is None else f"{count * _PERIOD_US} {_PERIOD_US}")
        self._weight.write(str(min(_HIGHEST_WEIGHT, _WEIGHT * (count or 1))))
        self._processes.write("max" if limits.processes is None else str(limits.processes + 1))
        with suppress(OSError):
            # Since Linux 6.12 this resets the peak for this open file.
            self._peak.write("reset")
        self._peak_bytes = self._peak.number() or 0
        self._cpu_us = self._cpu.entry("usage_usec") or 0
        self._kills = self._events.entry("oom_kill") or 0

    def used(self) -> GroupUsage:
        """Return the differences; a peak that is not above that of an earlier attempt is not known."""
        cpu_us, peak_bytes = self._cpu.entry("usage_usec"), self._peak.number()
        return GroupUsage(
            None if cpu_us is None else (cpu_us - self._cpu_us) * _MICROSECOND_NS,
            None if peak_bytes is None or peak_bytes <= self._peak_bytes else peak_bytes - self._before_bytes,
            (self._events.entry("oom_kill") or 0) - self._kills,
        )

    def left_bytes(self) -> int:
        """Read two counters."""
        return (self._usage.number() or 0) + (self._swap_usage.number() or 0)

    def kill(self) -> bool:
        """Let the kernel kill all processes at once."""
        self._killer.write("1")
        return not self._state.entry("populated")

    def close(self) -> bool:
        """Remove the folder."""
        for file in self._files:
            file.close()
        return remove_folder(self._folder)

    def _file(self, name: str, flags: int = os.O_RDWR) -> GroupFile:
        file = GroupFile(f"{self._folder}/{name}", flags)
        self._files.append(file)
        return file
