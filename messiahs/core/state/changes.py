"""Changes that neighbors are to hear of: when the next vectors leave (MESSIAHS 5.3.1)."""

from typing import Final

from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import MILLISECOND, Instant, after
from messiahs.core.state.module import ModuleState

CHANGE_INTERVAL_NS: Final = 50 * MILLISECOND
"""Minimum time between two vectors that a change causes."""
_CHANGE_DELAY_NS: Final = 10 * MILLISECOND
"""Suppresses changes that revert within the delay, as a place for a short task does."""


def mark_changed(state: ModuleState, now: Instant) -> None:
    """Advertise soon: something that a vector shows may have changed."""
    if not state.timers.is_set(TimerKind.CHANGE, state.system):
        at, sent_at = after(now, _CHANGE_DELAY_NS), state.updates.sent_at
        if sent_at is not None:
            at = max(at, after(sent_at, CHANGE_INTERVAL_NS))
        state.timers.set(TimerKind.CHANGE, state.system, at)


def mark_news(state: ModuleState, now: Instant) -> None:
    """Compute the sums anew and advertise them soon: a neighbor's view came, went, or changed in a key."""
    state.updates.has_news = True
    mark_changed(state, now)
