"""The attempts of own tasks as spans: each is seen once, when it ends, in the rows that its origin stores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import Event
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import AttemptId, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.trace_context import TRACEPARENT, SpanContext, span_of
from messiahs.core.origin.array_members import command_of
from messiahs.trace.record.recorder import RecordedModule

_NO_CAUSES: Final = frozenset(TaskState) - frozenset(Cause)
"""Ends that the history names by their state, since they have no cause."""
_TOLD: Final = (TaskState.FINISHED, TaskState.ABORTED)
"""Ends of which the history has only `exit code N` or `signal N`, and no text of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpan:
    """An attempt that has ended, with what its user may see of it, but no name of anybody and no text of others."""

    context: SpanContext
    attempt: AttemptId
    module: str
    """Where it was, as its user sees it."""
    begun_at: Instant
    """When it was bound to its machine."""
    ended_at: Instant
    """When its origin knew the end, and had the outputs."""
    cause: str
    """A `Cause`, or a word of a newer release; empty if it exited, or a signal from outside ended it."""
    problem: str
    """How it failed: `exit code 3`, `signal 9`, the cause, or else the state; empty after exit code 0."""
    exit_code: int | None


class SpanWatcher:
    """Passes the span of each sampled attempt of an own task to `put` when it has ended (mutable); a `Watcher`."""

    def __init__(self, module: RecordedModule, put: Callable[[AttemptSpan], None]) -> None:
        self._module, self._put = module, put
        self._seen: set[AttemptId] = set()
        """Attempts whose end was seen in the present instant: their rows may be stored again in it."""
        self._seen_at = Instant(0)

    def on_step(self, event: Event | None, actions: tuple[Action, ...], now: Instant, /) -> None:
        """Pass on what has ended in a step."""
        del event
        for action in actions:
            if isinstance(action, Store) and isinstance(action.row, TaskRow):
                end = _end_in(action.row, now)
                if end is not None:
                    self._note(action.row, end, actions)

    def on_commit(self, rows: int, duration_ns: int, /) -> None:
        """Ignore a transaction."""

    def on_throttled(self, neighbor: SystemId, /) -> None:
        """Ignore a neighbor that waits."""

    def _note(self, row: TaskRow, end: HistoryEntry, actions: tuple[Action, ...]) -> None:
        attempt = AttemptId(row.id, row.attempt)
        if end.at != self._seen_at:
            self._seen_at = end.at
            self._seen.clear()
        if attempt in self._seen:
            return
        self._seen.add(attempt)
        submission = self._submission_of(row.id, actions)
        if submission is None or not any(name == TRACEPARENT for name, _ in submission.command.env):
            return
        context = span_of(command_of(submission, row.id).env, attempt)
        if context is not None and context.is_sampled:
            self._put(_span(row, end, context))

    def _submission_of(self, task: TaskId, actions: tuple[Action, ...]) -> SubmissionRow | None:
        live = queries.live_submission(self._module.state, task)
        if live is not None:
            return live
        # This step has ended it as well.
        rows = (action.row for action in actions if isinstance(action, Store))
        return next((row for row in rows if isinstance(row, SubmissionRow) and row.id == task.submission), None)


def _end_in(row: TaskRow, now: Instant) -> HistoryEntry | None:
    """Return the end of an attempt in this instant that a stored row shows; None if it shows none."""
    if row.claim is not None or row.bound_at is None or not row.history:
        return None
    last = row.history[-1]
    # What people did to a task that waits for a place is noted without a module.
    return last if last.at == now and last.attempt == row.attempt and last.module else None


def _span(row: TaskRow, end: HistoryEntry, context: SpanContext) -> AttemptSpan:
    assert row.bound_at is not None, "it was bound"
    is_good = end.event == TaskState.FINISHED and not end.exit_code
    problem = end.text if end.event in _TOLD and end.text else end.event
    return AttemptSpan(
        context=context,
        attempt=AttemptId(row.id, row.attempt),
        module=end.module,
        begun_at=row.bound_at,
        ended_at=end.at,
        cause="" if end.event in _NO_CAUSES else end.event,
        problem="" if is_good else problem,
        exit_code=end.exit_code,
    )
