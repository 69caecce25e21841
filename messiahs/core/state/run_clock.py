"""How long an attempt runs, as its origin hears of it."""

from dataclasses import dataclass

from messiahs.core.model.instants import Instant


@dataclass(slots=True)
class RunClock:
    """How long an attempt was reported as running (mutable): before `since`, and since then."""

    since: Instant | None = None
    ran_ns: int = 0
