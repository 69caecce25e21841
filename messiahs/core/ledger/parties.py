"""The parties of a request as a policy sees them: with their balance, their history and the costs of their link."""

from messiahs.core.interface.policies import Asker
from messiahs.core.ledger.accounts import balance_with
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.module import ModuleState


def asker_of(state: ModuleState, system: SystemId, relation: Relation, /, now: Instant) -> Asker:
    """Return the requester of places, as it is at `now`."""
    history = state.updates.histories.facts_of(system, now)
    return Asker(
        system=system,
        relation=relation,
        balance=balance_with(state, system),
        history=history,
        costs=state.updates.link_costs(system),
    )
