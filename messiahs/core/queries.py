"""What hosts ask of a module's state between calls: pure functions, and frozen answers.

Hosts look at a state through this module alone. Traces hold a state whole, and checkers and tests may look inside.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from messiahs.core import epochs
from messiahs.core.interface.messages import IdsGiven, Reason, StatusVector, TaskState
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, HeldClaimRow, SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.origin import task_kill
from messiahs.core.search.routing import view_behind
from messiahs.core.search.task_request import waiting_behind
from messiahs.core.state.module import ModuleState
from messiahs.core.update.outgoing import passed_on
from messiahs.core.update.preview import preview
from messiahs.core.update.sums import vector_for_children, vector_for_parents, vector_for_siblings, view_of
from messiahs.core.vectors.vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSummary:
    """A module and its connections."""

    system: SystemId
    release: str
    address: str
    neighbors: tuple[Neighbor, ...]
    linked: tuple[SystemId, ...]
    """Neighbors that are connected and have said hello."""
    heard: tuple[SystemId, ...]
    """Neighbors of which a view is here, sorted."""


def system_of(state: ModuleState) -> SystemId:
    """Give the module's own name."""
    return state.system


def epoch_of(state: ModuleState) -> Epoch:
    """Give the epoch in which the module gives out ids."""
    return state.epoch


def ids_given(state: ModuleState) -> IdsGiven:
    """Give the highest ids that the module has given out in its epoch."""
    return state.counters.given


def renewed_at(state: ModuleState) -> Instant | None:
    """Give when the module began a new epoch because its rows were an older copy; None if it never did."""
    return state.counters.renewed_at


def has_space(state: ModuleState) -> bool:
    """Say whether the module takes new work, as far as the room on its disk is concerned."""
    return state.has_space


def policy_of(state: ModuleState) -> Policy:
    """Give the policy in force."""
    return state.policy


def neighbors_of(state: ModuleState) -> Mapping[SystemId, Neighbor]:
    """Give the neighbors by name."""
    return MappingProxyType(state.neighbors)


