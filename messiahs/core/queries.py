"""Queries of hosts about a module's state between calls: pure functions with frozen answers.

Hosts read a state only through this file. Traces hold it completely, and checkers and tests may read it directly.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from messiahs.core import closing, counts, epochs, vector_queries
from messiahs.core.audit import storing
from messiahs.core.border.shown_ids import known_claim, shown_attempt
from messiahs.core.executor import local_ids
from messiahs.core.interface.lending import LendRow
from messiahs.core.interface.membership_rows import DrainRow, HandoverRow, MemberRow, RemovedRow, ShutOffRow
from messiahs.core.interface.messages import DenyCode, Reason, TaskState
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.request_counts import RequestCounts
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, SubmissionRow, TaskRow
from messiahs.core.ledger import accounts
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, IdsGiven, LostNumbers, SystemId, TaskId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.routes import Leg
from messiahs.core.origin import at_once, awaited, by_hand, delays, holds, resting, retention, shape_queue, task_kill
from messiahs.core.origin import waiting as rounds
from messiahs.core.relay import byte_route, links_down
from messiahs.core.relay.byte_route import leg_of, may_access, may_pass_through
from messiahs.core.search import known_machines as machines
from messiahs.core.search import planning
from messiahs.core.state.module import ModuleState
from messiahs.core.update import exchanged as exchanged_vectors
from messiahs.core.update.counting import counting_of

splice_leg, splice_ends, user_of_claim = byte_route.splice_leg, byte_route.splice_ends, byte_route.user_of_claim
unstored_audit_rows, why_unlinked, revocable = storing.unstored_rows, links_down.why_unlinked, by_hand.revocable
local_id, neighbor_of_attempt, user_of_next = local_ids.local_id, local_ids.neighbor_of, shape_queue.user_of_next
has_terminal, counting = local_ids.has_terminal, counts.counting
usage_rows, neighbor_accounts = accounts.usage_rows, accounts.neighbor_accounts
waits_behind, delay_of, may_run_until = at_once.waits_behind, delays.delay_of, task_kill.may_run_until
killed_but_open, lost_parents = task_kill.killed_but_open, links_down.lost_parents
dependent_on, ended_since, open_members = retention.dependent_on, retention.ended_since, awaited.open_in
has_key, round_of, known_machines = retention.has_key, rounds.round_of, machines.known_machines
own_sums, neighbor_view, sight_of = vector_queries.own_sums, vector_queries.neighbor_view, vector_queries.sight_of
exchanged, disclosed, advertised = exchanged_vectors.exchanged, vector_queries.disclosed, vector_queries.advertised
demand_report, plans_of = vector_queries.demand_report, planning.plans_of
why_not_started = resting.why_not_started
own_tasks, remaining, remaining_with = closing.own_tasks, closing.remaining, closing.remaining_with


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSummary:
    """A module and its connections."""

    system: SystemId
    release: str
    address: str
    neighbors: tuple[Neighbor, ...]
    linked: tuple[SystemId, ...]
    """Connected neighbors whose hello has arrived."""
    heard: tuple[SystemId, ...]
    """Neighbors with a view, sorted."""
    shut_off: Mapping[SystemId, ShutOffRow]


def system_of(state: ModuleState) -> SystemId:
    """Return the module's own name."""
    return state.system


def key_of(state: ModuleState) -> bytes:
    """Return the fingerprint of the module's public key."""
    return state.identity.key


def epoch_of(state: ModuleState) -> Epoch:
    """Return the epoch in which the module issues ids."""
    return state.epoch


def ids_given(state: ModuleState) -> IdsGiven:
    """Return the highest ids that the module has issued in its epoch."""
    return state.counters.given


def rests_until(state: ModuleState) -> Instant:
    """Return the instant before which no task is placed, since attempts that this module does not know may run."""
    return resting.rests_until(state)


def renewed_at(state: ModuleState) -> Instant | None:
    """Return when the module began a new epoch because its rows were an older copy; None if it never did."""
    return state.counters.renewed_at


def has_space(state: ModuleState) -> bool:
    """Return whether the module's disk has space for new work."""
    return state.has_space


def policy_of(state: ModuleState) -> Policy:
    """Return the policy in force."""
    return state.policy


def neighbors_of(state: ModuleState) -> Mapping[SystemId, Neighbor]:
    """Return the neighbors by name."""
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
        shut_off=MappingProxyType(state.shut_off),
    )


def members_of(state: ModuleState) -> Mapping[SystemId, MemberRow]:
    """Return the neighbors that joined, or whose relations were changed, at run time."""
    return MappingProxyType(state.membership.members)


def removed_from(state: ModuleState) -> Mapping[SystemId, RemovedRow]:
    """Return the systems that were removed, and the neighbors whose link is being ended."""
    return MappingProxyType(state.membership.removed)


