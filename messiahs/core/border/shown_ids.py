"""The tables of a border: hidden claims and submissions, by the ids that each side knows (MESSIAHS 5.3.3: task ids).

Claims live until their `claim_end` from the origin has passed, submissions as long as a claim that used them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from messiahs.core.border.pseudonyms import shown_epoch, shown_submission
from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.rows import HiddenSubmissionRow, PassedClaimRow, RowKind
from messiahs.core.model.ids import AttemptId, ClaimId, TaskId
from messiahs.core.state.module import ModuleState

SUBMISSION_LIMIT = 65_536
"""Hidden submissions; beyond it the one used least lately is forgotten. It gets the same id if it is used again."""
USE_LIMIT = 262_144
"""Uses of hidden submissions in claims, all together; beyond it they are forgotten in the same order."""
MACHINE_LIMIT = 1_024
"""Machines whose marks are translated in requests; beyond it the first ones are forgotten."""


def enter_claim(state: ModuleState, row: PassedClaimRow) -> None:
    """Enter a new or stored claim by its shown id, if it has one."""
    if row.shown is not None:
        state.border.claims[row.shown] = row.id


def leave_claim(state: ModuleState, row: PassedClaimRow) -> tuple[Action, ...]:
    """Forget a claim, and the submissions that no other claim uses."""
    if row.shown is not None:
        state.border.claims.pop(row.shown, None)
    return tuple(_without(state, submission, row.id) for submission in state.border.brought.pop(row.id, {}))


def restore_submissions(state: ModuleState, rows: Iterable[HiddenSubmissionRow]) -> tuple[Action, ...]:
    """Enter stored submissions, once all claims are entered; those that no claim uses any more are forgotten."""
    actions: list[Action] = []
    for row in rows:
        claims = tuple(claim for claim in row.claims if claim in state.hop.passed)
        if claims:
            _enter(state, replace(row, claims=claims))
            for claim in claims:
                state.border.brought.setdefault(claim, {})[row.id] = None
        else:
            actions.append(Forget(key=(RowKind.HIDDEN_SUBMISSION, row.id)))
    return tuple(actions)


def known_claim(state: ModuleState, claim: ClaimId) -> ClaimId | None:
    """Return the claim that the side of the origin means by an id; None for the hidden id of a claim."""
    known = state.border.claims.get(claim)
    if known is not None:
        return known
    passed = state.hop.passed.get(claim)
    return claim if passed is None or passed.shown is None else None


def is_shown_by_us(state: ModuleState, claim: ClaimId) -> bool:
    """Return whether an id is one that only this border gives to claims."""
    return claim.executor == state.system and claim.epoch == shown_epoch(state)


def shown_attempts(
    state: ModuleState, passed: PassedClaimRow, attempts: Iterable[AttemptId], /
) -> tuple[dict[AttemptId, AttemptId], tuple[Action, ...]]:
    """Return the ids by which the executor of a claim knows attempts, and the actions that store new ones.

    Tasks of another origin than the claim's are left out.
    """
    shown: dict[AttemptId, AttemptId] = {}
    actions: list[Action] = []
    rows: dict[TaskId, HiddenSubmissionRow] = {}
    for attempt in attempts:
        submission = attempt.task.submission
        if attempt.task.system != passed.origin:
            continue
        if submission not in rows:
            rows[submission] = _used(state, submission, passed.id, actions)
        shown[attempt] = AttemptId(rows[submission].shown._replace(member=attempt.task.member), attempt.number)
    actions.extend(_within_limit(state))
    return shown, tuple(actions)


def shown_attempt(state: ModuleState, passed: PassedClaimRow, attempt: AttemptId, /) -> AttemptId | None:
    """Return the id by which the executor of a claim knows an attempt; None for a task of another origin.

    It needs no row: a peer may read outputs of a submission that was forgotten here.
    """
    if attempt.task.system != passed.origin:
        return None
    shown = shown_submission(state, attempt.task.submission)
    return AttemptId(shown._replace(member=attempt.task.member), attempt.number)


def known_attempts(
    state: ModuleState, passed: PassedClaimRow, attempts: Iterable[AttemptId], /
) -> dict[AttemptId, AttemptId]:
    """Return attempts by the ids that the executor of a claim uses; those that were not brought in it are left out."""
    known: dict[AttemptId, AttemptId] = {}
    brought = state.border.brought.get(passed.id, {})
    for attempt in attempts:
        submission = state.border.shown.get(attempt.task.submission)
        if submission is not None and submission in brought:
            known[attempt] = AttemptId(submission._replace(member=attempt.task.member), attempt.number)
    return known


def note_machine(state: ModuleState, *, shown: bytes, known: bytes) -> None:
    """Remember by which mark the side of an origin knows a machine, for the digests in its requests."""
    machines = state.border.machines
    machines.pop(shown, None)
    machines[shown] = known
    if len(machines) > MACHINE_LIMIT:
        del machines[next(iter(machines))]


def _used(state: ModuleState, submission: TaskId, claim: ClaimId, actions: list[Action], /) -> HiddenSubmissionRow:
    """Return the row of a submission that is used in a claim, as the one used last; a new use is stored."""
    row = state.border.submissions.get(submission)
    if row is None:
        row = HiddenSubmissionRow(id=submission, shown=shown_submission(state, submission), claims=())
    if submission not in state.border.brought.get(claim, {}):
        row = replace(row, claims=(*row.claims, claim))
        state.border.brought.setdefault(claim, {})[submission] = None
        actions.append(Store(row=row))
    _enter(state, row)
    return row


def _enter(state: ModuleState, row: HiddenSubmissionRow) -> None:
    """Enter a row in place of an earlier one, as the one used last."""
    _leave(state, row.id)
    state.border.submissions[row.id] = row
    state.border.shown[row.shown] = row.id
    state.border.uses += len(row.claims)


def _leave(state: ModuleState, submission: TaskId) -> None:
    row = state.border.submissions.pop(submission, None)
    if row is not None:
        del state.border.shown[row.shown]
        state.border.uses -= len(row.claims)


def _within_limit(state: ModuleState) -> Iterator[Action]:
    border = state.border
    while len(border.submissions) > SUBMISSION_LIMIT or border.uses > USE_LIMIT:
        oldest = border.submissions[next(iter(border.submissions))]
        for claim in oldest.claims:
            _drop(border.brought, claim, oldest.id)
        _leave(state, oldest.id)
        yield Forget(key=(RowKind.HIDDEN_SUBMISSION, oldest.id))


def _without(state: ModuleState, submission: TaskId, claim: ClaimId) -> Action:
    border = state.border
    row = border.submissions[submission]
    claims = tuple(each for each in row.claims if each != claim)
    if claims:
        # It keeps its place: the end of a claim is no use.
        border.submissions[submission] = replace(row, claims=claims)
        border.uses -= 1
        return Store(row=border.submissions[submission])
    _leave(state, submission)
    return Forget(key=(RowKind.HIDDEN_SUBMISSION, submission))


def _drop(brought: dict[ClaimId, dict[TaskId, None]], claim: ClaimId, submission: TaskId) -> None:
    del brought[claim][submission]
    if not brought[claim]:
        del brought[claim]
