"""Who watches a module at work: it sees each step of the core, and each commit, and changes nothing."""

from typing import Protocol

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import Event
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant


class Watcher(Protocol):
    """Is called in the event loop, must not block, and never raises."""

    def on_step(self, event: Event | None, actions: tuple[Action, ...], now: Instant, /) -> None:
        """See a step of the core: its event (None: a timeout, or the start), and the actions that follow from it."""

    def on_commit(self, rows: int, duration_ns: int, /) -> None:
        """See that a transaction is stored, how many rows it had, and how long it took until this was known."""

    def on_throttled(self, neighbor: SystemId, /) -> None:
        """See that a neighbor was made to wait for a second because it uses more than its share."""