def summary_of(state: ModuleState) -> ModuleSummary:
    """Describe a module and its connections."""
    return ModuleSummary(
        system=state.system,
        release=state.identity.release,
        address=state.identity.address,
        neighbors=tuple(state.neighbors.values()),
        linked=tuple(system for system, is_greeted in state.updates.links.items() if is_greeted),
        heard=tuple(sorted({system for system, _ in state.updates.views})),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayProgress:
    """An array that has not ended: how many of its tasks have, and the rows of those that were tried and have not."""

    row: SubmissionRow
    ended: Mapping[tuple[TaskState, int | None], int]
    """By state and exit code."""
    tried: tuple[TaskRow, ...]


def submission_numbered(state: ModuleState, number: int) -> TaskId:
    """Give the id of the submission of this module with a number, in whichever epoch it was given out."""
    return TaskId(state.system, epochs.epoch_of(state, number), number)


def live_submission(state: ModuleState, task: TaskId) -> SubmissionRow | None:
    """Give the submission that a task belongs to; None once it has ended."""
    live = state.origin.submissions.get(task.submission)
    return live.row if live is not None else None


def live_task(state: ModuleState, task: TaskId) -> TaskRow | None:
    """Give a task of a local user that was tried and has not ended."""
    return state.origin.tasks.get(task)


def array_progress(state: ModuleState, submission: TaskId) -> ArrayProgress | None:
    """Count the tasks of a submission; None once it has ended."""
    live = state.origin.submissions.get(submission)
    if live is None:
        return None
    tried = tuple(row for row in state.origin.tasks.values() if row.id.submission == submission)
    return ArrayProgress(row=live.row, ended=MappingProxyType(live.ended), tried=tried)


def why_waiting(state: ModuleState, tdv: TDV, /, requirement: str) -> tuple[Reason, ...]:
    """Give why the last round placed no more tasks of a shape; empty if it did, or if none waits."""
    shape = state.origin.shapes.get((tdv, requirement))
    return shape.reasons if shape is not None else ()


def may_run_until(state: ModuleState, row: TaskRow) -> Instant | None:
    """Give until when a cancelled or overdue task may run at the latest; None if it does not run."""
    return task_kill.may_run_until(state, row)


def held_claim(state: ModuleState, claim: ClaimId) -> HeldClaimRow | None:
    """Give a claim that this module holds as an origin."""
    held = state.origin.claims.get(claim)
    return held.row if held is not None else None


def is_wanted(state: ModuleState, attempt: AttemptId) -> bool:
    """Say whether an attempt is still the latest one of a task of this module, and that is not cancelled."""
    row = state.origin.tasks.get(attempt.task)
    return row is not None and row.attempt == attempt.number and not row.is_cancelled


class Access(Enum):
    """Whether a peer may read what an attempt wrote here."""

    ALLOWED = auto()
    DENIED = auto()
    """It is not the origin of the claim, or has not its ticket."""
    GONE = auto()
    """Nothing is known here of the claim, or of the attempt in it, and nothing will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAttempt:
    """An attempt that runs or waits on the own machine, with its claim."""

    row: AttemptRow
    claim: GrantedClaimRow
    slots: int
    taken_at: Instant
    started_at: Instant | None


def is_origin_of(claim: GrantedClaimRow, peer: SystemId, *, ticket: Ticket) -> bool:
    """Say whether a peer may bring files for a claim and read what its attempts wrote: its origin, with its ticket."""
    return claim.origin == peer and claim.ticket == ticket


def read_access(state: ModuleState, peer: SystemId, *, claim: ClaimId, ticket: Ticket, attempt: AttemptId) -> Access:
    """Say whether a peer may read what an attempt of a claim wrote here."""
    granted = state.executor.claims.get(claim)
    if granted is None:
        return Access.GONE
    if not is_origin_of(granted.row, peer, ticket=ticket):
        return Access.DENIED
    row = state.executor.attempts.get(attempt)
    return Access.ALLOWED if row is not None and row.claim == claim else Access.GONE


def granted_claim(state: ModuleState, claim: ClaimId) -> GrantedClaimRow | None:
    """Give a claim that this module has granted."""
    granted = state.executor.claims.get(claim)
    return granted.row if granted is not None else None


def is_executing(state: ModuleState, attempt: AttemptId) -> bool:
    """Say whether an attempt is here and has not ended."""
    row = state.executor.attempts.get(attempt)
    return row is not None and row.status.state is TaskState.EXECUTING


def local_attempts(state: ModuleState) -> Iterator[LocalAttempt]:
    """Give what runs or waits on the own machine, the oldest claim first."""
    for claim in state.executor.claims.values():
        for attempt, taken_at in claim.attempts.items():
            if is_executing(state, attempt):
                yield LocalAttempt(
                    row=state.executor.attempts[attempt],
                    claim=claim.row,
                    slots=claim.need.slots,
                    taken_at=taken_at,
                    started_at=claim.started.get(attempt),
                )


def inputs_in_use(state: ModuleState) -> Collection[bytes]:
    """Give the hashes of the inputs of submissions that have not ended, and of attempts that run or wait here."""
    live = [one.row for one in state.origin.submissions.values() if one.row.ended_at is None]
    held = [row for row in state.executor.attempts.values() if row.status.state is TaskState.EXECUTING]
    inputs = [row.command.inputs for row in live] + [row.command.inputs for row in held]
    inputs += [own for row in live for own in row.member_inputs]
    return {one.sha256 for files in inputs for one in files}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSums:
    """What the module knows of machines, as it is added up for others (MESSIAHS 7.2)."""

    up: Vector
    down: Vector
    sibling: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborView:
    """What a neighbor has said of what is behind it."""

    vector: Vector
    age_ns: int
    """The age of its oldest part."""
    waiting: int
    """How many tasks wait there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a neighbor is sent under a policy, and the name under which it sees denials from here."""

    name: str
    vectors: tuple[StatusVector, ...]


def own_sums(state: ModuleState) -> OwnSums:
    """Add up what is known now."""
    own, keys, neighbors = state.updates.own, state.policy.keys, tuple(state.neighbors.values())
    views = passed_on({key: view.message.vector for key, view in state.updates.views.items()}, state.policy)
    return OwnSums(
        up=vector_for_parents(own, neighbors, views=views, keys=keys),
        down=vector_for_children(own, neighbors, views=views, keys=keys),
        sibling=vector_for_siblings(own, neighbors, views=views, keys=keys),
    )


def neighbor_view(state: ModuleState, neighbor: Neighbor, now: Instant) -> NeighborView | None:
    """Give what a neighbor has said; None while nothing of it is here."""
    # Of a sibling that is a parent, too, both vectors are here: the one that is shown counts, if it has come.
    heard = [view for (system, _), view in state.updates.views.items() if system == neighbor.system]
    if not heard:
        return None
    viewed = view_behind(state, neighbor)
    return NeighborView(
        vector=view_of(neighbor, {key: view.message.vector for key, view in state.updates.views.items()}),
        age_ns=max(view.age_ns(now) for view in ((viewed,) if viewed is not None else heard)),
        waiting=waiting_behind(state, neighbor),
    )


def sight_of(state: ModuleState, neighbor: Neighbor, policy: Policy, /, now: Instant) -> Sight:
    """Give what a neighbor would be sent now under a policy."""
    return Sight(
        name=policy.disclosure.name_for(neighbor) or state.system,
        vectors=preview(state, neighbor.system, policy, now=now),
    )
