"""Default transfer: no task is requested or offered."""

from dataclasses import dataclass

from messiahs.core.interface.policies import Asking, RunningQuery


@dataclass(frozen=True, slots=True)
class NoTransfer:
    """Requests no task, and offers none."""

    asks: tuple[Asking, ...] = ()
    keep_at_least: int = 0
    offers_running: bool = False
    reads_memory: bool = False
    reads_waiting: bool = False

    def offers(self, query: RunningQuery, /) -> bool:
        """Return False."""
        del query
        return False
