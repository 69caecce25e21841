"""The tables of a border: hidden claims and submissions, by the ids that each side knows (MESSIAHS 5.3.3: task ids).

Claims live until their `claim_end` from the origin has passed, submissions as long as a claim that used them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from messiahs.core.border.pseudonyms import shown_epoch, shown_submission
from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.rows import HiddenSubmissionRow, PassedClaimRow, RowKind
from messiahs.core.model.ids import AttemptId, ClaimId, TaskId
from messiahs.core.state.module import ModuleState

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

USE_LIMIT = 131_072
"""Uses of hidden submissions in claims; beyond it the neighbor with most of them loses those that it used least lately.

A submission without uses is forgotten. It gets the same id if it is used again.
"""
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
    return tuple(_without(state, submission, row) for submission in tuple(state.border.brought.get(row.id, ())))


def restore_submissions(state: ModuleState, rows: Iterable[HiddenSubmissionRow]) -> tuple[Action, ...]:
    """Enter stored submissions, once all claims are entered; those that no claim uses any more are forgotten."""
    actions: list[Action] = []
    for row in rows:
        claims = tuple(claim for claim in row.claims if claim in state.hop.passed)
        if claims:
            _enter(state, replace(row, claims=claims))
            for claim in claims:
                _note_use(state, state.hop.passed[claim], row.id)
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
    shown = named_attempts(state, passed, attempts)
    submissions = dict.fromkeys(attempt.task.submission for attempt in shown)
    stored = tuple(action for submission in submissions for action in _used(state, submission, passed))
    return shown, (*stored, *_within_limit(state))


def named_attempts(
    state: ModuleState, passed: PassedClaimRow, attempts: Iterable[AttemptId], /
) -> dict[AttemptId, AttemptId]:
    """Return the same ids, without a use: whoever names an attempt may not have brought it."""
    shown: dict[AttemptId, AttemptId] = {}
    ids: dict[TaskId, TaskId] = {}
    for attempt in attempts:
        submission = attempt.task.submission
        if attempt.task.system != passed.origin:
            continue
        if submission not in ids:
            ids[submission] = shown_submission(state, submission)
        shown[attempt] = AttemptId(ids[submission]._replace(member=attempt.task.member), attempt.number)
    return shown


def shown_attempt(state: ModuleState, passed: PassedClaimRow, attempt: AttemptId, /) -> AttemptId | None:
    """Return the id by which the executor of a claim knows an attempt; None for a task of another origin.

    It needs no row: a peer may read outputs of a submission that was forgotten here.
    """
    return named_attempts(state, passed, (attempt,)).get(attempt)


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


def _used(state: ModuleState, submission: TaskId, passed: PassedClaimRow) -> tuple[Action, ...]:
    """Make a use of a submission the last one of its neighbor; a new use is stored."""
    if not _note_use(state, passed, submission):
        return ()
    row = state.border.submissions.get(submission)
    before = row.claims if row is not None else ()
    row = HiddenSubmissionRow(id=submission, shown=shown_submission(state, submission), claims=(*before, passed.id))
    _enter(state, row)
    return (Store(row=row),)


def _note_use(state: ModuleState, passed: PassedClaimRow, submission: TaskId) -> bool:
    """Make a use the last one of the neighbor toward the origin; return whether it is new."""
    state.border.brought.setdefault(passed.id, {})[submission] = None
    uses = state.border.uses.setdefault(passed.toward_origin, {})
    is_new = (passed.id, submission) not in uses
    uses.pop((passed.id, submission), None)
    uses[passed.id, submission] = None
    return is_new


def _enter(state: ModuleState, row: HiddenSubmissionRow) -> None:
    state.border.submissions[row.id] = row
    state.border.shown[row.shown] = row.id


def _within_limit(state: ModuleState) -> Iterator[Action]:
    border = state.border
    while sum(map(len, border.uses.values())) > USE_LIMIT:
        most = max(border.uses.values(), key=len)
        claim, submission = next(iter(most))
        yield _without(state, submission, state.hop.passed[claim])


def _without(state: ModuleState, submission: TaskId, passed: PassedClaimRow) -> Action:
    """Forget a use, and the submission if it was the last one."""
    border = state.border
    _drop(border.brought, passed.id, submission)
    _drop(border.uses, passed.toward_origin, (passed.id, submission))
    row = border.submissions[submission]
    claims = tuple(each for each in row.claims if each != passed.id)
    if claims:
        border.submissions[submission] = replace(row, claims=claims)
        return Store(row=border.submissions[submission])
    del border.submissions[submission]
    del border.shown[row.shown]
    return Forget(key=(RowKind.HIDDEN_SUBMISSION, submission))


def _drop(table: dict[_Key, dict[_Value, None]], key: _Key, value: _Value, /) -> None:
    del table[key][value]
    if not table[key]:
        del table[key]