def cycles_of(state: ModuleState) -> dict[SystemId, str]:
    """Return the parents that stay although they were found to be below this system as well, and what to do."""
    return {parent: state.membership.cycle_advice(state.system, parent) for parent in state.membership.cycles.found}


def handover_of(state: ModuleState) -> HandoverRow | None:
    """Return the last change of the primary parent; None if there was none."""
    return state.membership.handover


def counted_at(state: ModuleState) -> SystemId | None:
    """Return the parent that counts this system now."""
    return counting_of(state).parent


def lending_of(state: ModuleState) -> LendRow | None:
    """Return the position of the owner's dial; None if the policy decides alone."""
    return state.executor.lending


def requests_here(state: ModuleState, now: Instant) -> RequestCounts:
    """Return the requests for places on the own machine: by whom, and what refused them."""
    return state.request_tally.counts(now)


def drain_of(state: ModuleState) -> DrainRow | None:
    """Return since when and why the module is drained; None if it takes work."""
    return state.membership.drain


def announced_of(state: ModuleState) -> DrainRow | None:
    """Return when and why the module is going to be drained; None if that is not announced."""
    return state.membership.announced


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayProgress:
    """An array that has not ended: the ended tasks, rows of those that were tried and have not, how many are held."""

    row: SubmissionRow
    ended: Mapping[tuple[TaskState, int | None], int]
    """By state and exit code."""
    tried: tuple[TaskRow, ...]
    held: int


def submission_numbered(state: ModuleState, number: int) -> TaskId:
    """Return the id of the submission of this module with a number, in whichever epoch it was issued."""
    return TaskId(state.system, epochs.epoch_of(state, number), number)


def lost_with(state: ModuleState, number: int) -> LostNumbers | None:
    """Return the skipped numbers among which the number of a submission is; None if it is among none.

    A submission with such a number may have been stored in a state that is not known here.
    """
    return epochs.lost_with(state, number)


def is_forgotten(state: ModuleState, submission: TaskId) -> bool:
    """Return whether a submission was stored once and is not kept any more."""
    return submission.number <= state.counters.submissions and not retention.knows(state, submission)


def live_submission(state: ModuleState, task: TaskId) -> SubmissionRow | None:
    """Return the submission that a task belongs to; None once it has ended."""
    live = state.origin.submissions.get(task.submission)
    return live.row if live is not None else None


def tasks_with_stdin(state: ModuleState) -> tuple[TaskId, ...]:
    """Return the tasks that have not ended and take standard input."""
    return tuple(task for task, live in state.origin.submissions.items() if live.row.command.takes_stdin)


def live_task(state: ModuleState, task: TaskId) -> TaskRow | None:
    """Return a task of a local user; None unless it was tried and has not ended."""
    return state.origin.tasks.get(task)


def array_progress(state: ModuleState, submission: TaskId) -> ArrayProgress | None:
    """Count the tasks of a submission; None once it has ended."""
    live = state.origin.submissions.get(submission)
    if live is None:
        return None
    tried = tuple(row for row in state.origin.tasks.values() if row.id.submission == submission)
    return ArrayProgress(row=live.row, ended=MappingProxyType(live.ended), tried=tried, held=holds.held_in(live))


def why_waiting(state: ModuleState, tdv: TDV, /, requirement: str) -> tuple[Reason, ...]:
    """Return why tasks of a shape wait: denials of the last round, and links that are down; empty if none waits."""
    shape = state.origin.shapes.get((tdv, requirement))
    return (*shape.reasons, *links_down.why_not_linked(state, via=state.neighbors)) if shape is not None else ()


def why_not_taken(state: ModuleState, task: TaskId) -> tuple[Reason, ...]:
    """Return why the outputs of others for which a task waits are not its inputs yet; empty if nothing is known."""
    live = state.origin.submissions.get(task.submission)
    text = "" if live is None else live.why_not_taken
    return (Reason(module=state.system, code=DenyCode.NO_SPACE, text=text),) if text else ()


def why_cut_off(state: ModuleState, row: TaskRow) -> tuple[Reason, ...]:
    """Return which links are down toward the executor of a bound task, as far as known."""
    claim = state.origin.claims.get(row.claim) if row.claim is not None else None
    return links_down.why_not_linked(state, via=(claim.row.via,)) if claim is not None else ()


def is_wanted(state: ModuleState, attempt: AttemptId) -> bool:
    """Return whether an attempt is the latest one of a task of this module that is not cancelled."""
    row = state.origin.tasks.get(attempt.task)
    return row is not None and row.attempt == attempt.number and not row.is_cancelled


class Access(Enum):
    """Why a peer may not send or read bytes of a claim here."""

    DENIED = auto()
    """It is neither the neighbor toward the origin nor a dialer of the claim, or lacks its ticket."""
    GONE = auto()
    """The claim is unknown here and stays so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Bytes are for, or from, the own machine, in this claim."""

    claim: GrantedClaimRow


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAttempt:
    """An attempt that runs or waits on the own machine, with its claim."""

    row: AttemptRow
    claim: GrantedClaimRow
    slots: int
    taken_at: Instant
    started_at: Instant | None


