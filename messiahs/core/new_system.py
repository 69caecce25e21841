"""A neighbor whose epoch has changed without an announcement: another system with the same name (MESSIAHS 5.3.2).

A module that continues in a new epoch names its former ones in its hello (epochs.py). One that does not has lost its
state, or has never been the system of before. What that system had a part in is not the new one's: claims that were
granted through it have lost their path, and their attempts may still run until their leases expire.
"""

from messiahs.core.closing import close_claims
from messiahs.core.interface.actions import Action, Report, ReportCode
from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.search.routing import on_neighbor_lost
from messiahs.core.state.module import ModuleState
from messiahs.core.update.histories import forget_history
from messiahs.core.update.link_costs import forget_link


def on_new_system(state: ModuleState, neighbor: SystemId, now: Instant) -> tuple[Action, ...]:
    """Report a neighbor that has become another system, and close all that was open with the earlier one.

    Claims granted to it end here, with their attempts. Claims held through it take no more tasks, and nothing that the
    new system says about them counts.
    """
    text = f"{neighbor} has lost its state, or is another system with its name: its claims of before have ended"
    report = Report(neighbor=neighbor, code=ReportCode.NEW_EPOCH, text=text)
    forget_history(state, neighbor)
    forget_link(state, neighbor)
    lost = on_neighbor_lost(state, neighbor, now)
    return (report, *lost, *close_claims(state, neighbor, now, cause=Cause.LEASE_EXPIRED))
