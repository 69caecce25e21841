"""Closing what is open with a neighbor: claims granted to it, held through it, and passed between it and others.

Nothing here waits for the neighbor. Attempts that may still run beyond it are lost when their leases expire, so that no
two attempts of a task overlap.
"""

from dataclasses import replace

from messiahs.core.border.shown_ids import leave_claim
from messiahs.core.executor.claims import end_claim
from messiahs.core.interface.actions import Action, Forget, SendControl, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import ClaimEnd
from messiahs.core.interface.rows import PassedClaimRow, RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.placement import fill
from messiahs.core.relay.byte_route import forget_ways
from messiahs.core.state.lives import HeldPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim


def close_claims(state: ModuleState, neighbor: SystemId, now: Instant, *, cause: Cause) -> tuple[Action, ...]:
    """End claims granted to a neighbor, with their attempts; forget those that pass, and cut off those held through it.

    A claim that is cut off takes no more tasks, and nothing that the neighbor says about it counts. The other neighbor
    of a claim that passed is told: an executor ends its attempts, an origin binds no more tasks.
    """
    actions: list[Action] = []
    for granted in [each for each in state.executor.claims.values() if each.row.via == neighbor]:
        actions.extend(end_claim(state, granted, now, cause=cause))
    passing = state.hop.passed.values()
    for passed in [each for each in passing if neighbor in (each.toward_origin, each.toward_executor)]:
        actions.extend(_forget(state, passed, neighbor))
    for held in [each for each in state.origin.claims.values() if each.row.via == neighbor]:
        actions.extend(_cut_off(state, held, now))
    return tuple(actions)


def _forget(state: ModuleState, passed: PassedClaimRow, neighbor: SystemId) -> tuple[Action, ...]:
    del state.hop.passed[passed.id]
    forget_ways(state, passed.id)
    forgotten = (Forget(key=(RowKind.PASSED_CLAIM, passed.id)), *leave_claim(state, passed))
    if neighbor == passed.toward_origin:
        return (*forgotten, SendControl(to=passed.toward_executor, message=ClaimEnd(claim=passed.id)))
    end = ClaimEnd(claim=passed.shown or passed.id, is_forgotten=True)
    return (*forgotten, SendControl(to=passed.toward_origin, message=end))


def _cut_off(state: ModuleState, held: HeldClaim, now: Instant) -> tuple[Action, ...]:
    held.row = replace(held.row, is_cut_off=True)
    held.enter(HeldPhase.ENDING)
    return (Store(row=held.row), *fill(state, held, now))
