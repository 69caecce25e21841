"""The processes of each attempt: finding, stopping and resuming them, and their memory use.

A task's first process leads a group. Processes that it starts stay below it or, orphaned, become children of the
starter. There they have the mark of their attempt. A process that changed its mark is recognised because it was seen
below its attempt, by the folder that it shows, or by its group; if none of these helps, it may belong to any attempt.
"""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial

from messiahs.executor.attempts import Held
from messiahs.executor.linux.processes import Standing, signal_if, standing_of
from messiahs.executor.linux.strays import Child, Children, belongs_to
from messiahs.executor.protocol.layout import ATTEMPTS
from messiahs.executor.starter.attempt_marks import Marks
from messiahs.executor.starter.attempts_of_processes import NOBODYS, ProcessOwners, Seen
from messiahs.executor.starter.pool import Pool

PER_STEP = 32
"""Maximum number of attempts in one step; everything else waits meanwhile."""
_AWAKE = frozenset((b"R", b"S"))
_STOPPED = frozenset((b"T", b"t"))
_ENDED = frozenset((b"Z", b"X"))
"""Letters of the states of threads, and of a process: those of its first thread."""
_PASSES = 8
"""How often the descendants of a process are searched for new ones at most."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

Roots = Mapping[str, list[tuple[bytes, int]]]
"""By folder, where the search for an attempt's processes begins: numbers in /proc and start times."""


class ProcessTrees:
    """Finds processes below the starter; `leaders` are the first processes of attempts, by their numbers there."""

    def __init__(self, children: Children, pool: Pool, leaders: Mapping[int, Held]) -> None:
        self._children, self._pool, self._leaders = children, pool, leaders
        self._prefix = os.fsencode(f"{pool.root}/{ATTEMPTS}/")
        self._owners = ProcessOwners()
        self._marks = Marks()
        self.degraded = self._marks.degraded
        """Why processes that hide their attempts are recognised later than elsewhere; empty if they are not."""

    def begin(self, folder: str) -> None:
        """Mark processes that are started next as of this attempt."""
        self._marks.put_on(folder)

    def roots(self) -> Roots:
        """Assign all children to their attempts, once for every attempt."""
        found: dict[str, list[tuple[bytes, int]]] = {}
        try:
            children = self._children.known()
        except OSError:
            # Processes that were seen before are found below; new ones are found by a later call.
            children = {}
        for name, child in children.items():
            if child.number not in self._pool.of_no_attempt:
                found.setdefault(self._owner(name, children), []).append((name, child.started))
        for name, seen in self._owners.all():
            if name not in children:
                found.setdefault(seen.folder, []).append((name, seen.started))
        return found

    def stop(self, folder: str, roots: Roots) -> bool:
        """Stop all processes of an attempt; False if one was running, so that it may have started more meanwhile.

        A process in uninterruptible sleep stops when it wakes up.
        """
        is_stopped = True
        for name, standing in self._members(folder, roots):
            state = _state_of_threads(name) if standing.state in _ENDED else standing.state
            if state not in _STOPPED | _ENDED:
                self._signal(name, standing.started, signal.SIGSTOP)
            is_stopped = is_stopped and state not in _AWAKE
        return is_stopped

    def resume(self, folder: str, roots: Roots) -> None:
        """Resume all processes of an attempt."""
        for name, standing in list(self._members(folder, roots)):
            self._signal(name, standing.started, signal.SIGCONT)

    def memory_bytes(self, folder: str, roots: Roots) -> int:
        """Return the resident memory of all processes of an attempt; shared memory counts for each of them."""
        return sum(_resident_bytes(name) for name, _ in self._members(folder, roots))

    def end_strays(self) -> set[str]:
        """Kill remains of ended attempts; return the folders of the attempts that had any.

        An orphan that has hidden its attempt is killed as well, and returned as `NOBODYS`. Raises `OSError`.
        """
        left: set[str] = set()
        running = {held.folder for held in self._leaders.values()}
        children = self._children.known()
        for name, child in children.items():
            if child.number in self._leaders or child.number in self._pool.of_no_attempt:
                continue
            folder = self._owner(name, children)
            if folder in running:
                continue
            signal_if(child.number, signal.SIGKILL, partial(_is_same, name, child.started))
            left.add(folder)
        return left

    def reaped(self, number: int) -> None:
        """Note that a child of the starter is gone."""
        name = self._children.reaped(number)
        if name is not None:
            self._owners.drop(name)

    def forget(self, folder: str) -> None:
        """Note that an attempt has ended without remaining processes."""
        self._owners.forget(folder)
        self._marks.forget(folder)

    def _owner(self, name: bytes, children: Mapping[bytes, Child]) -> str:
        """Return the folder of the attempt to which a child belongs."""
        child = children[name]
        leader = self._leaders.get(child.number)
        if leader is not None:
            return leader.folder
        seen = self._owners.of(name, child.started)
        if seen is not None and seen.folder != NOBODYS:
            return seen.folder
        folder = self._shown(name, children)
        if folder != NOBODYS:
            self._owners.note(name, Seen(child.started, child.number, folder))
        return folder

    def _shown(self, name: bytes, children: Mapping[bytes, Child]) -> str:
        """Return the attempt's folder by an orphan's mark, by what else it shows, or by its group."""
        marked = self._marks.folder_of(name)
        if marked is not None:
            return marked
        folder = belongs_to(name, self._prefix)
        if folder is not None:
            return os.fsdecode(folder)
        standing = standing_of(name)
        group = children.get(standing.group) if standing is not None else None
        leader = self._leaders.get(group.number) if group is not None else None
        return NOBODYS if leader is None else leader.folder

    def _members(self, folder: str, roots: Roots) -> Iterator[tuple[bytes, Standing]]:
        """Yield every process of an attempt, and remember it as the attempt's even if it loses its parents."""
        waiting: list[tuple[bytes, int | None]] = list(roots.get(folder, ()))
        visited: set[bytes] = set()
        while waiting:
            name, started = waiting.pop()
            if name in visited:
                continue
            standing = standing_of(name)
            if standing is None or started not in (None, standing.started):
                self._owners.drop(name)
                continue
            visited.add(name)
            seen = self._owners.of(name, standing.started)
            if seen is None or seen.folder != folder:
                self._owners.note(name, Seen(standing.started, self._children.own_number(name), folder))
            yield name, standing
            waiting.extend((child, None) for child in children_of(name))

    def _signal(self, name: bytes, started: int, number: int) -> None:
        """Signal a process that was seen, if its number still refers to it."""
        seen = self._owners.of(name, started)
        if seen is not None and seen.number:
            signal_if(seen.number, number, partial(_is_same, name, started))


