"""What has happened in a module since its start, counted beside the core from its events and actions.

Nothing here is stored: a restart begins at 0, which those who read counters expect.
"""

from collections import Counter
from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Any, Final

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Report, ReportCode, SendControl, Store
from messiahs.core.interface.causes import LOST_CAUSES, Cause
from messiahs.core.interface.events import ControlReceived, Event
from messiahs.core.interface.messages import (
    ControlMessage,
    DenyCode,
    Reason,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    TaskState,
)
from messiahs.core.interface.rows import AttemptRow, SubmissionRow, TaskRow
from messiahs.core.model.ids import MessageId, SystemId
from messiahs.core.model.instants import Instant, after
from messiahs.daemon.metrics.histograms import COMMIT_SECONDS, WAIT_SECONDS, Histogram
from messiahs.trace.record.recorder import RecordedModule

EVICTIONS: Final = frozenset({*LOST_CAUSES, Cause.REFUSED, Cause.NEVER_ARRIVED, Cause.UNREACHABLE})
"""Why an attempt of an own task ended so that the task is placed again."""
_PENDING_LIMIT: Final = 4_096


class Outcome(StrEnum):
    """What became of a search at a neighbor; only the first answer counts."""

    GRANTED = "granted"
    DENIED = "denied"
    UNANSWERED = "unanswered"
    """Nothing came within the time of the search."""


class Direction(StrEnum):
    """Whether this module was told, or told others."""

    SENT = "sent"
    RECEIVED = "received"


