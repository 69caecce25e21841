"""An announced maintenance: until it begins, the own machine takes the tasks that end before (MESSIAHS 2: autonomy).

A task that states no time is taken, too: it runs to its end, or until the deadline of the drain that begins then.
"""

from typing import Final

from messiahs.core.interface.membership_rows import DrainRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.instants import SECOND, Instant, after, instant_text
from messiahs.core.model.texts import AWAY
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.matching import time_limit_ns

CHECK_INTERVAL_NS: Final = 30 * SECOND
"""Interval at which claims are checked for tasks that would end too late; also how long before it a task must end."""


def why_too_late(state: ModuleState, tdv: TDV, now: Instant) -> str:
    """Return why a task would not end before the announced maintenance; empty if it would, or if there is none."""
    announced = state.membership.announced
    if announced is None or announced.begins is None:
        return ""
    # A task without a time may begin until the end.
    if after(now, (time_limit_ns(tdv) or 0) + CHECK_INTERVAL_NS) <= announced.begins:
        return ""
    return f"{maintenance_text(announced)}: it takes tasks that end before, by their --time"


def maintenance_text(announced: DrainRow) -> str:
    """Return when an announced maintenance begins, and why, for those who ask."""
    assert announced.begins is not None, "a drain that has begun is not announced"
    why = f" ({announced.text})" if announced.text else ""
    return f"{AWAY} from {instant_text(announced.begins)}{why}"
