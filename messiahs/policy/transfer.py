"""When to send away or ask, where a policy says nothing of it: nothing is asked for or offered."""

from dataclasses import dataclass

from messiahs.core.interface.policies import Asking, RunningQuery


@dataclass(frozen=True, slots=True)
class NoTransfer:
    """Asks for no task, and offers none."""

    asks: tuple[Asking, ...] = ()
    keep_at_least: int = 0
    offers_running: bool = False
    reads_memory: bool = False
    reads_waiting: bool = False

    def offers(self, query: RunningQuery, /) -> bool:
        """Offer nothing."""
        del query
        return False
