"""Attempts whose owner wants them to stand still: stopped, kept so, and woken again."""

from messiahs.core.ids import AttemptId
from messiahs.executor.starter.kernel import boottime_ns
from messiahs.executor.starter.table import NEVER, Held, Phase, Table
from messiahs.executor.starter.trees import Trees

_LOOK_NS = 1_000_000_000
"""So often they are looked at: another task of the account could wake them."""


class Suspended:
    """The attempts that stand still (mutable); `look_at` is when they are to be looked at."""

    def __init__(self, table: Table, trees: Trees) -> None:
        self.look_at = NEVER
        self._table, self._trees = table, trees
        self._held: dict[AttemptId, Held] = {}

    def suspend(self, held: Held) -> None:
        """Stop all of an attempt, unless it is ending."""
        if held.phase is Phase.RUNNING and held.kill_at == NEVER:
            now = boottime_ns()
            self._table.suspend(held, now)
            self._held[held.attempt] = held
            self.look_at = min(self.look_at, now + _LOOK_NS)
            self._trees.stop(held.process, held.folder)

    def resume(self, held: Held) -> None:
        """Let an attempt go on, if it stands still."""
        if self._held.pop(held.attempt, None) is not None:
            self._table.resume(held, boottime_ns())
            if held.phase is Phase.RUNNING:
                self._trees.go_on(held.process, held.folder)

    def look(self, now: int) -> None:
        """Stop what was woken by others, when it is time for that."""
        if now < self.look_at:
            return
        self.look_at = NEVER
        for attempt, held in tuple(self._held.items()):
            if held.phase is Phase.RUNNING:
                self._trees.stop(held.process, held.folder)
                self.look_at = now + _LOOK_NS
            else:
                del self._held[attempt]
