"""The limits of the tasks of a claim: what they state, and else the most that the site gives to one task."""

from dataclasses import replace
from typing import Final

from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_limits import TaskLimits
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.matching import time_limit_ns

_TIME_TEXT: Final = "a task that states no time runs for at most {} s on this machine: state what it needs with --time"


def limits_of(state: ModuleState, claim: GrantedClaim) -> TaskLimits:
    """Return the resources that a task of a claim may use."""
    maxima, need = state.identity.maxima, claim.need
    memory_bytes, disk_bytes = need.mem_bytes or maxima.memory_bytes, need.disk_bytes or maxima.disk_bytes
    of_site = (
        ("mem", memory_bytes if not need.mem_bytes else None),
        ("disk", disk_bytes if not need.disk_bytes else None),
    )
    return TaskLimits(
        processors=max(1, claim.row.slots or need.slots),
        memory_bytes=memory_bytes,
        disk_bytes=disk_bytes,
        of_site=tuple(name for name, limit in of_site if limit is not None),
    )


def run_limit_ns(state: ModuleState, claim: GrantedClaim) -> int | None:
    """Return how long a task of a claim may run, in ns; None for as long as it likes."""
    seconds = state.identity.maxima.run_seconds
    return time_limit_ns(claim.row.tdv) or (None if seconds is None else seconds * SECOND)


def explained(state: ModuleState, claim: GrantedClaim | None, event: AttemptEnded, /) -> AttemptEnded:
    """Return the end of an attempt, with a text if a time limit that its task does not state has ended it."""
    seconds = state.identity.maxima.run_seconds
    if event.cause is not Cause.TIME_LIMIT or event.text or claim is None or seconds is None:
        return event
    return event if time_limit_ns(claim.row.tdv) else replace(event, text=_TIME_TEXT.format(seconds))
