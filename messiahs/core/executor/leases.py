"""The lease of a claim at its executor, as the answers of the origin to renewals extend it (MESSIAHS 6.2)."""

from dataclasses import replace

from messiahs.core.interface.actions import Action, ExtendLease, Store
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import after
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState


def answer_renewal(
    state: ModuleState, claim: GrantedClaim, renewal: int, /, *, lease_ns: int = 0
) -> tuple[Action, ...]:
    """Extend a lease, counted from when the renewal was sent, not from when its answer arrived.

    It also becomes as long as the origin counts it, within the policy; it never becomes shorter.
    """
    sent_at = claim.renewal_sent_at.pop(renewal, None)
    if sent_at is None or claim.phase is GrantedPhase.EXPIRED:
        return ()
    lease_ns = max(claim.row.lease_ns, min(lease_ns, state.policy.timeouts.lease_ns))
    until = max(claim.row.lease_until, after(sent_at, lease_ns))
    if until == claim.row.lease_until:
        return ()
    claim.row = replace(claim.row, lease_until=until, lease_ns=lease_ns)
    state.timers.set(TimerKind.GRANTED_LEASE, claim.row.id, until)
    return (Store(row=claim.row), ExtendLease(claim=claim.row.id, until=until))
