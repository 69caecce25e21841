"""What the audit log keeps about the traffic with a neighbor under another administration."""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.interface.messages import TaskState
from messiahs.core.model.ids import SystemId, TaskId
from messiahs.core.model.instants import Instant


class Crossed(StrEnum):
    """What a row counts."""

    TASKS = "tasks"
    """Attempts of one submission that were brought over the link."""
    DENIED = "denied"
    """Requests that were denied, in one minute, with one code."""
    DROPPED = "dropped"
    """Messages that the module dropped and reported, in one minute, with one code."""
    SPLICED = "spliced"
    """Connections that were passed on unread between the neighbor and another one, in one minute."""
    SHUT_OFF = "shut_off"
    READMITTED = "readmitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedTasks:
    """The attempts of one submission, each counted once, however often messages about it were repeated.

    `shown_submission` and `shown_user` are those that the neighbor sees, if they differ. `input_bytes` and
    `output_bytes` are the sizes of the files of these attempts as their messages state them, at most 2^63 - 1.
    """

    submission: TaskId
    user: str
    shown_submission: TaskId | None = None
    shown_user: str = ""
    ended: tuple[tuple[TaskState, int], ...] = ()
    """How many were reported as ended, by state."""
    input_bytes: int = 0
    output_bytes: int = 0
    running: tuple[int, ...] = ()
    """The attempts that have not ended, as numbers (core/audit/tasks.py); empty in a closed row."""
    latest: tuple[int, ...] = ()
    """The attempts that ended last, so that a repeated report is not counted again; empty in a closed row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One line of the audit log: something that crossed the link with a neighbor `count` times.

    Outward is from this module to the neighbor: its own tasks and requests, and those of systems behind it.
    """

    number: int
    neighbor: SystemId
    what: Crossed
    is_outward: bool
    began_at: Instant
    latest_at: Instant
    count: int = 0
    code: str = ""
    """Why it was denied or dropped; of connections that were passed on, the other neighbor."""
    text: str = ""
    tasks: CrossedTasks | None = None
    is_closed: bool = False
    """Whether it never changes again."""
    in_bytes: int = 0
    """Bytes of connections that came from the neighbor and were passed on; those of tasks are in `tasks`."""
    out_bytes: int = 0
    """Bytes of connections that were passed on to the neighbor."""
