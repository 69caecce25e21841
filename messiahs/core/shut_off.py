"""Neighbors that the administrator has shut off: no message, no task and no byte passes between them and this module.

Not in the papers, which leave it to each administrator with whom to work (MESSIAHS 2: autonomy). The row is stored in
the transaction in which everything open with the neighbor is closed, so a crash leaves all of it or nothing.
"""

from typing import Final

from messiahs.core.audit.folds import note_act
from messiahs.core.closing import close_claims
from messiahs.core.interface.actions import Action, Answer, Decision, Forget, Readmit, ShutOff, Store
from messiahs.core.interface.audit_row import Crossed
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import ShutOffRequested
from messiahs.core.interface.membership_rows import SHUT_OFF_HERE, ShutOffRow
from messiahs.core.interface.rows import RowKind
from messiahs.core.link import close_link
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState

READMITTED: Final = "it was readmitted, and no connection has been made since"


def on_shut_off_requested(state: ModuleState, event: ShutOffRequested, now: Instant) -> tuple[Action, ...]:
    """Shut a neighbor off or readmit it, and answer; what is so already only gets the answer, with a new reason."""
    if event.neighbor not in state.neighbors and event.neighbor not in state.shut_off:
        problem = f"{event.neighbor} is no neighbor of {state.system}"
        return (Answer(answer_to=event.answer_to, problem=problem),)
    changed = _shut_off(state, event, now) if event.is_off else _readmit(state, event, now)
    return (*changed, Answer(answer_to=event.answer_to))


def restore(state: ModuleState, row: ShutOffRow) -> None:
    """Enter a stored row; the host refuses the neighbor from its start on."""
    state.shut_off[row.system] = row
    state.updates.unlinked[row.system] = SHUT_OFF_HERE


def _shut_off(state: ModuleState, event: ShutOffRequested, now: Instant) -> tuple[Action, ...]:
    before = state.shut_off.get(event.neighbor)
    since = before.since if before is not None else now
    row = ShutOffRow(system=event.neighbor, since=since, text=event.text)
    state.shut_off[event.neighbor] = row
    if before is not None:
        if before.text == event.text:
            return (Store(row=row),)
        return (Store(row=row), *note_act(state, event.neighbor, Crossed.SHUT_OFF, text=event.text, now=now))
    # First the claims: their places and searches are no longer those of a neighbor that may come back.
    closed = close_claims(state, event.neighbor, now, cause=Cause.REVOKED)
    unlinked = close_link(state, event.neighbor, now, text=SHUT_OFF_HERE)
    decision = Decision(what="shut_off", task=event.neighbor, text=event.text)
    noted = note_act(state, event.neighbor, Crossed.SHUT_OFF, text=event.text, now=now)
    return (Store(row=row), *noted, decision, *closed, *unlinked, ShutOff(neighbor=event.neighbor))


def _readmit(state: ModuleState, event: ShutOffRequested, now: Instant) -> tuple[Action, ...]:
    if state.shut_off.pop(event.neighbor, None) is None:
        return ()
    state.updates.unlinked.pop(event.neighbor, None)
    if event.neighbor in state.neighbors:
        state.updates.unlinked[event.neighbor] = READMITTED
    decision = Decision(what="readmitted", task=event.neighbor, text=event.text)
    noted = note_act(state, event.neighbor, Crossed.READMITTED, text=event.text, now=now)
    return (Forget(key=(RowKind.SHUT_OFF, event.neighbor)), *noted, decision, Readmit(neighbor=event.neighbor))
