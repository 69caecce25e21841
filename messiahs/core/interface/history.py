"""The history of a task, as its users read it."""

from dataclasses import dataclass

from messiahs.core.model.instants import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One step in the life of a task, shown to users: an attempt bound, suspended, resumed, lost, ended."""

    at: Instant
    event: str
    attempt: int = 0
    module: str = ""
    text: str = ""
    exit_code: int | None = None
    """The exit code of an attempt that has exited; None in all other entries, and in rows of earlier releases."""
