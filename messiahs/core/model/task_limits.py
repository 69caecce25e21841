"""What a task may use, as it was granted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """The resources that a task was granted, which its executor enforces as far as it can.

    None: the task states no need, and the executor has a limit of its own, or none.
    """

    processors: int = 1
    memory_bytes: int | None = None
    disk_bytes: int | None = None
