"""The laws of order: no task begins before what it waits for has happened, or beside too many others of its array."""

from messiahs.core.interface.dependencies import Dependency, When
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import TaskId
from messiahs.core.origin.array_members import members_of
from messiahs.core.origin.awaited import awaits_outputs
from messiahs.core.origin.completion import has_ended_well


class StartOrder:
    """What has happened to every task so far, retried ones included (mutable)."""

    def __init__(self) -> None:
        self._submissions: dict[TaskId, SubmissionRow] = {}
        self.forgotten: dict[TaskId, SubmissionRow] = {}
        """Submissions that their modules have forgotten."""
        self._happened: dict[When, dict[TaskId, None]] = {when: {} for when in When}

    def stored(self, row: SubmissionRow) -> None:
        """Record a stored submission."""
        self._submissions[row.id] = row

    def forget(self, submission: TaskId) -> str:
        """Record that a submission is forgotten; returns why it may not be, or nothing."""
        row = self.forgotten[submission] = self._submissions[submission]
        if row.ended_at is None:
            return "has not ended"
        live = (other for other in self._submissions.values() if other.ended_at is None)
        needing = (other.id for other in live if any(each.on.submission == submission for each in other.after))
        return next((f"is needed by {other}" for other in needing), "")

    def begun(self, task: TaskId) -> None:
        """Record that a task began on a machine."""
        self._happened[When.STARTED][task] = None

    def ended(self, row: TaskRow) -> None:
        """Record the stored end of a task."""
        self._happened[When.STARTED][row.id] = self._happened[When.ENDED][row.id] = None
        if has_ended_well(row):
            self._happened[When.OK][row.id] = None

    def why_not(self, task: TaskId) -> str:
        """Return why a task may not begin yet; empty if it may."""
        submission = self._submissions[task.submission]
        if awaits_outputs(submission):
            return "outputs that it takes of others are not there"
        awaited = (self._awaited(each, task) for each in submission.after)
        missing = (each for each in awaited if not self._has_happened(each))
        return next((f"{each.on} has not been {each.when}" for each in missing), "")

    def at_once(self, task: TaskId) -> int:
        """Return how many members of the task's array may run at once; 0: all."""
        return self._submissions[task.submission].at_once

    def _awaited(self, dependency: Dependency, task: TaskId) -> Dependency:
        """Return what a dependency is for one task: a member waits for that of its number."""
        if dependency.when != When.EACH:
            return dependency
        return Dependency(on=dependency.on._replace(member=task.member), when=When.OK)

    def _has_happened(self, dependency: Dependency) -> bool:
        on = dependency.on
        submission = self._submissions[on.submission]
        tasks = [on] if on.member else [on._replace(member=member) for member in members_of(submission)]
        return all(task in self._happened[When(dependency.when)] for task in tasks)