def byte_leg(
    state: ModuleState, peer: SystemId, /, *, key: bytes, claim: ClaimId, ticket: Ticket
) -> Leg | Here | Access:
    """Return where bytes of a claim that a peer sends or reads go to: on a leg, or to the own machine.

    `key` is the fingerprint of the peer's key, and `claim` the id that it got. The leg may change whenever the core
    handles an event. Bytes never end at a hop that is to pass their connections on.
    """
    known = known_claim(state, claim)
    if known is None:
        return Access.GONE
    claim = known
    passed = state.hop.passed.get(claim)
    if passed is not None:
        if passed.route is None or passed.is_spliced or not may_pass_through(passed, peer, key=key, ticket=ticket):
            return Access.DENIED
        return leg_of(state, claim, passed.route)
    granted = state.executor.claims.get(claim)
    if granted is None:
        return Access.GONE
    is_allowed = may_access(granted.row, peer, key=key, ticket=ticket)
    return Here(claim=granted.row) if is_allowed else Access.DENIED


def claim_beyond(state: ModuleState, claim: ClaimId) -> ClaimId:
    """Return the id by which the next system on the way knows a claim whose bytes a peer sends or reads."""
    known = known_claim(state, claim)
    return claim if known is None else known


def attempt_beyond(state: ModuleState, attempt: AttemptId, *, claim: ClaimId) -> AttemptId | None:
    """Return the next system's id of an attempt in a claim (id beyond); None if it is no task of the claim's origin."""
    passed = state.hop.passed.get(claim)
    return attempt if passed is None or not passed.hides_origin else shown_attempt(state, passed, attempt)


def hides_executor(state: ModuleState, claim: ClaimId) -> bool:
    """Return whether the origin's side of a claim (id beyond) must not learn of the systems behind this one."""
    passed = state.hop.passed.get(claim)
    return passed is not None and passed.shown is not None


def present_leg(state: ModuleState, claim: ClaimId) -> Leg | None:
    """Return the leg for the bytes of a claim that this module passes on, or holds as an origin; None for others.

    A leg to the own system means the own machine. The claim has its id beyond (`claim_beyond`).
    """
    passed = state.hop.passed.get(claim)
    if passed is not None:
        return leg_of(state, claim, passed.route) if passed.route is not None else None
    held = state.origin.claims.get(claim)
    return leg_of(state, claim, held.row.route) if held is not None else None


def is_attempt_of(state: ModuleState, attempt: AttemptId, *, claim: ClaimId) -> bool:
    """Return whether an attempt of a claim that was granted here is still here, or may run in one that passes.

    A hop knows no attempts, but whose tasks run in a claim. The claim has the id that the peer got.
    """
    known = known_claim(state, claim)
    passed = state.hop.passed.get(known) if known is not None else None
    if passed is not None:
        if passed.hides_origin:
            return shown_attempt(state, passed, attempt) is not None
        return passed.origin in (None, attempt.task.system)
    return local_ids.row_of(state, claim, attempt) is not None


def granted_claim(state: ModuleState, claim: ClaimId) -> GrantedClaimRow | None:
    """Return a claim that this module has granted; None if it has granted no such claim, or forgotten it."""
    granted = state.executor.claims.get(claim)
    return granted.row if granted is not None else None


def is_executing(state: ModuleState, attempt: AttemptId, *, claim: ClaimId) -> bool:
    """Return whether an attempt of a claim that was granted here is still here and has not ended."""
    row = local_ids.row_of(state, claim, attempt)
    return row is not None and row.status.state is TaskState.EXECUTING


def local_attempts(state: ModuleState) -> Iterator[LocalAttempt]:
    """Yield the attempts that run or wait on the own machine, claim by claim."""
    for claim in state.executor.claims.values():
        slots = claim.need.slots
        for each, taken_at in claim.attempts.items():
            row, begun_at = state.executor.attempts[each], claim.started.get(each)
            if row.status.state is TaskState.EXECUTING:
                yield LocalAttempt(row=row, claim=claim.row, slots=slots, taken_at=taken_at, started_at=begun_at)


def inputs_in_use(state: ModuleState) -> Collection[bytes]:
    """Return the hashes of the inputs of submissions that have not ended, and of attempts that run or wait here."""
    live = [one.row for one in state.origin.submissions.values() if one.row.ended_at is None]
    held = [row for row in state.executor.attempts.values() if row.status.state is TaskState.EXECUTING]
    inputs = [row.command.inputs for row in live] + [row.command.inputs for row in held]
    inputs += [own for row in live for own in row.member_inputs]
    return {one.sha256 for files in inputs for one in files}
