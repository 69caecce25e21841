"""The machine that its owner does not lend (`lend off`), and what those who ask are told (MESSIAHS 2: autonomy)."""

from messiahs.core.interface.lending import Lent
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import instant_text
from messiahs.core.model.texts import NOT_LENT
from messiahs.core.state.module import ModuleState


def is_withheld_from(state: ModuleState, asker: SystemId) -> bool:
    """Return whether the owner withholds the machine from the tasks that a neighbor brings; never from own users'."""
    return asker != state.system and state.executor.is_withheld


def why_withheld(state: ModuleState, asker: SystemId) -> str:
    """Return why the machine takes no task of a neighbor, and until when if the policy reveals anything to it."""
    row = state.executor.lending
    if row is None or not is_withheld_from(state, asker):
        return ""
    neighbor = state.neighbors.get(asker)
    is_told = neighbor is not None and state.policy.disclosure.reveals_to(neighbor)
    return f"{NOT_LENT} until {instant_text(row.until)}" if is_told and row.until is not None else NOT_LENT


def dial_of(state: ModuleState) -> Lent:
    """Return the position of the owner's dial, which policies read as `$here.lent`."""
    row = state.executor.lending
    if row is None:
        return Lent.POLICY
    return Lent.ON if row.is_on else Lent.OFF
