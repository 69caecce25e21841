"""The rows of the audit log that may still change (core/audit)."""

from dataclasses import dataclass, field, replace

from messiahs.core.interface.actions import Action
from messiahs.core.interface.audit_row import AuditRow, Crossed
from messiahs.core.interface.messages import TaskState
from messiahs.core.model.ids import SystemId, TaskId
from messiahs.core.model.instants import Instant

TasksKey = tuple[SystemId, bool, TaskId]
"""A neighbor, whether the tasks go there, and their submission."""
FoldKey = tuple[SystemId, bool, Crossed, str]
"""A neighbor, whether the message goes there, what happened, and the code."""


@dataclass(slots=True, kw_only=True)
class OpenRow:
    """The row of a submission, whose counts change with each message about its attempts (mutable)."""

    begun: AuditRow
    """The row without its counts."""
    latest_at: Instant
    count: int
    input_bytes: int
    output_bytes: int
    ended: dict[TaskState, int]
    running: dict[int, None]
    latest: dict[int, None]
    """The attempts that ended last, the oldest first."""

    def present(self) -> AuditRow:
        """Return the row as it is now."""
        assert self.begun.tasks is not None, "rows of tasks have them"
        tasks = replace(
            self.begun.tasks,
            ended=tuple(self.ended.items()),
            input_bytes=self.input_bytes,
            output_bytes=self.output_bytes,
            running=tuple(self.running),
            latest=tuple(self.latest),
        )
        return replace(self.begun, count=self.count, latest_at=self.latest_at, tasks=tasks)


@dataclass(slots=True)
class Audit:
    """Open rows, the least lately used first (mutable)."""

    tasks: dict[TasksKey, OpenRow] = field(default_factory=dict)
    unlisted: dict[TasksKey, int] = field(default_factory=dict)
    """At a border, how many attempts were brought and have not ended, beside those in `tasks`; not stored."""
    kept: dict[SystemId, dict[int, None]] = field(default_factory=dict)
    """The numbers of all rows, by the neighbor on whose account they are kept, in order."""
    folds: dict[FoldKey, AuditRow] = field(default_factory=dict)
    """Rows of the present minute. Not stored as such: after a restart another row begins."""
    changed: dict[TasksKey, None] = field(default_factory=dict)
    """Rows in `tasks` that differ from what is stored."""
    folded: dict[FoldKey, None] = field(default_factory=dict)
    """Rows in `folds` that differ from what is stored."""
    waiting: list[Action] = field(default_factory=list)
    """Writes that number new rows and bound the log, then the acknowledgments that follow what is to be stored.

    Acknowledgments have the ids that their receivers know.
    """
    is_due: bool = False
    """All this is stored at the end of the present step."""
