"""Results that are kept at their executor until their origin has acknowledged them (MESSIAHS 5.3.2 task_status)."""

from typing import Final

from messiahs.core.interface.messages import TaskState
from messiahs.core.model.instants import HOUR
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.module import ModuleState

RESULTS_KEPT_NS: Final = 24 * HOUR
"""How long unacknowledged results are kept after the lease of their claim has expired, or the deadline of a drain."""
_RESULTS: Final = (TaskState.FINISHED, TaskState.ABORTED, TaskState.KILLED)


def has_results(state: ModuleState, claim: GrantedClaim) -> bool:
    """Return whether a claim has results that its origin has not acknowledged."""
    return any(state.executor.attempts[each].status.state in _RESULTS for each in claim.attempts)
