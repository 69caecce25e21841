"""Replacing the running policy by another (MESSIAHS 2: policy is apart from mechanism, and may change).

Claims, bindings and searches made under the old policy remain. The new one applies from now on: neighbors are sent the
vectors that it allows at once, waiting tasks get a new round, and timeouts restart. Parts that are equal in both keep
their state.
"""

from messiahs.core import view_changes
from messiahs.core.executor import owner_rules
from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import PolicyChanged
from messiahs.core.model.instants import Instant
from messiahs.core.origin import resting, retention, rounds
from messiahs.core.search import task_request
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import replace_policy
from messiahs.core.update import histories, status_vector


def on_policy_changed(state: ModuleState, event: PolicyChanged, now: Instant) -> tuple[Action, ...]:
    """Replace the policy."""
    replace_policy(state, event.policy)
    state.request_tally.begin_anew(now)
    histories.on_policy_changed(state)
    status_vector.wait_anew(state, now)
    task_request.watch_asks(state, now)
    for claim in state.origin.claims.values():
        resting.await_status(state, claim, now)
    owner_rules.restart_durations(state, now)
    retention.on_policy_changed(state, now)
    status_vector.send_all_anew(state)
    advertised = view_changes.on_output_timeout(state, now)
    return (*advertised, *rounds.search_everywhere(state, now))
