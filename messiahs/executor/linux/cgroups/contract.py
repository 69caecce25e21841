"""What a control group can do, in either version of the kernel's interface."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, TypeVar

Result = TypeVar("Result")

KEPT_BYTES: Final = 16 << 20
"""Memory that may stay charged to a group that is used again: caches of the kernel and of files, or shared memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Limits of the processes of a group together; None: no limit but that of the groups around it."""

    memory_bytes: int | None = None
    processors: int | None = None
    processes: int | None = None
    """Processes and threads."""


def limits_above(limits: GroupLimits, before_bytes: int) -> GroupLimits:
    """Return limits that leave as much memory as the given ones where some is charged to the group already."""
    return limits if limits.memory_bytes is None else replace(limits, memory_bytes=limits.memory_bytes + before_bytes)


class GroupUsage(NamedTuple):
    """What the processes of a group used since it was last reset; None: that cannot be measured."""

    cpu_ns: int | None = None
    peak_memory_bytes: int | None = None
    memory_kills: int = 0
    """How many processes the kernel killed because memory was exhausted, of the group or of the machine."""


class Group(Protocol):
    """One group. It is used for one attempt after the other; nothing of it is closed between them."""

    @property
    def limits(self) -> str:
        """What it can limit, in words that a comma separates; empty: nothing."""

    @property
    def entries(self) -> tuple[str, ...]:
        """Files: a process that writes `0` to each of them enters the group, and its children are born there."""

    def enter(self) -> None:
        """Move the calling process into the group; it must have one thread. Raises `OSError`."""

    def inside(self, call: Callable[[], Result]) -> Result:
        """Return the result of a call, during which the children of this process are born into the group.

        Raises what the call raises, and `NotImplementedError` where only whole processes can be in a group.
        """

    @property
    def has_inside(self) -> bool:
        """Whether `inside` works."""

    def begin(self, limits: GroupLimits) -> None:
        """Set the limits, and count usage from now on. Raises `OSError`.

        Memory that is charged to the group now, up to `KEPT_BYTES`, counts neither for the limit nor as usage.
        """

    def used(self) -> GroupUsage:
        """Return what was used since `begin`."""

    def left_bytes(self) -> int:
        """Return the memory and swap space that is charged to the group; 0 where that cannot be measured."""

    def kill(self) -> bool:
        """Kill every process in the group, hidden ones too; return whether none is left.

        Until the next `begin`, none can be added by those that were not killed yet.
        """

    def close(self) -> bool:
        """Remove the group, if no process is in it; return whether it is removed.

        Memory that is still charged to it remains charged to the group around it. Afterwards, only this can be called.
        """
