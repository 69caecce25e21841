"""Suspended attempts: they are stopped, kept stopped, and resumed.

Their groups are signalled at once, and processes that left their group in the same step. The number of attempts in a
step is limited, because reaping, limits, leases and kills wait meanwhile.
"""

import signal
import time
from collections.abc import Mapping
from itertools import islice

from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempts import NEVER, Held, Phase
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.starter.attempts_of_processes import NOBODYS
from messiahs.executor.starter.process_groups import signal_group
from messiahs.executor.starter.process_trees import PER_STEP, ProcessTrees, Roots

_LOOK_NS = 1_000_000_000
"""Interval of checks: another task of the account could resume them."""
_PASSES = 100
_PAUSE_SECONDS = 0.0005


class Suspended:
    """The suspended attempts (mutable); each is fresh, or due at a time, the earliest first.

    `leaders` are the first processes of all attempts.
    """

    def __init__(self, trees: ProcessTrees, leaders: Mapping[int, Held]) -> None:
        self._trees, self._leaders = trees, leaders
        self._fresh: dict[AttemptId, Held] = {}
        self._due: dict[AttemptId, tuple[int, Held]] = {}
        self._waking: dict[AttemptId, Held] = {}
        self._has_stopped_nobodys = False

    @property
    def due_at(self) -> int:
        """When the next step is due; 0 for at once."""
        if self._fresh or self._waking:
            return 0
        return next((due for due, _ in self._due.values()), NEVER)

    def suspend(self, held: Held) -> None:
        """Stop all processes of an attempt."""
        signal_group(held.process, signal.SIGSTOP)
        self._due.pop(held.attempt, None)
        self._fresh[held.attempt] = held

    def resume(self, held: Held) -> None:
        """Resume a suspended attempt."""
        self._fresh.pop(held.attempt, None)
        self._due.pop(held.attempt, None)
        signal_group(held.process, signal.SIGCONT)
        self._waking[held.attempt] = held

    def step(self, now: int) -> None:
        """Resume and stop attempts as requested since the last step; when due, stop again those that others resumed."""
        if now < self.due_at:
            return
        if self._waking:
            self._wake()
        if self._fresh:
            self._calm()
        self._keep(now)

    def _wake(self) -> None:
        roots = self._trees.roots()
        for held in list(islice(self._waking.values(), PER_STEP)):
            del self._waking[held.attempt]
            # An attempt that was suspended again meanwhile was resumed for a moment only.
            if held.phase is Phase.RUNNING and not held.suspended_at:
                self._trees.resume(held.folder, roots)
        if self._has_stopped_nobodys:
            self._trees.resume(NOBODYS, roots)
            self._trees.forget(NOBODYS)
            self._has_stopped_nobodys = False

    def _calm(self) -> None:
        """Stop fresh attempts, and processes that they were starting meanwhile."""
        awake = list(islice(self._fresh.values(), PER_STEP))
        for held in awake:
            del self._fresh[held.attempt]
        for _ in range(_PASSES):
            roots = self._trees.roots()
            awake = [held for held in awake if not self._stop(held, roots)]
            if self._stop_nobodys(roots) and not awake:
                return
            # Stopped processes have stopped before the next search; only their children can be new.
            time.sleep(_PAUSE_SECONDS)

    def _keep(self, now: int) -> None:
        """Stop processes that were resumed; those that they may have started are found in the next step."""
        due = [held for at, held in islice(self._due.values(), PER_STEP) if at <= now]
        if due:
            roots = self._trees.roots()
            for held in due:
                if not self._stop(held, roots):
                    del self._due[held.attempt]
                    self._fresh[held.attempt] = held
            self._stop_nobodys(roots)

    def _stop(self, held: Held, roots: Roots) -> bool:
        """Stop all processes of an attempt, unless it has ended, and check again later; False if one was running."""
        self._due.pop(held.attempt, None)
        if held.phase is not Phase.RUNNING:
            return True
        signal_group(held.process, signal.SIGSTOP)
        is_stopped = self._trees.stop(held.folder, roots)
        self._due[held.attempt] = boottime_ns() + _LOOK_NS, held
        return is_stopped

    def _stop_nobodys(self, roots: Roots) -> bool:
        """Stop processes that may be of any attempt if no attempt may run; False if one was running."""
        if not all(held.suspended_at for held in self._leaders.values()):
            return True
        self._has_stopped_nobodys = self._has_stopped_nobodys or NOBODYS in roots
        return self._trees.stop(NOBODYS, roots)
