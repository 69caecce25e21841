"""What a task may use, as it was granted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_UNITS: Final = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


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


def size_text(value_bytes: int) -> str:
    """Return a size in its largest binary unit, such as `1.5 GiB`."""
    for unit, scale in _UNITS:
        if value_bytes >= scale:
            return f"{value_bytes / scale:.10g} {unit}"
    return f"{value_bytes} B"


def at_most_text(at_most: Mapping[str, int]) -> str:
    """Return the most that one task may have, by the keys of `at_most` in a topology; empty for no maximum."""
    said: dict[str, tuple[Callable[[int], str], str]] = {
        "mem": (size_text, "of memory"),
        "disk": (size_text, "of disk"),
        "time": (str, "s of run time"),
        "open_files": (str, "open files"),
    }
    return ", ".join(f"{show(at_most[name])} {what}" for name, (show, what) in said.items() if name in at_most)
