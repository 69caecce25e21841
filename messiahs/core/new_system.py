"""A neighbor whose epoch has changed without an announcement: another system with the same name (MESSIAHS 5.3.2).

A module that continues in a new epoch names its former ones in its hello (epochs.py). One that does not has lost its
state, or has never been the system of before. What that system had a part in is not the new one's: claims that were
granted through it have lost their path, and their attempts may still run until their leases expire.
"""

from dataclasses import replace

from messiahs.core.border.shown_ids import leave_claim
from messiahs.core.executor.claims import end_claim
from messiahs.core.interface.actions import Action, Forget, Report, ReportCode, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.placement import fill
from messiahs.core.relay.byte_route import forget_ways
from messiahs.core.search.routing import on_neighbor_lost
from messiahs.core.state.lives import HeldPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim


def on_new_system(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Report a neighbor that has become another system, and close all that was open with the earlier one.

    Claims granted to it end here, with their attempts. Claims held through it take no more tasks, and nothing that the
    new system says about them counts.
    """
    text = f"{neighbor} has lost its state, or is another system with its name: its claims of before have ended"
    actions: list[Action] = [Report(neighbor=neighbor, code=ReportCode.NEW_EPOCH, text=text)]
    actions.extend(on_neighbor_lost(state, neighbor, now))
    for granted in [each for each in state.executor.claims.values() if each.row.via == neighbor]:
        actions.extend(end_claim(state, granted, now, cause=Cause.LEASE_EXPIRED))
    passing = state.hop.passed.values()
    for passed in [each for each in passing if neighbor in (each.toward_origin, each.toward_executor)]:
        del state.hop.passed[passed.id]
        forget_ways(state, passed.id)
        actions.extend((Forget(key=(RowKind.PASSED_CLAIM, passed.id)), *leave_claim(state, passed)))
    for held in [each for each in state.origin.claims.values() if each.row.via == neighbor]:
        actions.extend(_cut_off(state, held, now))
    return tuple(actions)


def _cut_off(state: ModuleState, held: HeldClaim, now: Instant) -> tuple[Action, ...]:
    held.row = replace(held.row, is_cut_off=True)
    held.enter(HeldPhase.ENDING)
    return (Store(row=held.row), *fill(state, held, now))
