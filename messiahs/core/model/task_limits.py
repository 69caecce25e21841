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
    of_site: tuple[str, ...] = ()
    """Attributes (`mem`, `disk`) that the task does not state, so that these limits are the site's maxima."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maxima:
    """The most that one task may have on a machine, as its site decides. None: whatever the machine has.

    A task that states more is denied, and one that states nothing is limited to it.
    """

    memory_bytes: int | None = None
    disk_bytes: int | None = None
    run_seconds: int | None = None
