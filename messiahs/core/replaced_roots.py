"""Replacing the roots that this module trusts, and those that vouch for it, while it runs (MESSIAHS 2: autonomy).

A site gets a new root while the old one is in force still: for a while both vouch for its modules, then the new one
alone. A module that compared the roots of others with those of its start would take modules of its own site for those
of another. Claims keep the way that was chosen for them: it was proved by the handshakes of its connections.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import RootsChanged
from messiahs.core.membership.siblings import own_request
from messiahs.core.model.instants import Instant
from messiahs.core.origin import rounds
from messiahs.core.relay import reachability
from messiahs.core.state.module import ModuleState


def on_roots_changed(state: ModuleState, event: RootsChanged, now: Instant) -> tuple[Action, ...]:
    """Use other roots and another key from now on; what failed for lack of trust is tried anew."""
    before = state.identity
    state.identity = replace(
        before,
        key=event.key,
        trust=event.trust,
        apart=event.apart,
        apart_roots=event.apart_roots,
        other_sites=event.other_sites,
    )
    if state.identity == before:
        return ()
    reachability.trust_anew(state)
    asked: tuple[Action, ...] = ()
    if state.membership.refused:
        # The parent assigns these siblings again, and the roots of this site are compared anew.
        state.membership.refused.clear()
        asked = own_request(state)
    return (*asked, *rounds.search_everywhere(state, now))