class Tally:
    """The counters of one module (mutable); a `Watcher`. Neighbors are forgotten with `keep_only`."""

    def __init__(self, module: RecordedModule) -> None:
        self._module = module
        self._own = queries.system_of(module.state)
        self.submitted_tasks = 0
        self.placed_tasks: Counter[bool] = Counter()
        """By whether it is on the own machine."""
        self.placement_waits = Histogram(WAIT_SECONDS)
        self.evicted_tasks: Counter[Cause] = Counter()
        self.ended_tasks: Counter[TaskState] = Counter()
        self.ended_attempts: Counter[tuple[TaskState, str]] = Counter()
        """On the own machine, by state and cause."""
        self.searches: Counter[tuple[SystemId, Outcome]] = Counter()
        """Sent to each neighbor."""
        self.answers: Counter[tuple[SystemId, Outcome]] = Counter()
        """Sent to each neighbor, to its searches."""
        self.denials: Counter[tuple[Direction, DenyCode]] = Counter()
        self.violations: Counter[ReportCode] = Counter()
        self.throttlings: Counter[SystemId] = Counter()
        self.commits = Histogram(COMMIT_SECONDS)
        self.committed_rows = 0
        self._asked: dict[tuple[SystemId, MessageId], Instant] = {}
        """Searches that wait for an answer of a neighbor, until when."""
        self._seen: set[object] = set()
        """What the present instant has counted: rows are stored again when more about them changes."""
        self._seen_at = Instant(0)
        self._of_row: dict[type, Callable[[Any, Instant], None]] = {
            TaskRow: self._of_task,
            SubmissionRow: self._of_submission,
            AttemptRow: self._of_attempt,
        }

    def on_step(self, event: Event | None, actions: tuple[Action, ...], now: Instant, /) -> None:
        """Count what an event brings, and what follows from it."""
        if isinstance(event, ControlReceived):
            self._of_answer(event.sender, event.message)
        for action in actions:
            kind = type(action)
            if kind is Store:
                count = self._of_row.get(type(action.row))  # type: ignore[union-attr] # it is a `Store`
                if count is not None:
                    count(action.row, now)  # type: ignore[union-attr] # as above
            elif isinstance(action, SendControl):
                self._of_message(action.to, action.message, now)
            elif isinstance(action, Report):
                self.violations[action.code] += 1

    def on_commit(self, rows: int, duration_ns: int, /) -> None:
        """Count a transaction."""
        self.commits.add(duration_ns)
        self.committed_rows += rows

    def on_throttled(self, neighbor: SystemId, /) -> None:
        """Count that a neighbor was made to wait."""
        self.throttlings[neighbor] += 1

    def keep_only(self, neighbors: Collection[SystemId], now: Instant) -> None:
        """Forget systems that are no neighbors any more, and count searches whose time is over."""
        for neighbor, ask in [each for each, until in self._asked.items() if until < now]:
            del self._asked[neighbor, ask]
            self.searches[neighbor, Outcome.UNANSWERED] += 1
        for counted in (self.searches, self.answers):
            for key in [key for key in counted if key[0] not in neighbors]:
                del counted[key]
        for gone in [each for each in self.throttlings if each not in neighbors]:
            del self.throttlings[gone]

    def _of_answer(self, sender: SystemId, message: ControlMessage) -> None:
        match message:
            case SchedAccept():
                self._note_answer(sender, message.request, Outcome.GRANTED)
            case SchedDeny():
                self._note_answer(sender, message.request, Outcome.DENIED)
                self._note_denial(Direction.RECEIVED, message.reasons)
            case _:
                pass

    def _of_message(self, to: SystemId, message: ControlMessage, now: Instant) -> None:
        match message:
            case SchedRequest():
                self._asked[to, message.id] = after(now, message.remaining_ns)
                if len(self._asked) > _PENDING_LIMIT:
                    neighbor, _ = oldest = next(iter(self._asked))
                    del self._asked[oldest]
                    self.searches[neighbor, Outcome.UNANSWERED] += 1
            case SchedAccept():
                self.answers[to, Outcome.GRANTED] += 1
            case SchedDeny():
                self.answers[to, Outcome.DENIED] += 1
                self._note_denial(Direction.SENT, message.reasons)
            case _:
                pass

    def _note_answer(self, sender: SystemId, ask: MessageId, outcome: Outcome) -> None:
        if self._asked.pop((sender, ask), None) is not None:
            self.searches[sender, outcome] += 1

    def _note_denial(self, direction: Direction, reasons: tuple[Reason, ...]) -> None:
        if reasons:
            self.denials[direction, reasons[0].code] += 1

    def _of_submission(self, row: SubmissionRow, now: Instant) -> None:
        if row.submitted_at == now and self._is_new(now, row.id):
            self.submitted_tasks += max(1, row.members)
        for run in reversed(row.untried):
            if run.ended_at != now:
                break
            if self._is_new(now, (row.id, run.first)):
                self.ended_tasks[run.state] += run.last - run.first + 1

    def _of_task(self, row: TaskRow, now: Instant) -> None:
        if row.state is not TaskState.EXECUTING:
            if row.ended_at == now and self._is_new(now, (row.id, row.state)):
                self.ended_tasks[row.state] += 1
        elif row.bound_at == now and self._is_new(now, (row.id, row.attempt)):
            self.placed_tasks[row.executed_on == self._own] += 1
            if row.attempt == 1:
                self._note_wait(row, now)
        for entry in reversed(row.history):
            if entry.at != now:
                break
            if entry.event in EVICTIONS and self._is_new(now, (row.id, entry.event, entry.attempt)):
                self.evicted_tasks[Cause(entry.event)] += 1

    def _note_wait(self, row: TaskRow, now: Instant) -> None:
        submission = queries.live_submission(self._module.state, row.id)
        # Others have not waited for a place alone.
        if submission is not None and not (submission.after or submission.at_once or submission.holds):
            self.placement_waits.add(now - submission.submitted_at)

    def _of_attempt(self, row: AttemptRow, _: Instant) -> None:
        if row.status.state is not TaskState.EXECUTING:
            self.ended_attempts[row.status.state, row.status.cause] += 1

    def _is_new(self, now: Instant, what: object) -> bool:
        if now != self._seen_at:
            self._seen_at = now
            self._seen.clear()
        is_new = what not in self._seen
        self._seen.add(what)
        return is_new
