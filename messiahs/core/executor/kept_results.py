"""Results that are kept at their executor until their origin has acknowledged them (MESSIAHS 5.3.2 task_status).

An origin that is away for hours misses none of its results, however many small ones there are. Long lists of outputs
are bounded for each neighbor, because it could leave them here: beyond a first bound it gets no places for further
tasks, and beyond a second one tasks that end with such lists are lost.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import AttemptStatus, TaskState
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import HOUR
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.module import ModuleState

RESULTS_KEPT_NS: Final = 24 * HOUR
"""How long unacknowledged results are kept after the lease of their claim has expired, or the deadline of a drain."""
CLOSED_BYTES: Final = 16 << 20
"""Size of the unacknowledged results of a neighbor beyond which it is granted no places and binds no further tasks."""
LOST_BYTES: Final = 64 << 20
"""Size of the unacknowledged results of a neighbor beyond which no list of outputs is kept."""
_TEXT_LENGTH: Final = 512
"""Maximum length of status text on the wire."""
_RESULTS: Final = (TaskState.FINISHED, TaskState.ABORTED, TaskState.KILLED)


def has_results(state: ModuleState, claim: GrantedClaim) -> bool:
    """Return whether a claim has results that its origin has not acknowledged."""
    return any(state.executor.attempts[each].status.state in _RESULTS for each in claim.ended)


def note_ended(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /) -> None:
    """Count an attempt that has ended, until its origin acknowledges it."""
    size = size_of(state.executor.attempts[attempt].status)
    claim.ended[attempt] = size
    state.executor.kept_bytes[claim.row.via] = state.executor.kept_bytes.get(claim.row.via, 0) + size


def note_gone(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, /) -> None:
    """Stop counting an attempt that is acknowledged, or whose claim ends; no effect on others."""
    size = claim.ended.pop(attempt, None)
    claim.page.pop(attempt, None)
    if size is None:
        return
    left = state.executor.kept_bytes[claim.row.via] - size
    state.executor.kept_bytes[claim.row.via] = left
    if not left:
        del state.executor.kept_bytes[claim.row.via]


def is_closed(state: ModuleState, neighbor: SystemId) -> bool:
    """Return whether a neighbor gets no places here until its origins take results; never the own system."""
    return neighbor != state.system and state.executor.kept_bytes.get(neighbor, 0) > CLOSED_BYTES


def as_kept(state: ModuleState, claim: GrantedClaim, status: AttemptStatus, /) -> AttemptStatus:
    """Return the status of an attempt that has ended; with too many outputs of its neighbor here, it is lost.

    A result that would not become smaller is kept in any case.
    """
    via = claim.row.via
    if via == state.system or state.executor.kept_bytes.get(via, 0) + size_of(status) <= LOST_BYTES:
        return status
    lost = AttemptStatus(
        attempt=status.attempt,
        state=TaskState.REVOKED,
        cause=Cause.LOST,
        text=f"it ended, and the executor keeps {LOST_BYTES >> 20} MiB of results that were not taken",
        ran_ns=status.ran_ns,
        usage=status.usage,
        containment=status.containment,
        assigned=status.assigned,
    )
    return lost if size_of(lost) < size_of(status) else status


def miscounted(state: ModuleState) -> Iterator[str]:
    """Yield what is counted otherwise than it is here; nothing unless a module has a bug."""
    kept: Counter[SystemId] = Counter()
    for claim in state.executor.claims.values():
        kept[claim.row.via] += sum(claim.ended.values())
        rows = [state.executor.attempts.get(attempt) for attempt in claim.attempts]
        ended = {row.id for row in rows if row is not None and row.status.state is not TaskState.EXECUTING}
        if claim.ended.keys() != ended or not claim.page.keys() <= ended:
            yield f"granted claim {claim.row.id} counts other results than it has"
    if state.executor.kept_bytes != {system: size for system, size in kept.items() if size}:
        yield f"the results of neighbors are counted as {state.executor.kept_bytes} instead of {kept}"


def size_of(status: AttemptStatus) -> int:
    """Return an upper bound of the size of a status on the wire, in bytes."""
    texts = (status.attempt.task.system, status.cause, status.text[:_TEXT_LENGTH])
    names = (output.name for output in status.outputs)
    things = sum(8 + len(each.name) + 3 * len(each.numbers) for each in status.assigned)
    return 96 + 4 * sum(map(len, texts)) + 24 * len(status.outputs) + sum(len(name.encode()) for name in names) + things
