"""The ids by which an executor knows attempts: each attempt belongs to the claim in which it was brought.

The id of an attempt names its origin, and whether its sender is that origin is the word of others. So what one claim
says about an attempt concerns no other claim: an id that is in use in another claim stands for another attempt here.
"""

from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId
from messiahs.core.state.module import ModuleState

_EPOCH_BITS = 64


def row_of(state: ModuleState, claim: ClaimId, attempt: AttemptId, /) -> AttemptRow | None:
    """Return the row of an attempt by the id that its origin uses; None if it is not here in that claim."""
    row = state.executor.attempts.get(local_id(state, claim, attempt))
    return row if row is not None and (row.claim, row.named) == (claim, attempt) else None


def has_terminal(state: ModuleState, attempt: AttemptId, *, claim: ClaimId) -> bool:
    """Return whether an attempt of a claim that was granted here is still here and has a terminal."""
    row = row_of(state, claim, attempt)
    return row is not None and row.command.terminal is not None


def attempt_row(state: ModuleState, attempt: AttemptId) -> AttemptRow | None:
    """Return the row of an attempt by the executor's own id; None if it is not here."""
    return state.executor.attempts.get(attempt)


def remembered_claim(state: ModuleState, claim: ClaimId) -> GrantedClaimRow | None:
    """Return a claim that this module has granted, also after its end while attempts in it are being ended.

    None: it has granted no such claim, or forgotten it.
    """
    granted = state.executor.claims.get(claim) or state.executor.released.get(claim)
    return granted.row if granted is not None else None


def neighbor_of(state: ModuleState, attempt: AttemptId) -> SystemId | None:
    """Return the neighbor through which an attempt came, by its local id; None if it is not here, or not from there."""
    row = state.executor.attempts.get(attempt)
    if row is None:
        return None
    claim = remembered_claim(state, row.claim)
    return claim.via if claim is not None and claim.via != state.system else None


def local_id(state: ModuleState, claim: ClaimId, attempt: AttemptId, /) -> AttemptId:
    """Return the id by which this executor and its back end know an attempt of a claim."""
    return state.executor.aliases.get((claim, attempt), attempt)


def new_id(state: ModuleState, attempt: AttemptId) -> AttemptId:
    """Return the id for an attempt that is new in its claim: its own, unless another claim has that one here.

    Then it differs in its epoch, which is drawn, and which users do not see.
    """
    if attempt not in state.executor.attempts:
        return attempt
    return AttemptId(attempt.task._replace(epoch=Epoch(state.randomness.bits(_EPOCH_BITS))), attempt.number)


def enter_row(state: ModuleState, row: AttemptRow) -> None:
    """Enter a new or stored attempt."""
    state.executor.attempts[row.id] = row
    if row.id != row.named:
        state.executor.aliases[row.claim, row.named] = row.id


def leave_row(state: ModuleState, attempt: AttemptId) -> None:
    """Forget an attempt, by its local id."""
    row = state.executor.attempts.pop(attempt)
    state.executor.aliases.pop((row.claim, row.named), None)
