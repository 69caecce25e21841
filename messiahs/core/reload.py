"""Another policy takes the place of the running one (MESSIAHS 2: policy is apart from mechanism, and may change).

What was granted, bound or searched for under the old one stays. The new one is asked from now on: neighbors hear at
once what it tells them, tasks that wait get a new round, and what is waited for is counted from now. Parts that stand
in both as they are keep what they remember.
"""

from messiahs.core import view_changes
from messiahs.core.executor import owner_rules
from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import PolicyChanged
from messiahs.core.model.instants import Instant
from messiahs.core.origin import placement
from messiahs.core.search import task_request
from messiahs.core.state.deciding import replace_policy
from messiahs.core.state.module import ModuleState
from messiahs.core.update import status_vector


def on_policy_changed(state: ModuleState, event: PolicyChanged, now: Instant) -> tuple[Action, ...]:
    """Take up a policy."""
    replace_policy(state, event.policy)
    status_vector.wait_anew(state, now)
    task_request.watch_asks(state, now)
    for claim in state.origin.claims.values():
        placement.await_status(state, claim, now)
    owner_rules.restart_durations(state, now)
    status_vector.send_all_anew(state)
    advertised = view_changes.on_output_timeout(state, now)
    return (*advertised, *placement.search_everywhere(state, now))
