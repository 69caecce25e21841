"""Changes that neighbors are to be informed of: when the next vectors are sent (MESSIAHS 5.3.1)."""

from typing import Final

from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import MILLISECOND, Instant, after
from messiahs.core.state.module import ModuleState

CHANGE_INTERVAL_NS: Final = 50 * MILLISECOND
"""Minimum interval between two vectors that are sent because of a change."""
_CHANGE_DELAY_NS: Final = 10 * MILLISECOND
"""Suppresses changes that revert within the delay, as a place for a short task does."""


def mark_changed(state: ModuleState, now: Instant) -> None:
    """Schedule an advertisement: a fact shown by a vector may have changed."""
    if not state.timers.is_set(TimerKind.CHANGE, state.system):
        at, sent_at = after(now, _CHANGE_DELAY_NS), state.updates.sent_at
        if sent_at is not None:
            at = max(at, after(sent_at, CHANGE_INTERVAL_NS))
        state.timers.set(TimerKind.CHANGE, state.system, at)


def mark_view_changed(state: ModuleState, now: Instant) -> None:
    """Schedule new sums and an advertisement: a neighbor's view was added or removed, or changed in a key attribute."""
    state.updates.has_changes = True
    mark_changed(state, now)
