"""The history of tasks as shown to users: where an attempt was bound, and which way its bytes take."""

from collections.abc import Iterable
from dataclasses import replace

from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import Instant
from messiahs.core.model.routes import Splice
from messiahs.core.relay.byte_route import ANOTHER_SERVER, leg_of
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim

_HISTORY_LIMIT = 100


def longer(history: tuple[HistoryEntry, ...], /, *entries: HistoryEntry) -> tuple[HistoryEntry, ...]:
    """Return a history with more entries; only the latest entries of a long history are kept."""
    return (*history[len(entries) - _HISTORY_LIMIT :], *entries)


def way_entry(state: ModuleState, claim: HeldClaim, now: Instant) -> HistoryEntry | None:
    """Return through which system the bytes of a claim go, and why not straight; None if they go straight."""
    route, executor = claim.row.route, claim.row.id.executor
    leg, server = leg_of(state, claim.row.id, route), route.straight.system
    why_nots: list[str] = []
    if server != executor:
        why_nots.append(f"{executor} is not reached straight: {ANOTHER_SERVER}")
    if leg.system != server:
        why_not = state.ways.given_up.get(claim.row.id, "it has the name of this system")
        why_nots.append(f"{server} is not reached straight: {why_not}")
    if isinstance(leg.address, Splice):
        hop, through = leg.address.hop, f"through {leg.address.hop}, which cannot read it"
    elif why_nots:
        hop, through = leg.system, f"through {leg.system}"
    else:
        return None
    return HistoryEntry(at=now, event="route", module=hop, text="; ".join((through, *why_nots)))


def note_way(
    state: ModuleState, claim: HeldClaim, attempts: Iterable[AttemptId], /, now: Instant
) -> tuple[Action, ...]:
    """Record the present way of a claim in the history of bound attempts that use it."""
    entry = way_entry(state, claim, now)
    if entry is None:
        return ()
    stores: list[Action] = []
    for attempt in attempts:
        row = state.origin.tasks[attempt.task]
        row = replace(row, history=longer(row.history, replace(entry, attempt=attempt.number)))
        state.origin.tasks[row.id] = row
        stores.append(Store(row=row))
    return tuple(stores)