def resident_bytes_below(name: bytes) -> int:
    """Return the resident memory of all descendants of a process; shared memory counts for each of them."""
    return sum(map(_resident_bytes, _unseen_below(name, set())))


def descendants_of(name: bytes) -> Iterator[bytes]:
    """Yield the numbers in /proc of all descendants of a process, as they are when they are asked for.

    Time may pass between them: those that lose their parents meanwhile are found when all are searched again, which
    ends when nothing new appears. Whatever always starts another one and ends can stay unseen.
    """
    seen: set[bytes] = set()
    for _ in range(_PASSES):
        before = len(seen)
        yield from _unseen_below(name, seen)
        if len(seen) == before:
            return


def _unseen_below(name: bytes, seen: set[bytes]) -> Iterator[bytes]:
    """Yield the descendants of a process that were not seen, and note them."""
    visited: set[bytes] = set()
    waiting = children_of(name)
    while waiting:
        child = waiting.pop()
        if child in visited:
            continue
        visited.add(child)
        if child not in seen:
            seen.add(child)
            yield child
        waiting += children_of(child)


def _state_of_threads(name: bytes) -> bytes:
    """Return the state of a process whose first thread has ended: that of another one, or that of an ended process."""
    try:
        threads = os.listdir(b"/proc/%s/task" % name)  # noqa: PTH208 - names, not paths
    except OSError:
        threads = []
    standings = (standing_of(b"%s/task/%s" % (name, thread)) for thread in threads)
    return next((each.state for each in standings if each is not None and each.state not in _ENDED), b"Z")


def _is_same(name: bytes, started: int) -> bool:
    standing = standing_of(name)
    return standing is not None and standing.started == started


def children_of(name: bytes) -> list[bytes]:
    """Return the numbers in /proc of the children of all threads of a process."""
    found: list[bytes] = []
    try:
        threads = os.listdir(b"/proc/%s/task" % name)  # noqa: PTH208 - names, not paths
    except OSError:
        return found
    for thread in threads:
        # One that has ended meanwhile has left its children to another one.
        with suppress(OSError), open(b"/proc/%s/task/%s/children" % (name, thread), "rb") as file:  # noqa: PTH123 - as above
            found += file.read().split()
    return found


def _resident_bytes(name: bytes) -> int:
    try:
        with open(b"/proc/%s/statm" % name, "rb") as file:  # noqa: PTH123 - no path
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0
