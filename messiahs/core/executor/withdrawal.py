"""Withdrawing claims: they take no more tasks, and what runs in them continues (MESSIAHS 6.2)."""

from dataclasses import replace

from messiahs.core.interface.actions import Action, SendControl, Store
from messiahs.core.interface.messages import ClaimEnd
from messiahs.core.model.instants import Instant
from messiahs.core.state.changes import mark_changed
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState


def withdraw(state: ModuleState, claim: GrantedClaim, now: Instant) -> tuple[Action, ...]:
    """End a claim for further tasks, and inform its origin; tasks in transit are still taken."""
    if claim.is_ending:
        return ()
    claim.enter(GrantedPhase.ENDING)
    claim.row = replace(claim.row, is_ending=True)
    mark_changed(state, now)
    return (Store(row=claim.row), SendControl(to=claim.row.via, message=ClaimEnd(claim=claim.row.id)))
