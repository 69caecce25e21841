"""The run time of an attempt, as reported to its origin."""

from dataclasses import dataclass

from messiahs.core.model.instants import Instant


@dataclass(slots=True)
class RunClock:
    """The time for which an attempt was reported as running (mutable): in total before `since`, and from then on."""

    since: Instant | None = None
    ran_ns: int = 0
