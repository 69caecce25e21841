"""A control group of version 1: one folder in each hierarchy, and a thread of this process that is in the group.

The kernel lets every thread be in a group of its own, and a process is born into the group of the thread that starts
it. Moving a process later would take milliseconds.
"""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from messiahs.executor.linux.cgroups.contract import KEPT_BYTES, GroupLimits, GroupUsage, Result, limits_above
from messiahs.executor.linux.cgroups.files import GroupFile, remove_folder

CONTROLLERS: Final = ("memory", "pids", "cpu", "cpuacct")
"""The hierarchies that are used, as far as they exist."""
_WORDS: Final[Mapping[str, str]] = {"memory": "memory", "pids": "processes", "cpu": "processors"}
_PERIOD_US: Final = 100_000
_SHARES: Final = 1024
_UNLIMITED: Final = "-1"


class GroupV1:
    """A group whose folders are given by their controllers (mutable); those that are missing are created."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = dict(folders)
        self._files: list[GroupFile] = []
        for folder in set(folders.values()):
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - names from the kernel
        self._memory = self._file("memory", "memory.limit_in_bytes")
        self._memory_and_swap = self._file("memory", "memory.memsw.limit_in_bytes")
        self._peak = self._file("memory", "memory.max_usage_in_bytes")
        self._usage = self._file("memory", "memory.memsw.usage_in_bytes", os.O_RDONLY)
        if not self._usage:
            self._usage = self._file("memory", "memory.usage_in_bytes", os.O_RDONLY)
        self._oom = self._file("memory", "memory.oom_control", os.O_RDONLY)
        self._cpu = self._file("cpuacct", "cpuacct.usage")
        self._quota = self._file("cpu", "cpu.cfs_quota_us")
        self._shares = self._file("cpu", "cpu.shares")
        self._processes = self._file("pids", "pids.max")
        self._limits: GroupLimits | None = None
        """What the files say; None: not known."""
        self._kills = self._before_bytes = 0
        self._thread: _ThreadInside | None = None
        self._doors = [self._file(controller, "cgroup.procs") for controller in self._separate()]
        self._thread_doors = [self._file(controller, "tasks") for controller in self._separate()]

    @property
    def limits(self) -> str:
        """The words of its controllers."""
        return ", ".join(word for controller, word in _WORDS.items() if controller in self._folders)

    @property
    def entries(self) -> tuple[str, ...]:
        """One file in each hierarchy."""
        return tuple(f"{folder}/cgroup.procs" for folder in dict.fromkeys(self._folders.values()))

    def enter(self) -> None:
        """Enter each hierarchy; that takes milliseconds."""
        for door in self._doors:
            door.write("0")

    @property
    def has_inside(self) -> bool:
        """Threads can be in groups of their own."""
        return True

    def inside(self, call: Callable[[], Result]) -> Result:
        """Let a thread that is in the group make the call, while this one waits."""
        if self._thread is None:
            self._thread = _ThreadInside(self._thread_doors)
        return self._thread.call(call)

    def begin(self, limits: GroupLimits) -> None:
        """Write what has changed, and reset the counters."""
        known, self._limits = self._limits, None
        self._before_bytes = min(self.left_bytes(), KEPT_BYTES)
        limits = limits_above(limits, self._before_bytes)
        if known is None or limits.memory_bytes != known.memory_bytes:
            size = _UNLIMITED if limits.memory_bytes is None else str(limits.memory_bytes)
            # The limit with swap is never below the one without.
            self._memory_and_swap.write(_UNLIMITED)
            self._memory.write(size)
            self._memory_and_swap.write(size)
        count = limits.processors
        if known is None or count != known.processors:
            # The kernel reckons the share of every processor anew, which takes longer than all other files.
            self._quota.write(_UNLIMITED if count is None else str(count * _PERIOD_US))
            self._shares.write(str(_SHARES * (count or 1)))
        if known is None or limits.processes != known.processes:
            # The thread in the group, or the first process of a sandbox, counts as one.
            self._processes.write("max" if limits.processes is None else str(limits.processes + 1))
        self._limits = limits
        self._peak.write("0")
        self._cpu.write("0")
        self._kills = self._oom.entry("oom_kill") or 0

    def used(self) -> GroupUsage:
        """Read the counters."""
        kills, peak = (self._oom.entry("oom_kill") or 0) - self._kills, self._peak.number()
        return GroupUsage(self._cpu.number(), None if peak is None else max(0, peak - self._before_bytes), kills)

    def left_bytes(self) -> int:
        """Read one counter."""
        return self._usage.number() or 0

    def kill(self) -> bool:
        """Forbid new processes, then kill those that there are, so that none escapes between two looks."""
        self._limits = None
        self._processes.write("0")
        # Processes that have used up their time could not end before they get more.
        self._quota.write(_UNLIMITED)
        members = self._members()
        for number in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        return not members

    def _members(self) -> list[int]:
        """Return the processes in the group, without this one, as this one numbers them. Raises `OSError`."""
        # An open file may show a list of up to a second ago.
        file = GroupFile(self.entries[0], os.O_RDONLY)
        try:
            return [number for number in map(int, file.read().split()) if number not in (0, os.getpid())]
        finally:
            file.close()

    def close(self) -> bool:
        """End the thread, and remove the folders: the kernel lets the thread leave them a moment later."""
        if self._thread is not None:
            self._thread.end()
            self._thread = None
        for file in self._files:
            file.close()
        left = [folder for folder in dict.fromkeys(self._folders.values()) if not remove_folder(folder)]
        return not left

    def _separate(self) -> list[str]:
        """Return one controller of each hierarchy, which may have several."""
        return list({folder: controller for controller, folder in self._folders.items()}.values())

    def _file(self, controller: str, name: str, flags: int = os.O_RDWR) -> GroupFile:
        file = GroupFile(f"{self._folders[controller]}/{name}" if controller in self._folders else "", flags)
        self._files.append(file)
        return file


class _ThreadInside:
    """A thread that is in a group, and makes calls for another one, one at a time (mutable)."""

    def __init__(self, doors: list[GroupFile]) -> None:
        self._doors = doors
        self._asked, self._answered = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._answered.acquire()
        self._call: Callable[[], object] | None = None
        self._result: object = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="group", daemon=True)
        self._call = self._enter
        self._thread.start()
        self._answered.acquire()
        if self._error is not None:
            raise self._error

    def call(self, call: Callable[[], Result]) -> Result:
        self._call, self._error = call, None
        self._asked.release()
        self._answered.acquire()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # it is that of this call

    def end(self) -> None:
        self._call = None
        self._asked.release()
        self._thread.join()

    def _enter(self) -> None:
        for door in self._doors:
            door.write(str(threading.get_native_id()))

    def _run(self) -> None:
        while self._call is not None:
            try:
                self._result = self._call()
            except BaseException as error:  # noqa: BLE001 - raised in the thread that called
                self._error = error
            self._answered.release()
            self._asked.acquire()
