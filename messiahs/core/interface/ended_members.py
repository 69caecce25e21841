"""How members of a submission have ended, as its row says it."""

from dataclasses import dataclass

from messiahs.core.interface.messages import Reason, TaskState
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.model.instants import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class UntriedEnd:
    """Members `first` to `last` of a submission that ended before they were tried."""

    first: int
    last: int
    state: TaskState
    ended_at: Instant
    reasons: tuple[Reason, ...] = ()
    search: SearchRecord | None = None
    """The last search for their places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedMembers:
    """How many members of a submission ended in one state with one exit code (None: without one)."""

    state: TaskState
    exit_code: int | None
    count: int
