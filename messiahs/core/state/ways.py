"""The ways that bytes of claims take from this module, at an origin or hop. Not stored."""

from dataclasses import dataclass, field

from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Detour:
    """Why the bytes of new claims do not go straight to a server, and until when."""

    until: Instant
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
