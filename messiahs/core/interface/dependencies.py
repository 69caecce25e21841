"""Dependencies between tasks of one origin: a task waits until others have started, ended, or ended well."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from messiahs.core.model.ids import TaskId

DEPENDENCY_LIMIT: Final = 256
EACH_LIMIT: Final = 4
"""Arrays for which the members of one array wait with `EACH`: each member is looked at."""
"""Dependencies of one submission, which are stored in its row."""
DEPENDENCY_FAILED: Final = "dependency_failed"
"""The rule in the reason of tasks that can never run, which users are shown as the code.

The code itself is `requirement_unmet`, since release 0.1.0 does not read rows with a code that it does not know.
"""


class When(StrEnum):
    """What has to have happened to a task before one that depends on it is placed."""

    STARTED = "started"
    """It runs or has ended; also if it has ended without a start."""
    ENDED = "ended"
    """It has ended, in whatever state."""
    OK = "ok"
    """It has ended with exit code 0."""
    EACH = "each"
    """Of two arrays of as many members, that with the same number has ended with exit code 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedOutput:
    """An output of another task, a file or a folder of them, which becomes the input `to`."""

    name: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A task, or all tasks of a submission, that a submission depends on; a condition once met stays met.

    With `EACH`, `is_met` only says that no member waits; which ones do follows from which of the others have not ended.
    With `OK` on a single task or a member, `outputs` of it are taken once it has ended, before anything is placed.
    """

    on: TaskId
    when: str
    """A `When`, as text: release 0.1.0 would not start with a stored word that is unknown to it."""
    is_met: bool = False
    outputs: tuple[WantedOutput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEnds:
    """Runs of members of an array that ended in one way, not with exit code 0; `how` says it in words, if known."""

    runs: tuple[tuple[int, int], ...]
    how: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predecessor:
    """A dependency that a user states, and how its tasks had ended when the host read their stored rows.

    `is_good` is None if an end was not stored then, or no longer (`is_forgotten`); it counts only if the core knows the
    tasks as ended. If it is false, `how` says in words how they ended. With `EACH` the runs of members that had ended
    count instead, with exit code 0 (`good`) or not.
    """

    dependency: Dependency
    is_good: bool | None = None
    how: str = ""
    is_forgotten: bool = False
    good: tuple[tuple[int, int], ...] = ()
    bad: tuple[BadEnds, ...] = ()


class Outcome(StrEnum):
    """Whether a condition is met, may be met later, or can never be met."""

    MET = "met"
    OPEN = "open"
    FAILED = "failed"
