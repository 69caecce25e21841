"""What a host asks of a module's state between calls: pure functions, and frozen answers."""

from enum import Enum, auto

from messiahs.core.interface.rows import GrantedClaimRow
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId, Ticket
from messiahs.core.state.module import ModuleState


class Access(Enum):
    """Whether a peer may read what an attempt wrote here."""

    ALLOWED = auto()
    DENIED = auto()
    """It is not the origin of the claim, or has not its ticket."""
    GONE = auto()
    """Nothing is known here of the claim, or of the attempt in it, and nothing will be."""


def is_origin_of(claim: GrantedClaimRow, peer: SystemId, *, ticket: Ticket) -> bool:
    """Say whether a peer may bring files for a claim and read what its attempts wrote: its origin, with its ticket."""
    return claim.origin == peer and claim.ticket == ticket


def read_access(state: ModuleState, peer: SystemId, *, claim: ClaimId, ticket: Ticket, attempt: AttemptId) -> Access:
    """Say whether a peer may read what an attempt of a claim wrote here."""
    granted = state.executor.claims.get(claim)
    if granted is None:
        return Access.GONE
    if not is_origin_of(granted.row, peer, ticket=ticket):
        return Access.DENIED
    row = state.executor.attempts.get(attempt)
    return Access.ALLOWED if row is not None and row.claim == claim else Access.GONE
