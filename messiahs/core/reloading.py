"""Another policy takes the place of the running one (MESSIAHS 2: policy is apart from mechanism, and may change).

What was granted, bound or searched for under the old one stays. The new one is asked from now on: neighbors hear at
once what it tells them, tasks that wait get a new round, and what is waited for is counted from now.
"""

from messiahs.core import guarding, placing, sharing, updating
from messiahs.core.actions import Action
from messiahs.core.events import PolicyChanged
from messiahs.core.instants import Instant
from messiahs.core.state import ModuleState


def on_policy_changed(state: ModuleState, event: PolicyChanged, now: Instant) -> tuple[Action, ...]:
    """Take up a policy."""
    state.policy = event.policy
    updating.wait_anew(state, now)
    sharing.watch_asks(state, now)
    for claim in state.origin.claims.values():
        placing.await_status(state, claim, now)
    guarding.count_anew(state, now)
    updating.forget_told(state)
    advertised = updating.on_output_timeout(state, now)
    return (*advertised, *placing.look_everywhere(state, now))
