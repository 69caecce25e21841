"""Why a task makes no progress, as its origin knows it: its bytes do not move, or its attempt may be lost."""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.rows import TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim

_NOT_BROUGHT = (Cause.REFUSED, Cause.UNREACHABLE)
_BETWEEN = ("bound", "route")
"""Events between one attempt that was not brought to its executor and the next one."""


class Delayed(StrEnum):
    """What of a task does not move."""

    INPUTS = "inputs"
    OUTPUTS = "outputs"
    ATTEMPT = "attempt"
    """No report on it can come any more, although it may still run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """What of a task does not move, and the last failure as text."""

    of: Delayed
    since: Instant | None
    """None if that is unknown, after a restart."""
    text: str
    until: Instant | None = None
    """Of an attempt: when its lease expires as the origin counts it, and the task runs again."""


def delay_of(state: ModuleState, row: TaskRow) -> Delay | None:
    """Return why a task is not brought to its executor, is not heard of, or its outputs do not come home.

    None if nothing failed. Several attempts in a row that were refused, or did not reach their executor, are one delay.
    """
    attempt = AttemptId(row.id, row.attempt)
    trouble = state.origin.fetch_troubles.get(attempt)
    if trouble is not None:
        return Delay(of=Delayed.OUTPUTS, since=trouble.since, text=trouble.text)
    failed = _failed(row.history)
    claim = state.origin.claims.get(row.claim) if row.claim is not None else None
    if claim is None:
        return Delay(of=Delayed.INPUTS, since=failed[0].at, text=failed[-1].text) if failed else None
    why_lost = _why_lost(state, claim)
    if why_lost:
        until = state.timers.deadline_of(TimerKind.HELD_LEASE, claim.row.id)
        return Delay(of=Delayed.ATTEMPT, since=claim.unknown_since, text=why_lost, until=until)
    text = (claim.refusal or claim.stream_failure) if attempt in claim.unconfirmed else ""
    if not text:
        return None
    return Delay(of=Delayed.INPUTS, since=failed[0].at if failed else claim.bound[attempt], text=text)


def _why_lost(state: ModuleState, claim: HeldClaim) -> str:
    """Return why no report on the attempts of a claim can come; empty if one can.

    Only their executor knows whether they run, so none begins again before their lease has expired.
    """
    if claim.row.is_cut_off:
        return f"{_why_closed(state, claim.row.via)} after the task had gone there"
    return f"{claim.row.via}, or a system behind it, does not know the task any more" if claim.unknown_since else ""


def _why_closed(state: ModuleState, neighbor: SystemId) -> str:
    """Return why what was open with a neighbor was closed."""
    if neighbor in state.shut_off:
        return f"{neighbor} was shut off at this module"
    if neighbor in state.membership.removed:
        return f"{neighbor} was removed from the neighbors of this module"
    return f"the link with {neighbor} was ended, or it has lost its state,"


def _failed(history: tuple[HistoryEntry, ...]) -> tuple[HistoryEntry, ...]:
    """Return the latest attempts in a row that were not brought to their executor, the oldest first."""
    failed: list[HistoryEntry] = []
    for entry in reversed(history):
        if entry.event in _NOT_BROUGHT:
            failed.append(entry)
        elif entry.event not in _BETWEEN:
            break
    return tuple(reversed(failed))
