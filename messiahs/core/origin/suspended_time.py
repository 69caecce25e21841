"""How long the owner of a machine keeps a task suspended, as counted by the origin of the task."""

from dataclasses import replace

from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.instants import Instant


def with_suspension(row: TaskRow, *, is_suspended: bool, now: Instant) -> TaskRow:
    """Return the row with the suspension of its attempt begun or ended; unchanged if it is in that state already."""
    if is_suspended == (row.suspended_at is not None):
        return row
    if row.suspended_at is None:
        return replace(row, suspended_at=now)
    return replace(row, suspended_at=None, suspended_ns=row.suspended_ns + max(0, now - row.suspended_at))
