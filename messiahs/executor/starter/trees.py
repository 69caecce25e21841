"""The processes of one attempt: finding all of them, stopping them, letting them go on, and what memory they use.

A task's first process leads a group, and what it starts stays below it or, orphaned, becomes a child of the starter. So
whatever of it left the group is found below the first process, or below an orphan that shows the attempt's folder.
"""

import os
import signal
import time
from collections.abc import Container, Iterator
from contextlib import suppress

from messiahs.executor.starter.groups import signal_group
from messiahs.executor.starter.strays import Children, belongs_to, own_number

_PASSES = 100
_PAUSE_SECONDS = 0.0005
_AWAKE = frozenset((b"R", b"S"))
_AT_REST = frozenset((b"T", b"t", b"Z", b"X"))
"""Letters of processes that were stopped, or have ended."""
_READ_BYTES = 1 << 16
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Trees:
    """Looks at processes below the starter; `prefix` is what the folders of all attempts begin with."""

    def __init__(self, children: Children, prefix: bytes) -> None:
        self._children, self._prefix = children, prefix

    def stop(self, leader: int, folder: str) -> None:
        """Stop everything of an attempt; whatever was being started meanwhile is stopped too.

        A process that sleeps where no signal wakes it stops when it wakes.
        """
        signal_group(leader, signal.SIGSTOP)
        for _ in range(_PASSES):
            states = {process: _state_of(name) for name, process in self._members(leader, folder)}
            for process, state in states.items():
                if state not in _AT_REST:
                    with suppress(OSError):
                        os.kill(process, signal.SIGSTOP)
            if not _AWAKE.intersection(states.values()):
                return
            # What was told to stop has done so before it is asked again; only its children can be news.
            time.sleep(_PAUSE_SECONDS)

    def go_on(self, leader: int, folder: str) -> None:
        """Let everything of an attempt go on."""
        members = list(self._members(leader, folder))
        signal_group(leader, signal.SIGCONT)
        for _, process in members:
            with suppress(OSError):
                os.kill(process, signal.SIGCONT)

    def memory_bytes(self, leader: int, folder: str) -> int:
        """Sum up the resident memory of everything of an attempt; what several processes share counts for each."""
        return sum(_resident_bytes(name) for name, _ in self._members(leader, folder))

    def end_strays(self, running: Container[int], folders: Container[str], remover: int, /) -> set[str]:
        """Kill what attempts that are over have left; name the folders of those that had something left.

        `running` are the first processes of attempts that are not over, and `folders` their folders.
        """
        left: set[str] = set()
        for name in self._children.listed():
            process = own_number(name)
            if process in running or process in (0, remover):
                continue
            folder = belongs_to(name, self._prefix)
            # One that shows no folder may be anyone's: it is ended when nobody runs.
            if bool(running) if folder is None else os.fsdecode(folder) in folders:
                continue
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
            if folder is not None:
                left.add(os.fsdecode(folder))
        return left

    def _members(self, leader: int, folder: str) -> Iterator[tuple[bytes, int]]:
        """Give every living process of an attempt, by its number in /proc and by the starter's own."""
        waiting: list[bytes] = []
        for name in self._children.listed():
            number = own_number(name)
            if number == leader or (number and belongs_to(name, self._prefix) == os.fsencode(folder)):
                waiting.append(name)
        seen: set[bytes] = set()
        while waiting:
            name = waiting.pop()
            number = own_number(name)
            if name in seen or not number:
                continue
            seen.add(name)
            yield name, number
            waiting.extend(_children_of(name))


def _children_of(name: bytes) -> list[bytes]:
    """Name the children of all threads of a process."""
    found: list[bytes] = []
    try:
        for thread in os.listdir(b"/proc/%s/task" % name):  # noqa: PTH208 - names, not paths
            with open(b"/proc/%s/task/%s/children" % (name, thread), "rb") as file:  # noqa: PTH123 - as above
                found += file.read().split()
    except OSError:
        pass
    return found


def _state_of(name: bytes) -> bytes:
    """Give the letter for what a process does; `X` if it is gone."""
    try:
        with open(b"/proc/%s/stat" % name, "rb") as file:  # noqa: PTH123 - no path
            text = file.read(_READ_BYTES)
    except OSError:
        return b"X"
    if b")" not in text:
        return b"X"
    # The program's name stands in parentheses and may hold anything, also parentheses and blanks.
    return text[text.rindex(b")") + 2 :][:1]


def _resident_bytes(name: bytes) -> int:
    try:
        with open(b"/proc/%s/statm" % name, "rb") as file:  # noqa: PTH123 - no path
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0
