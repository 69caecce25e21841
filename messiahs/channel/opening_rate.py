"""How fast other systems may open streams (MESSIAHS 5.3).

gRPC presents new streams of all systems one by one, in their order. One that opened thousands again and again would
delay those of others, and nothing of that is seen here. So its further streams wait, open and unread, and it cannot
open as many more.
"""

from typing import Final

from messiahs.core.model.ids import SystemId

STREAMS_PER_SECOND: Final = 200
BURST_SECONDS: Final = 2.0
"""A system that was quiet may open the streams of so long at once."""
LONGEST_SECONDS: Final = 30.0
_KNOWN: Final = 1_024


class OpeningRate:
    """When each system may open its next stream (mutable). Instants are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._free_at: dict[SystemId, float] = {}

    def delay(self, system: SystemId, now: float) -> float:
        """Count a stream that a system opens now, and return for how many seconds it has to wait."""
        earliest, latest = now - BURST_SECONDS, now + LONGEST_SECONDS
        free_at = min(latest, max(earliest, self._free_at.get(system, earliest)) + 1 / STREAMS_PER_SECOND)
        self._free_at[system] = free_at
        if len(self._free_at) > _KNOWN:
            self._free_at = {each: at for each, at in self._free_at.items() if at > earliest}
        return max(0.0, free_at - now)

    @property
    def known(self) -> int:
        """The number of systems that are remembered."""
        return len(self._free_at)
