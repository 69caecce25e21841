"""Why the bytes of a task do not move, as its origin knows it (MESSIAHS 5.3.3)."""

from dataclasses import dataclass

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.rows import HistoryEntry, TaskRow
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState

_NOT_BROUGHT = (Cause.REFUSED, Cause.UNREACHABLE)
_BETWEEN = ("bound", "route")
"""Events between one attempt that was not brought to its executor and the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Bytes of a task that could not be moved: those of its inputs, or (`is_output`) those of its outputs."""

    is_output: bool
    since: Instant
    text: str
    """The last failure."""


def delay_of(state: ModuleState, row: TaskRow) -> Delay | None:
    """Return why a task is not brought to its executor, or its outputs do not come home; None if nothing failed.

    Several attempts in a row that were refused, or did not reach their executor, are one delay.
    """
    attempt = AttemptId(row.id, row.attempt)
    trouble = state.origin.fetch_troubles.get(attempt)
    if trouble is not None:
        return Delay(is_output=True, since=trouble.since, text=trouble.text)
    failed = _failed(row.history)
    claim = state.origin.claims.get(row.claim) if row.claim is not None else None
    if claim is None:
        return Delay(is_output=False, since=failed[0].at, text=failed[-1].text) if failed else None
    text = (claim.refusal or claim.stream_failure) if attempt in claim.unconfirmed else ""
    if not text:
        return None
    return Delay(is_output=False, since=failed[0].at if failed else claim.bound[attempt], text=text)


def _failed(history: tuple[HistoryEntry, ...]) -> tuple[HistoryEntry, ...]:
    """Return the latest attempts in a row that were not brought to their executor, the oldest first."""
    failed: list[HistoryEntry] = []
    for entry in reversed(history):
        if entry.event in _NOT_BROUGHT:
            failed.append(entry)
        elif entry.event not in _BETWEEN:
            break
    return tuple(reversed(failed))
