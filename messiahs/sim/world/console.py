"""The console of a simulated machine, used by its owner at times."""

from dataclasses import dataclass

from messiahs.core.model.instants import SECOND


@dataclass(slots=True)
class Console:
    """A console (mutable): the number of present users, and when the last one left."""

    users: int = 0
    left_at: int | None = None
    is_watched: bool = False

    def idle_seconds(self, now: int) -> int | None:
        """Return the time since its last use; None if it was never used, as if there were no sensor."""
        if self.users:
            return 0
        return None if self.left_at is None else (now - self.left_at) // SECOND
