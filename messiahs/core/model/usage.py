"""What an attempt used of its machine, and how that contained it, as its executor says."""

from dataclasses import dataclass
from typing import Final

LACKS_LIMIT_BYTES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Resources used from the start of an attempt to its end; None: the executor cannot measure that.

    It is the word of the executor. Every number is below 2^60 (`USAGE_END` in wire/limits.py).
    """

    cpu_ns: int | None = None
    """Processor time of all processes, in user and system mode."""
    peak_memory_bytes: int | None = None
    """The highest memory use: of all processes together in a cgroup, of the largest single process elsewhere."""
    written_bytes: int | None = None
    """Bytes written to disks, including those in memory that the kernel still has to write."""
    read_bytes: int | None = None
    """Bytes read from disks; what the kernel had in memory does not count."""
    suspended_ns: int | None = None
    """Time for which the owner of the machine suspended the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Containment:
    """The containment of one attempt, by the word of its executor."""

    isolation: str
    """A value of the attribute `isolation`."""
    lacks: str = ""
    """What other machines with this isolation have and this one had not, for people; empty: nothing."""
