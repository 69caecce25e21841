"""Closing what is open with a neighbor: claims granted to it, held through it, and passed between it and others.

Closing does not wait for the neighbor. Attempts that may still run beyond it are lost when their leases expire, so that
no two attempts of a task overlap. Withdrawing does wait: claims take no more tasks, and end when those in them have.
"""

from dataclasses import dataclass, replace

from messiahs.core.border.shown_ids import leave_claim
from messiahs.core.executor.claims import end_claim
from messiahs.core.executor.kept_results import has_results
from messiahs.core.executor.withdrawal import withdraw
from messiahs.core.interface.actions import Action, Forget, SendControl, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import ClaimEnd, TaskState
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
    actions.extend(forget_passed(state, neighbor))
    for held in [each for each in state.origin.claims.values() if each.row.via == neighbor]:
        actions.extend(_cut_off(state, held, now))
    return tuple(actions)


def withdraw_claims(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Let no more tasks into the claims that use the link with a neighbor, and inform their origins."""
    actions: list[Action] = []
    for granted in [each for each in state.executor.claims.values() if each.row.via == neighbor]:
        actions.extend(withdraw(state, granted, now))
    passing = state.hop.passed.values()
    actions.extend(withdraw_passed(each) for each in passing if neighbor in (each.toward_origin, each.toward_executor))
    for held in [each for each in state.origin.claims.values() if each.row.via == neighbor]:
        held.enter(HeldPhase.ENDING)
        actions.extend(fill(state, held, now))
    return tuple(actions)


def withdraw_all(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Let no more tasks into the claims that this module has granted or passes on, and inform their origins."""
    granted = tuple(state.executor.claims.values())
    withdrawn = tuple(action for claim in granted for action in withdraw(state, claim, now))
    return (*withdrawn, *(withdraw_passed(passed) for passed in state.hop.passed.values()))


def close_unused(state: ModuleState, now: Instant, *, is_for_results: bool) -> tuple[Action, ...]:
    """End granted claims without a live attempt; if `is_for_results`, also those whose results are not acknowledged.

    An origin asks by name for the attempts that it had bound, and places their tasks elsewhere: none can start here.
    """
    actions: list[Action] = []
    for claim in tuple(state.executor.claims.values()):
        if not claim.live and (is_for_results or not has_results(state, claim)):
            end = ClaimEnd(claim=claim.row.id, is_forgotten=True)
            actions.extend(end_claim(state, claim, now, cause=Cause.REVOKED))
            actions.append(SendControl(to=claim.row.via, message=end))
    return tuple(actions)


def forget_passed(state: ModuleState, neighbor: SystemId) -> tuple[Action, ...]:
    """Forget the claims that pass between a neighbor and others, and tell these.

    What still runs in them is lost when the lease expires, so that no attempt overlaps with the next one.
    """
    passing = tuple(state.hop.passed.values())
    own = (each for each in passing if neighbor in (each.toward_origin, each.toward_executor))
    return tuple(action for passed in own for action in _forget(state, passed, neighbor))


def withdraw_passed(passed: PassedClaimRow) -> SendControl:
    """Tell the origin of a claim that no more tasks pass here, as its executor would."""
    return SendControl(to=passed.toward_origin, message=ClaimEnd(claim=passed.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What is open: claims granted to others, passed on, and held through others; and attempts that run or wait."""

    granted: int
    passed: int
    held: int
    attempts: int

    @property
    def is_empty(self) -> bool:
        """Whether no work of others is left: claims that are held are work of the own users."""
        return not (self.granted or self.passed or self.attempts)


def remaining(state: ModuleState) -> Remaining:
    """Count what a drained module still has to end, with the claims that it holds for its own users."""
    live = sum(row.status.state is TaskState.EXECUTING for row in state.executor.attempts.values())
    return Remaining(
        granted=len(state.executor.claims),
        passed=len(state.hop.passed),
        held=len(state.origin.claims),
        attempts=live,
    )


def own_tasks(state: ModuleState) -> int:
    """Count the tasks of the own users that have not ended, wherever they are."""
    return sum(each.open_members for each in state.origin.submissions.values())


def remaining_with(state: ModuleState, neighbor: SystemId) -> Remaining:
    """Count the claims that use the link with a neighbor, without those that are cut off from it."""
    granted = [claim for claim in state.executor.claims.values() if claim.row.via == neighbor]
    passed = (neighbor in (row.toward_origin, row.toward_executor) for row in state.hop.passed.values())
    held = (claim.row.via == neighbor and not claim.row.is_cut_off for claim in state.origin.claims.values())
    live = sum(claim.live for claim in granted)
    return Remaining(granted=len(granted), passed=sum(passed), held=sum(held), attempts=live)


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
