"""The rows of the audit log that may still change (core/audit)."""

from dataclasses import dataclass, field

from messiahs.core.interface.audit_row import AuditRow, Crossed
from messiahs.core.model.ids import SystemId, TaskId

TasksKey = tuple[SystemId, bool, TaskId]
"""A neighbor, whether the tasks go there, and their submission."""
FoldKey = tuple[SystemId, bool, Crossed, str]
"""A neighbor, whether the message goes there, what happened, and the code."""


@dataclass(slots=True)
class Audit:
    """Open rows, the least lately used first (mutable)."""

    tasks: dict[TasksKey, AuditRow] = field(default_factory=dict)
    folds: dict[FoldKey, AuditRow] = field(default_factory=dict)
    """Rows of the present minute. Not stored as such: after a restart another row begins."""
