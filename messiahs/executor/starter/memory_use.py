"""Measuring the memory of attempts, a few in each step, because everything else waits meanwhile."""

from itertools import islice

from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempts import Held, Phase, Table
from messiahs.executor.protocol.frames import MemoryMeasured
from messiahs.executor.starter.process_trees import PER_STEP
from messiahs.executor.starter.task_processes import TaskProcesses


class MemoryUse:
    """Attempts whose memory was requested, and what is known of it already (mutable)."""

    def __init__(self, table: Table, tasks: TaskProcesses) -> None:
        self._table, self._tasks = table, tasks
        self._waiting: dict[AttemptId, None] = {}
        self._memory: list[tuple[AttemptId, int]] = []
        self.is_asked = False
        """Whether an answer is due."""

    def ask(self, attempts: tuple[AttemptId, ...]) -> None:
        """Request the memory of attempts; a repetition before the answer shares it."""
        self._waiting.update(dict.fromkeys(attempts))
        self.is_asked = True

    def measure(self) -> MemoryMeasured | None:
        """Measure some of the running attempts; return the answer when it is complete."""
        asked = list(islice(self._waiting, PER_STEP))
        running: list[Held] = []
        for attempt in asked:
            del self._waiting[attempt]
            held = self._table.attempts.get(attempt)
            if held is not None and held.phase is Phase.RUNNING:
                running.append(held)
        self._memory += zip((held.attempt for held in running), self._tasks.memory_bytes(running), strict=True)
        if self._waiting:
            return None
        answer = MemoryMeasured(memory=tuple(self._memory))
        self._memory.clear()
        self.is_asked = False
        return answer
