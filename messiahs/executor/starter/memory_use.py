"""Measuring the memory of attempts, a few in each step, because everything else waits meanwhile."""

from itertools import islice

from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempts import Phase, Table
from messiahs.executor.protocol.frames import MemoryMeasured
from messiahs.executor.starter.process_trees import PER_STEP, ProcessTrees


class MemoryUse:
    """Attempts whose memory was requested, and what is known of it already (mutable)."""

    def __init__(self, table: Table, trees: ProcessTrees) -> None:
        self._table, self._trees = table, trees
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
        roots = self._trees.roots() if asked else {}
        for attempt in asked:
            del self._waiting[attempt]
            held = self._table.attempts.get(attempt)
            if held is not None and held.phase is Phase.RUNNING:
                self._memory.append((attempt, self._trees.memory_bytes(held.folder, roots)))
        if self._waiting:
            return None
        answer = MemoryMeasured(memory=tuple(self._memory))
        self._memory.clear()
        self.is_asked = False
        return answer
