"""Attempts whose first process has ended: they end when none of their processes remains."""

from collections.abc import Iterator, Mapping

from messiahs.core.model.usage import Usage
from messiahs.executor.attempts import Held
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.strays import Children
from messiahs.executor.starter.attempts_of_processes import NOBODYS
from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.process_groups import signal_group
from messiahs.executor.starter.process_trees import ProcessTrees
from messiahs.executor.starter.task_groups import TaskGroups
from messiahs.executor.starter.used_resources import together

_LIMIT_NS = 10_000_000_000


class Clearing:
    """Attempts that may have remaining processes (mutable); `leaders` are the first processes of running attempts."""

    def __init__(
        self,
        *,
        children: Children,
        trees: ProcessTrees,
        pool: Pool,
        leaders: Mapping[int, Held],
        groups: TaskGroups,
    ) -> None:
        self._children, self._trees, self._pool, self._leaders = children, trees, pool, leaders
        self._groups = groups
        self._held: list[Held] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._held)

    def add(self, held: Held) -> None:
        """Begin to clear an attempt whose group was killed."""
        self._held.append(held)

    def add_usage(self, group: int, usage: Usage) -> None:
        """Add what a process has used that was left in the group of an attempt."""
        for held in self._held:
            if held.process == group:
                held.usage = together(held.usage or Usage(), usage)

    def ended(self) -> Iterator[tuple[Held, str]]:
        """Yield the attempts without remaining processes, each with a text for its end."""
        left = self._end_strays()
        now = boottime_ns()
        for held in self._held.copy():
            is_gone = held.process in self._leaders or not signal_group(held.process, 0)
            if is_gone and left.isdisjoint((held.folder, NOBODYS)) and self._groups.kill(held):
                self._held.remove(held)
                yield held, held.problem.text if held.problem is not None else ""
            elif now - held.ended_at > _LIMIT_NS:
                # A process that was killed and cannot die (a stuck disk) will not run any of its own code again.
                self._held.remove(held)
                yield held, "a process of the task was killed and is not gone"

    def _end_strays(self) -> set[str]:
        """Kill remaining processes of ended attempts, if there is a child other than those of running attempts."""
        try:
            if len(self._children.listed()) <= len(self._leaders) + len(self._pool.of_no_attempt):
                return set()
            return self._trees.end_strays()
        except OSError:
            # Something may remain that cannot be listed now, so no attempt ends before it can.
            return {NOBODYS}
