"""Finding out what memory attempts use, a few in each turn: everything else waits meanwhile."""

from itertools import islice

from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempts import Phase, Table
from messiahs.executor.protocol.frames import Weighed
from messiahs.executor.starter.trees import PER_TURN, Trees


class Weighing:
    """The attempts whose memory was asked for, and what is known of it already (mutable)."""

    def __init__(self, table: Table, trees: Trees) -> None:
        self._table, self._trees = table, trees
        self._waiting: dict[AttemptId, None] = {}
        self._memory: list[tuple[AttemptId, int]] = []
        self.is_asked = False
        """Whether an answer is owed."""

    def ask(self, attempts: tuple[AttemptId, ...]) -> None:
        """Have attempts weighed; who asks again before the answer gets one answer to both."""
        self._waiting.update(dict.fromkeys(attempts))
        self.is_asked = True

    def weigh(self) -> Weighed | None:
        """Weigh some of those that run; give the answer once it is complete."""
        asked = list(islice(self._waiting, PER_TURN))
        roots = self._trees.roots() if asked else {}
        for attempt in asked:
            del self._waiting[attempt]
            held = self._table.attempts.get(attempt)
            if held is not None and held.phase is Phase.RUNNING:
                self._memory.append((attempt, self._trees.memory_bytes(held.folder, roots)))
        if self._waiting:
            return None
        answer = Weighed(memory=tuple(self._memory))
        self._memory.clear()
        self.is_asked = False
        return answer
