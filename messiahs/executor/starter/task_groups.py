"""The control group of each attempt, with the limits of its task.

Groups are kept and used again: to create one costs milliseconds, and processes are born into one that exists. They are
below one group of the starter, so that all tasks together leave a part of the memory to everything else.

Memory that outlives a task, as files in `/dev/shm` do, stays charged to its group. A group with more than a little of
it is removed; the kernel keeps the charge in the group around it, and forgets the group with the last of that memory.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from heapq import heappop, heappush
from typing import Final

from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.task_limits import TaskLimits
from messiahs.core.model.usage import Usage
from messiahs.executor.attempts import Held
from messiahs.executor.linux.cgroups.contract import KEPT_BYTES, Group, GroupLimits
from messiahs.executor.linux.cgroups.finding import Place
from messiahs.executor.linux.cgroups.version1 import GroupV1
from messiahs.executor.linux.cgroups.version2 import GroupV2

_PROCESSES: Final = 2048
"""Limit of the processes and threads of a task for each of its processors."""
_LEFT: Final = 20
"""One part in so many of the memory is left to everything that is no task."""
_NEAR: Final = 8
"""A task that the kernel killed has reached its limit if it had all of it but one part in so many."""
_LEAVING: Final = 64
"""Groups to remove later; beyond that, the oldest is removed when the module stops."""
_MIB: Final = 1 << 20
_WANTED: Final = ("memory", "processors", "processes")


class TaskGroups:
    """Groups in `place`, by numbers, below one named `stem` (mutable).

    Where there is no place, or the first group cannot be created, no attempt has a group, and `degraded` says why.
    """

    def __init__(
        self, place: Place, stem: str = "messiahs", *, capabilities: AbstractContextManager[object] | None = None
    ) -> None:
        self._place, self._stem = place, stem
        self._capabilities: AbstractContextManager[object] = nullcontext() if capabilities is None else capabilities
        self._groups: dict[int, Group] = {}
        self._free: list[int] = []
        self._last = 0
        """The highest number of a group that attempts without a sandbox had."""
        self._leaving: list[Group] = []
        """Groups that are not used again and could not be removed yet."""
        self._numbers: dict[AttemptId, int] = {}
        self._limits: dict[AttemptId, GroupLimits] = {}
        self._all: Group | None = None
        self.degraded = place.problem
        """Why tasks are limited less than elsewhere; empty if they are not."""
        if not self.degraded:
            self._begin()

    @property
    def limits(self) -> str:
        """What is limited, in words; empty: nothing."""
        return "" if self._all is None else self._all.limits

    def entries(self, number: int) -> tuple[str, ...]:
        """Return the files into which the first process of a sandbox writes `0` to enter its group.

        The group is a new one, if no process is in the one of before: memory that a task handed out stays charged to
        its group, and would count for the next task. None where there are no groups. Raises `OSError`.
        """
        if self._all is None:
            return ()
        if number in self._groups:
            with self._capabilities:
                self._groups.pop(number).close()
        return self._numbered(number).entries

    def begin(self, held: Held) -> Group | None:
        """Return the group of an attempt that starts, with its limits: that of its sandbox, or a free one.

        None where there are no groups. Raises `OSError` if the limits cannot be set.
        """
        if self._all is None or held.start is None:
            return None
        limits = _group_limits(held.start.limits)
        number = held.slot
        if number >= 0:
            self._numbered(number).begin(limits)
        else:
            number = self._begun(limits)
        self._numbers[held.attempt], self._limits[held.attempt] = number, limits
        return self._groups[number]

    def kill(self, held: Held) -> bool:
        """Kill whatever is in the group of an attempt; return whether nothing is.

        A sandbox kills its processes itself, and its first one stays.
        """
        number = self._numbers.get(held.attempt)
        return number is None or held.slot >= 0 or self._groups[number].kill()

    def end(self, held: Held, text: str = "") -> str:
        """Note what an attempt used of which no process remains, and release its group.

        Return the text for its end, after `text`. The cause of an attempt that failed after the kernel had killed one
        of its processes for its memory is the limit.
        """
        number = self._numbers.get(held.attempt)
        if number is None:
            return text
        used, limits = self._groups[number].used(), self._limits[held.attempt]
        if not self.kill(held):
            # A process that cannot die keeps its group, which no other attempt gets.
            del self._numbers[held.attempt]
        self.release(held)
        usage = held.usage or Usage()
        held.usage = replace(
            usage,
            cpu_ns=usage.cpu_ns if used.cpu_ns is None else used.cpu_ns,
            peak_memory_bytes=usage.peak_memory_bytes if used.peak_memory_bytes is None else used.peak_memory_bytes,
        )
        has_failed = held.exit_code != 0 or held.signal is not None
        # A sandbox whose first process was killed is lost.
        if used.memory_kills > 0 and has_failed and held.cause in (Cause.NONE, Cause.LOST):
            held.cause = Cause.MEMORY_LIMIT
            is_of_site = held.start is not None and "mem" in held.start.limits.of_site
            limit = _memory_text(limits.memory_bytes, used.peak_memory_bytes, is_of_site=is_of_site)
            return "; ".join(filter(None, (text, limit)))
        return text

    def release(self, held: Held) -> None:
        """Let another attempt have the group of one that used nothing, or has ended; nothing happens without one."""
        number = self._numbers.pop(held.attempt, None)
        self._limits.pop(held.attempt, None)
        if number is not None and held.slot < 0:
            self._put_back(number)

    def close(self) -> None:
        """Remove the groups, as far as they are empty."""
        with self._capabilities:
            for group in (*self._groups.values(), *self._leaving):
                group.close()
            if self._all is not None:
                self._all.close()

    def _begin(self) -> None:
        try:
            with self._capabilities:
                self._take_over()
                group = self._group(self._stem)
                group.begin(GroupLimits(memory_bytes=_memory_of_all()))
            self._all = group
            numbers = {0, *self._left()}
            self._last = max(numbers)
            for number in numbers:
                self._numbered(number)
                self._put_back(number)
        except OSError as error:
            self._all, self.degraded = None, f"no control groups: {error}"
            return
        missing = [word for word in _WANTED if word not in self.limits.split(", ")]
        if missing:
            self.degraded = f"control groups do not limit {', '.join(missing)} here"

    def _begun(self, limits: GroupLimits) -> int:
        """Return the number of a free group that has these limits now. Raises `OSError`."""
        while self._free:
            number = heappop(self._free)
            try:
                self._groups[number].begin(limits)
            except OSError:
                # A new group may do what this one does not, for example if its folder was removed.
                self._remove(number)
            else:
                return number
        number = self._last + 1
        self._numbered(number).begin(limits)
        self._last = number
        return number

    def _put_back(self, number: int) -> None:
        """Let another attempt have a group, unless much memory is still charged to it."""
        if self._groups[number].left_bytes() > KEPT_BYTES:
            self._remove(number)
        else:
            heappush(self._free, number)

    def _remove(self, number: int) -> None:
        """Remove a group, with others for which it was too early."""
        groups = (*self._leaving, self._groups.pop(number))
        with self._capabilities:
            self._leaving = [group for group in groups if not group.close()][-_LEAVING:]

    def _numbered(self, number: int) -> Group:
        if number not in self._groups:
            with self._capabilities:
                group = self._groups[number] = self._group(f"{self._stem}/{number}")
            # An earlier starter may have left processes in it.
            group.kill()
            group.begin(GroupLimits())
        return self._groups[number]

    def _left(self) -> list[int]:
        """Return the numbers of the groups that an earlier starter left."""
        (folder, *_) = self._folders
        return [int(name) for name in os.listdir(f"{folder}/{self._stem}") if name.isdecimal()]  # noqa: PTH208 - strings

    def _take_over(self) -> None:
        """Own the groups that an earlier starter left: it had another account if its tasks were contained differently.

        Raises `OSError`.
        """
        own = os.geteuid(), os.getegid()
        for parent in self._folders:
            for folder, _, files in os.walk(f"{parent}/{self._stem}"):
                if os.stat(folder).st_uid != own[0]:  # noqa: PTH116 - strings
                    # The folder comes last: a starter that dies in between is followed by one that begins here again.
                    for path in (*(f"{folder}/{file}" for file in files), folder):
                        os.chown(path, *own)

    @property
    def _folders(self) -> tuple[str, ...]:
        """The place, in each hierarchy."""
        return (self._place.version2,) if self._place.version2 else tuple(dict.fromkeys(self._place.version1.values()))

    def _group(self, name: str) -> Group:
        if self._place.version2:
            return GroupV2(f"{self._place.version2}/{name}", divides=name == self._stem)
        return GroupV1({controller: f"{folder}/{name}" for controller, folder in self._place.version1.items()})


def _group_limits(limits: TaskLimits) -> GroupLimits:
    return GroupLimits(
        memory_bytes=limits.memory_bytes,
        processors=limits.processors,
        processes=_PROCESSES * limits.processors,
    )


def _memory_of_all() -> int:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return total - total // _LEFT


def _memory_text(limit_bytes: int | None, peak_bytes: int | None, *, is_of_site: bool) -> str:
    peak = "" if peak_bytes is None else f"; its peak was {peak_bytes / _MIB:.1f} MiB"
    if limit_bytes is None:
        return f"the memory for tasks was exhausted{peak}: state what it needs with --mem SIZE"
    limit = f"{limit_bytes / _MIB:.1f} MiB"
    if peak_bytes is not None and peak_bytes < limit_bytes - limit_bytes // _NEAR:
        return f"the memory for all tasks of the machine was exhausted{peak}, below its limit of {limit}"
    if is_of_site:
        text = f"the task reached what this machine gives to one that states nothing, {limit} of memory"
        return f"{text}{peak}: state what it needs with --mem SIZE"
    return f"the task reached its memory limit of {limit}{peak}: raise it with --mem SIZE"
