"""Tasks that are only planned, at their origin: which of them would look for places at once, and have room in claims.

Nothing is entered, and no task that exists is changed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from messiahs.core.interface.dependencies import DEPENDENCY_FAILED, Dependency, Predecessor
from messiahs.core.interface.events import Submitted
from messiahs.core.interface.messages import DenyCode, Reason
from messiahs.core.interface.plans import HeldRoom
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.array_members import runs_of
from messiahs.core.origin.awaited import arrays_of, open_in, unmet, waits_as_a_whole
from messiahs.core.origin.dependencies import failure_of, first_failure_of, judged
from messiahs.core.origin.giving_way import first_before
from messiahs.core.origin.member_runs import Run, count_in, merged, run_of, without
from messiahs.core.origin.not_after import is_overdue
from messiahs.core.origin.relocation import room_in
from messiahs.core.origin.submission import problem_of, row_of, without_end
from messiahs.core.relay.deliveries import most_bound
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTasks:
    """How many tasks of a planned submission would look for places at once, by description, in their order.

    Others wait for what is `awaited` first. If all would be denied at once, there is a `denial`.
    """

    counts: dict[TDV, int]
    awaited: tuple[Dependency, ...] = ()
    denial: Reason | None = None


def planned_tasks(state: ModuleState, event: Submitted, now: Instant) -> PlannedTasks | str:
    """Return which tasks of a submission would look for places at once, or why it would be refused."""
    if problem := problem_of(state, event):
        return problem
    outcomes = judged(state, event.after, [(min(1, event.members), event.members)])
    if isinstance(outcomes, Predecessor):
        return without_end(event.answer_to, outcomes).problem
    # That outputs of others become inputs first takes no decision.
    after = tuple(replace(each.dependency, outputs=()) for each in outcomes)
    row = row_of(event, TaskId(state.system, state.epoch, 0), key=event.key, after=after, now=now)
    blocked = [run for array in arrays_of(row) for run in open_in(state, array)]
    failed = [run for each in outcomes for bad in each.failed for run in bad.runs]
    runs = list(without([run_of(row, row.id)], merged((*blocked, *failed))))
    text = failure_of(outcomes) or ("" if runs or blocked else first_failure_of(outcomes))
    if text:
        reason = Reason(module=state.system, code=DenyCode.REQUIREMENT_UNMET, rule=DEPENDENCY_FAILED, text=text)
        return PlannedTasks(counts={}, denial=reason)
    return PlannedTasks(counts=_counts(row, () if waits_as_a_whole(row) else runs), awaited=unmet(row))


def rooms_held(state: ModuleState, shape: Shape, tasks: int, /, *, now: Instant) -> Iterator[HeldRoom]:
    """Yield how many of so many tasks of a shape its claims would take without a search.

    In the state of the origin, only what `giving_way` has chosen last may change.
    """
    for claim_id in shape.claims:
        held = state.origin.claims[claim_id]
        claim = replace(held, most=most_bound(state, held))
        room = 0 if is_overdue(state, claim, now) else min(tasks, room_in(state, claim))
        if room and first_before(state, claim, now) is None:
            tasks -= room
            yield HeldRoom(system=claim.row.id.executor, tasks=room)


def _counts(row: SubmissionRow, runs: Iterable[Run]) -> dict[TDV, int]:
    """Count members by description, as many as may run at once."""
    counts: dict[TDV, int] = {}
    left = row.at_once or count_in(runs)
    for tdv, first, last in runs_of(row, runs):
        taken = min(left, last - first + 1)
        if taken:
            counts[tdv] = counts.get(tdv, 0) + taken
        left -= taken
    return counts
