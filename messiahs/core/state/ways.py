"""The ways that bytes of claims take from this module, at an origin or hop. Not stored."""

from dataclasses import dataclass, field

from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Duration, Instant, after
from messiahs.core.model.trust import Trust

FIRST_PAUSE_NS = Duration(10 * SECOND)
LONGEST_PAUSE_NS = Duration(5 * MINUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """How long a system that was not reached is left alone; the next failure after it doubles its length."""

    until: Instant
    length_ns: Duration

    def is_forgotten(self, now: Instant) -> bool:
        """Return whether it ended so long ago that the next failure counts as the first one."""
        return now >= after(self.until, LONGEST_PAUSE_NS)


def pause_after(before: Pause | None, /, *, is_final: bool, now: Instant) -> Pause:
    """Return the pause after another failure.

    A lack of trust is final, and pauses for the longest time at once. Failures during a pause do not lengthen it.
    """
    length_ns = FIRST_PAUSE_NS
    if is_final:
        length_ns = LONGEST_PAUSE_NS
    elif before is not None and now < before.until:
        return before
    elif before is not None and not before.is_forgotten(now):
        length_ns = Duration(min(2 * before.length_ns, LONGEST_PAUSE_NS))
    return Pause(until=after(now, length_ns), length_ns=length_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Avoided:
    """How long an executor whose task stream failed is not asked for places; final for lack of trust."""

    pause: Pause
    is_final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Detour:
    """Why the bytes of new claims do not go straight to a server, and for how long."""

    pause: Pause
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bringer:
    """The system that sent tasks of a claim last, with the fingerprint of its key."""

    system: SystemId
    key: bytes


@dataclass(slots=True)
class Ways:
    """Straight legs that were given up, and who sends tasks through here (mutable)."""

    given_up: dict[ClaimId, str] = field(default_factory=dict)
    """Claims whose straight leg is not used, and why."""
    detours: dict[SystemId, Detour] = field(default_factory=dict)
    """Servers that could not be reached straight a short while ago."""
    bringers: dict[ClaimId, Bringer] = field(default_factory=dict)
    """Who brought the tasks of a claim that passes through here."""
    refused: dict[tuple[SystemId, Trust, bytes], Pause] = field(default_factory=dict)
    """Machines whose bytes do not pass here: by the neighbor toward them, the origin's roots and their mark."""
