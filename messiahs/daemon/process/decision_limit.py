"""How many decisions about messages of one neighbor are in the daemon's log, so that it cannot rotate the log away."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.actions import Action, Decision
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant, after

LIMIT: Final = 20
"""Decisions of one kind for one neighbor in a window; the audit log counts them all."""
WINDOW_NS: Final = 10 * SECOND


@dataclass(slots=True, kw_only=True)
class _Window:
    """Decisions since the window began (mutable)."""

    ends_at: Instant
    count: int = 0

    @property
    def omitted(self) -> int:
        return max(0, self.count - LIMIT)


class DecisionLimit:
    """Leaves decisions out that repeat too fast (mutable), except those about tasks of the own users."""

    def __init__(self, own: SystemId) -> None:
        self._own_tasks = f"{own}."
        self._windows: dict[tuple[SystemId, str], _Window] = {}

    def within(self, neighbor: SystemId, actions: tuple[Action, ...], now: Instant) -> tuple[Action, ...]:
        """Return the actions that a message of a neighbor has caused, without decisions that are too many."""
        return tuple(
            action for action in actions if not isinstance(action, Decision) or self._admits(neighbor, action, now)
        )

    def omitted(self, now: Instant) -> Iterator[Decision]:
        """Yield, for each window that has ended, how many decisions were left out."""
        for key in [key for key, window in self._windows.items() if window.ends_at <= now]:
            window, (neighbor, what) = self._windows.pop(key), key
            if window.omitted:
                text = f"{window.omitted} more for it are left out here; `messiahs audit decisions` counts them"
                yield Decision(what=what, task=neighbor, text=text)

    def _admits(self, neighbor: SystemId, decision: Decision, now: Instant) -> bool:
        if decision.task.startswith(self._own_tasks):
            return True
        window = self._windows.setdefault((neighbor, decision.what), _Window(ends_at=after(now, WINDOW_NS)))
        window.count += 1
        return window.count <= LIMIT
