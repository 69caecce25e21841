"""How many tasks, attempts and claims a module has, and how old its views are: a part of `queries`, for metrics."""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.messages import Substate, TaskState
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.origin.member_runs import count_in
from messiahs.core.search.routing import view_behind
from messiahs.core.state.module import ModuleState

_SLICE: Final = 1_024
"""Rows that are counted without a pause: about a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTasks:
    """Tasks of the own users that are not placed, by what they wait for."""

    waiting: int = 0
    """For a place."""
    held: int = 0
    """For whoever put them on hold."""
    dependent: int = 0
    """For other tasks."""
    limited: int = 0
    """Until fewer members of their array are placed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a module has at one instant, as far as that does not change while it is counted."""

    pending: PendingTasks
    placed: Mapping[Substate, int]
    """Tasks of the own users that are placed, by what they do."""
    here: Mapping[Substate, int]
    """Attempts on the own machine that have not ended, by what they do."""
    held_claims: int
    granted_claims: int
    passed_claims: int
    linked: Mapping[SystemId, bool]
    """Whether each neighbor has a link."""
    view_ages_ns: Mapping[SystemId, int]
    """The age of the oldest part of the view of each neighbor that has sent one."""


def counting(state: ModuleState, now: Instant) -> Generator[None, None, Counts]:
    """Count in slices: the state may change at each pause, and every task is counted at most once."""
    held = dependent = limited = 0
    for number, submission in enumerate(tuple(state.origin.submissions.values()), 1):
        held += count_in(submission.aside)
        dependent += count_in(submission.dependent)
        limited += count_in(submission.behind)
        if number % _SLICE == 0:
            yield
    placed: Counter[Substate] = Counter()
    for number, task in enumerate(tuple(state.origin.tasks.values()), 1):
        if task.claim is not None and task.substate is not None:
            placed[task.substate] += 1
        if number % _SLICE == 0:
            yield
    ages = {each.system: _age_ns(state, each, now) for each in state.neighbors.values()}
    return Counts(
        pending=PendingTasks(waiting=state.origin.waiting, held=held, dependent=dependent, limited=limited),
        placed=placed,
        here=Counter(_substates_here(state)),
        held_claims=len(state.origin.claims),
        granted_claims=len(state.executor.claims),
        passed_claims=len(state.hop.passed),
        linked={system: bool(state.updates.links.get(system)) for system in state.neighbors},
        view_ages_ns={system: age_ns for system, age_ns in ages.items() if age_ns is not None},
    )


def _substates_here(state: ModuleState) -> Iterator[Substate]:
    for row in state.executor.attempts.values():
        if row.status.state is TaskState.EXECUTING and row.status.substate is not None:
            yield row.status.substate


def _age_ns(state: ModuleState, neighbor: Neighbor, now: Instant) -> int | None:
    viewed = view_behind(state, neighbor)
    heard = [view for (system, _), view in state.updates.views.items() if system == neighbor.system]
    return viewed.age_ns(now) if viewed is not None else max((view.age_ns(now) for view in heard), default=None)
