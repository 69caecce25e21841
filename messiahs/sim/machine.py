"""A simulated machine: runs attempts for a while in virtual time, and nothing else (stands in for an executor)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from messiahs.core.actions import DiscardAttempt, EndAttempt, ExtendLease, StartAttempt
from messiahs.core.events import AttemptEnded, AttemptStarted
from messiahs.core.ids import AttemptId, ClaimId, TaskId

ExecutorAction = StartAttempt | EndAttempt | ExtendLease | DiscardAttempt
Later = Callable[[int, Callable[[], None]], None]
"""Call something after so many nanoseconds of virtual time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """How long each task runs: exponentially distributed, the same for the same seed and task."""

    seed: int
    mean_ns: int

    def of(self, task: TaskId) -> int:
        """Give the run time of a task."""
        return 1 + int(Random(f"{self.seed}/{task}").expovariate(1) * self.mean_ns)  # noqa: S311 - no secret


@dataclass(slots=True)
class SimulatedMachine:
    """Starts attempts in order, at most `places` of a claim at a time (mutable)."""

    run_times: RunTimes
    later: Later
    tell: Callable[[AttemptStarted | AttemptEnded], None]
    started_once: dict[AttemptId, None] = field(default_factory=dict)
    running: dict[AttemptId, ClaimId] = field(default_factory=dict)
    queues: dict[ClaimId, deque[StartAttempt]] = field(default_factory=dict)
    busy: dict[ClaimId, int] = field(default_factory=dict)

    def perform(self, action: ExecutorAction) -> None:
        """Take an action of the core."""
        match action:
            case StartAttempt() if action.attempt not in self.started_once:
                self.started_once[action.attempt] = None
                self.queues.setdefault(action.claim, deque()).append(action)
                self._fill(action.claim)
            case EndAttempt():
                self._end(action.attempt, cause=action.cause, ran_ns=0)
            case _:
                # A lease of the simulation never runs out before its core says so, and nothing is left behind.
                return

    def _fill(self, claim: ClaimId) -> None:
        queue = self.queues.get(claim, deque())
        while queue and self.busy.get(claim, 0) < queue[0].places:
            action = queue.popleft()
            self.busy[claim] = self.busy.get(claim, 0) + 1
            self.running[action.attempt] = claim
            self.tell(AttemptStarted(attempt=action.attempt))
            run_ns = self.run_times.of(action.attempt.task)
            is_over_limit = action.limit_ns is not None and run_ns > action.limit_ns
            ran_ns = action.limit_ns if is_over_limit and action.limit_ns is not None else run_ns
            self._end_later(action.attempt, "time_limit" if is_over_limit else "", ran_ns)

    def _end_later(self, attempt: AttemptId, cause: str, ran_ns: int) -> None:
        self.later(ran_ns, lambda: self._end(attempt, cause=cause, ran_ns=ran_ns))

    def _end(self, attempt: AttemptId, *, cause: str, ran_ns: int) -> None:
        claim = self.running.pop(attempt, None)
        if claim is None:
            if self._leave_queue(attempt):
                self.tell(AttemptEnded(attempt=attempt, cause=cause))
            return
        self.busy[claim] -= 1
        if not self.busy[claim]:
            del self.busy[claim]
        exit_code = None if cause else 0
        self.tell(AttemptEnded(attempt=attempt, exit_code=exit_code, cause=cause, ran_ns=ran_ns))
        self._fill(claim)

    def _leave_queue(self, attempt: AttemptId) -> bool:
        for queue in self.queues.values():
            for waiting in queue:
                if waiting.attempt == attempt:
                    queue.remove(waiting)
                    return True
        return False
