"""The keyboard of a simulated machine, at which its owner sits at times."""

from dataclasses import dataclass

from messiahs.core.model.instants import SECOND


@dataclass(slots=True)
class Console:
    """A keyboard (mutable): how many use it now, and when the last one of them left."""

    users: int = 0
    left_at: int | None = None
    is_watched: bool = False

    def idle_seconds(self, now: int) -> int | None:
        """Give how long nobody has used it; None if nobody ever did, as if there were no sensor."""
        if self.users:
            return 0
        return None if self.left_at is None else (now - self.left_at) // SECOND
