"""Tasks that their user or the administrator revokes, moves, holds or releases, at their origin.

Not in the papers. A revoked attempt is killed like one that is cancelled, repeatedly until its executor reports its end
(task_kill.py), and its task then waits for the next attempt. If it has ended by itself in the meantime, its result
counts.
"""

from collections.abc import Iterator
from dataclasses import replace

from messiahs.core.interface.actions import Action, Answer, Decision, Store
from messiahs.core.interface.by_hand import HandAct, HoldRun
from messiahs.core.interface.events import HandRequested
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import AttemptId, ClaimId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.at_once import admit, line_up
from messiahs.core.origin.holds import is_open, set_aside, too_many_holds, with_hold, without_hold
from messiahs.core.origin.member_runs import run_of, take
from messiahs.core.origin.placement import place
from messiahs.core.origin.rounds import search_each
from messiahs.core.origin.shape_queue import shapes_with, take_out
from messiahs.core.origin.task_history import longer
from messiahs.core.origin.task_kill import kill
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Submission


def on_hand_requested(state: ModuleState, event: HandRequested, now: Instant) -> tuple[Action, ...]:
    """Perform an act on a task, or on all tasks of a submission, and answer; the answer has a problem if it is void."""
    submission = state.origin.submissions.get(event.task.submission)
    if submission is None:
        return _refused(event, f"{event.task} has ended")
    match event.act:
        case HandAct.REVOKE | HandAct.MOVE:
            done = _revoke(state, event, now)
        case HandAct.HOLD:
            done = _hold(state, event, submission, now)
        case HandAct.RELEASE:
            done = _release(state, event, submission, now)
    if isinstance(done, str):
        return _refused(event, done)
    decision = Decision(what=f"{event.act} by hand", task=str(event.task), text=event.text)
    return (Answer(answer_to=event.answer_to, task=event.task), decision, *done)


def revocable(state: ModuleState, task: TaskId) -> dict[AttemptId, TaskRow]:
    """Return the attempts of a task, or of all of a submission, that a revocation would end, with their tasks.

    They run or wait at their executors, and are neither cancelled nor known to have ended.
    """
    rows = (row for row in _live(state, task) if row.claim is not None and (not row.is_cancelled or row.is_revoked))
    attempts = ((AttemptId(row.id, row.attempt), row) for row in rows)
    return {attempt: row for attempt, row in attempts if attempt not in state.origin.fetching}


def _refused(event: HandRequested, problem: str) -> tuple[Action, ...]:
    return (Answer(answer_to=event.answer_to, problem=problem),)


def _revoke(state: ModuleState, event: HandRequested, now: Instant) -> tuple[Action, ...] | str:
    running = revocable(state, event.task)
    if not running:
        is_ending = any(row.claim is not None for row in _live(state, event.task))
        return f"{event.task} is ending already" if is_ending else f"nothing of {event.task} runs"
    actions: list[Action] = []
    ended: dict[ClaimId, list[AttemptId]] = {}
    for attempt, row in running.items():
        assert row.claim is not None, "they have attempts"
        is_barred = row.is_barred or event.act is HandAct.MOVE
        revoked = replace(row, is_cancelled=True, is_wanted_again=True, is_revoked=True, is_barred=is_barred)
        actions.append(_noted(state, revoked, event, now))
        ended.setdefault(row.claim, []).append(attempt)
    for claim, attempts in ended.items():
        actions.extend(kill(state, state.origin.claims[claim], attempts, now))
    return tuple(actions)


def _hold(state: ModuleState, event: HandRequested, submission: Submission, now: Instant) -> tuple[Action, ...] | str:
    row, task = submission.row, event.task
    if not is_open(state, submission, task=task):
        return f"{task} has ended"
    first, last = run_of(row, task)
    holds = with_hold(row, HoldRun(first=first, last=last, since=now, text=event.text))
    problem = too_many_holds(row, holds)
    if problem:
        return problem
    submission.row = replace(row, holds=holds)
    actions: list[Action] = [Store(row=submission.row), *_noted_all(state, event, now)]
    shapes = shapes_with(state, task)
    set_aside(submission, take(submission.behind, (first, last)))
    for shape in shapes:
        set_aside(submission, take_out(state, shape, task.submission, (first, last)))
    admit(state, submission)
    for shape in shapes:
        actions.extend(place(state, shape, now))
    return tuple(actions)


def _release(
    state: ModuleState, event: HandRequested, submission: Submission, now: Instant
) -> tuple[Action, ...] | str:
    row = submission.row
    if not is_open(state, submission, task=event.task):
        # Its hold ends with that of the whole array, or a retry.
        return f"{event.task} has ended"
    run = run_of(row, event.task)
    if not any(hold.first <= run[1] and run[0] <= hold.last for hold in row.holds):
        return f"{event.task} is not on hold"
    holds = without_hold(row, [run])
    problem = too_many_holds(row, holds)
    if problem:
        return problem
    submission.row = replace(row, holds=holds)
    noted = _noted_all(state, event, now)
    shapes = line_up(state, submission, take(submission.aside, run))
    return (Store(row=submission.row), *noted, *search_each(state, shapes, now))


def _live(state: ModuleState, task: TaskId) -> list[TaskRow]:
    """Return the rows of the named tasks that have not ended."""
    if task.member:
        row = state.origin.tasks.get(task)
        return [] if row is None else [row]
    return [row for row in state.origin.tasks.values() if row.id.submission == task.submission]


def _noted_all(state: ModuleState, event: HandRequested, now: Instant) -> Iterator[Action]:
    """Record an act in the histories of the named tasks: of an array, of those that are bound.

    Its waiting members may be very many.
    """
    rows = _live(state, event.task)
    if state.origin.submissions[event.task.submission].row.members and not event.task.member:
        rows = [row for row in rows if row.claim is not None]
    elif not rows:
        rows = [TaskRow(id=event.task)]
    for row in rows:
        yield _noted(state, row, event, now)


def _noted(state: ModuleState, row: TaskRow, event: HandRequested, now: Instant) -> Store:
    entry = HistoryEntry(
        at=now, event=f"{event.act} by hand", attempt=row.attempt, module=row.executed_on, text=event.text
    )
    row = replace(row, history=longer(row.history, entry))
    state.origin.tasks[row.id] = row
    return Store(row=row)
