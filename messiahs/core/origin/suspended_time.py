"""How long the owner of a machine keeps a task suspended, as the origin of the task counts it."""

from dataclasses import replace

from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.instants import Instant


def with_suspension(row: TaskRow, *, is_suspended: bool, now: Instant) -> TaskRow:
    """Begin or end a suspension of the present attempt; nothing changes if it is so already."""
    if is_suspended == (row.suspended_at is not None):
        return row
    if row.suspended_at is None:
        return replace(row, suspended_at=now)
    return replace(row, suspended_at=None, suspended_ns=row.suspended_ns + max(0, now - row.suspended_at))
