"""Requests of local users to their module: submit, cancel and retry tasks (MESSIAHS 1)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from messiahs.core.interface.actions import Action, Answer, Decision, Store
from messiahs.core.interface.causes import OUTPUT_CAUSES, Cause
from messiahs.core.interface.dependencies import Predecessor
from messiahs.core.interface.events import AnswerTo, CancelRequested, RetryRequested, Submitted
from messiahs.core.interface.limits import MEMBER_LIMIT, SHAPE_LIMIT
from messiahs.core.interface.messages import Command, DenyCode, Reason, Substate, TaskState
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant, after
from messiahs.core.origin.array_members import differs_by_member
from messiahs.core.origin.cancellation import cancel_bound, want_again
from messiahs.core.origin.completion import end_waiting, ending_of
from messiahs.core.origin.denial import deny_waiting
from messiahs.core.origin.dependencies import Judged, failure_of, first_failure_of, judged, queue, with_outcomes
from messiahs.core.origin.holds import too_many_holds, without_hold
from messiahs.core.origin.member_runs import run_of, runs_among, take, tasks_in
from messiahs.core.origin.placement import place, words_size
from messiahs.core.origin.retention import knows, note_open
from messiahs.core.origin.shape_queue import shapes_with, take_out
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Submission

COMMAND_LIMIT_BYTES = 128 * 1_024
NOT_STORED = "is not stored yet: try again"
"""The end of the answer to a user whose host has read rows that are about to change."""
FORGOTTEN = "is no longer known here, so nothing can wait for it: submit anew, without that condition"
"""The end of the answer to a retry of tasks that wait for another one, whose rows are gone."""
GONE = "is no longer known here: submit it anew"
"""The end of the answer to a retry of tasks that are forgotten."""
RETRY_FIRST = "retry that first, then this"
"""The end of the answer to a retry of tasks that wait for others, which have failed."""
_OWN_EXITS = (Cause.NONE, Cause.NOT_FOUND, *OUTPUT_CAUSES)
"""Causes with which a task that has an exit code has exited by itself."""


def on_submitted(state: ModuleState, event: Submitted, now: Instant) -> tuple[Action, ...]:
    """Store tasks under a new id and search for places; a repeated client key returns the same id."""
    known = state.origin.keys.get(event.key)
    if known is not None:
        return (Answer(answer_to=event.answer_to, task=known),)
    problem = _problem(state, event)
    if problem:
        return (Answer(answer_to=event.answer_to, problem=problem),)
    outcomes = judged(state, event.after, [(min(1, event.members), event.members)])
    if isinstance(outcomes, Predecessor):
        return (_without_end(event.answer_to, outcomes),)
    kept_since = state.counters.kept_since
    state.counters = replace(
        state.counters,
        submissions=state.counters.submissions + 1,
        kept_since=now if kept_since is None else kept_since,
    )
    row = SubmissionRow(
        id=TaskId(state.system, state.epoch, state.counters.submissions),
        key=event.key,
        tdv=event.tdv,
        requirement=event.requirement,
        command=event.command,
        members=event.members,
        items=event.items,
        member_inputs=event.member_inputs,
        submitted_at=now,
        name=event.name,
        retries=event.retries,
        waits=event.waits,
        deadline_at=after(now, event.deadline_ns) if event.deadline_ns is not None else None,
        after=tuple(each.dependency for each in outcomes),
        at_once=event.at_once,
    )
    enter(state, row)
    submission = state.origin.submissions[row.id]
    queued = queue(state, submission, [run_of(row, row.id)], outcomes=outcomes, now=now)
    return (
        Store(row=state.counters),
        Store(row=row),
        Decision(what="submitted", task=str(row.id), text=f"{max(1, row.members)} tasks: {row.command.argv[0]}"),
        Answer(answer_to=event.answer_to, task=row.id),
        *queued,
    )


def enter(state: ModuleState, row: SubmissionRow, tried: Iterable[TaskRow] = (), /) -> None:
    """Enter a new or stored submission with its deadline; count the tasks among `tried` that have started or ended."""
    state.origin.keys[row.key] = row.id
    tried = tuple(tried)
    ended = Counter(ending_of(task) for task in tried if task.state is not TaskState.EXECUTING)
    started = sum(task.started_at is not None for task in tried if task.state is TaskState.EXECUTING)
    state.origin.submissions[row.id] = Submission(row=row, ended=ended, started=started)
    note_open(state, row)
    if row.deadline_at is not None:
        state.timers.set(TimerKind.DEADLINE, row.id, row.deadline_at)


def on_cancel_requested(state: ModuleState, event: CancelRequested, now: Instant) -> tuple[Action, ...]:
    """End waiting tasks, and ask executors to end running ones; tasks that have ended stay as they are."""
    submission = state.origin.submissions.get(event.task.submission)
    if submission is None:
        return (Answer(answer_to=event.answer_to, task=event.task),)
    shapes = shapes_with(state, event.task)
    runs = [run for shape in shapes for run in take_out(state, shape, event.task)]
    for others in (submission.aside, submission.dependent, submission.behind):
        runs.extend(take(others, run_of(submission.row, event.task)))
    waiting = tasks_in(event.task.submission, runs)
    bound = sum(not row.is_cancelled or row.is_wanted_again for row in _bound(state, event.task))
    actions: list[Action] = [Answer(answer_to=event.answer_to, task=event.task, count=len(waiting) + bound)]
    actions.extend(end_waiting(state, waiting, final=TaskState.KILLED, now=now))
    for shape in shapes:
        actions.extend(place(state, shape, now))
    return (*actions, *cancel_bound(state, _bound(state, event.task), now))


def _bound(state: ModuleState, task: TaskId) -> list[TaskRow]:
    """Return the rows of a task, or of all of its submission, that are bound."""
    tried = (state.origin.tasks.get(task),) if task.member else tuple(state.origin.tasks.values())
    return [row for row in tried if row is not None and row.claim is not None and task in (row.id, row.id.submission)]


def on_deadline(state: ModuleState, submission_id: TaskId, now: Instant) -> tuple[Action, ...]:
    """Deny the tasks that are still waiting at their deadline; running tasks continue."""
    actions: list[Action] = []
    submission = state.origin.submissions.get(submission_id)
    # Else they would follow the others that are denied.
    behind = [] if submission is None else take(submission.behind, run_of(submission.row, submission_id))
    for shape in shapes_with(state, submission_id):
        actions.extend(deny_waiting(state, shape, submission_id, now))
        actions.extend(place(state, shape, now))
    if submission is not None:
        others = ((submission.aside, "on hold"), (submission.dependent, "waiting for other tasks"))
        for waiting, why in (*others, (behind, f"waiting until fewer than {submission.row.at_once} others ran")):
            reason = Reason(module=state.system, code=DenyCode.TIMED_OUT, text=f"it was {why} until its deadline")
            left = tasks_in(submission_id, take(waiting, run_of(submission.row, submission_id)))
            actions.extend(end_waiting(state, left, final=TaskState.DENIED, reasons=(reason,), now=now))
    return tuple(actions)


def on_retry_requested(state: ModuleState, event: RetryRequested, now: Instant) -> tuple[Action, ...]:
    """Queue failed tasks for a next attempt, under their old ids; those that already run again are left alone.

    As long as the end of a task is not stored, its row still shows it as executing: the retry is then refused.
    """
    key = event.submission.id
    outdated = _outdated(state, event)
    if outdated is not None:
        return (outdated,)
    failed = failed_in(event.tried, event.member, is_of_killed=event.is_of_killed)
    again = [row for row in failed if row.id not in state.origin.tasks]
    # A member that was tried has waited for its other one, which has ended well for ever.
    untried = runs_among(sorted(row.id.member for row in again if not row.attempt))
    outcomes = judged(state, event.after, untried)
    if isinstance(outcomes, Predecessor):
        return (_without_end(event.answer_to, outcomes),)
    submission = state.origin.submissions.get(key)
    members = runs_among(sorted(row.id.member for row in again))
    # Holds are of the earlier tries; in a submission that has ended, all are.
    holds = () if submission is None else without_hold(submission.row, members)
    problem = _why_not_again(submission, outcomes) or (submission and too_many_holds(submission.row, holds))
    if problem:
        return (Answer(answer_to=event.answer_to, problem=problem),)
    actions: list[Action] = [Answer(answer_to=event.answer_to, task=key)]
    for row in failed:
        live = state.origin.tasks.get(row.id)
        if live is not None and live.is_cancelled:
            actions.extend(want_again(state, live))
    if not again:
        return tuple(actions)
    if submission is None:
        after = with_outcomes(event.submission, outcomes)
        reopened = replace(event.submission, ended_at=None, deadline_at=None, endings=(), holds=(), after=after)
        enter(state, reopened, event.tried)
        submission = state.origin.submissions[key]
        actions.append(Store(row=reopened))
    submission.ended -= Counter(map(ending_of, again))
    for row in again:
        waiting = replace(
            row,
            state=TaskState.EXECUTING,
            substate=Substate.QUEUED,
            is_cancelled=False,
            is_wanted_again=False,
            failures=0,
            result=None,
            reasons=(),
            executed_on="",
            started_at=None,
            suspended_ns=0,
            ended_at=None,
        )
        state.origin.tasks[row.id] = waiting
        actions.append(Store(row=waiting))
    after = with_outcomes(submission.row, outcomes)
    if (submission.row.holds, submission.row.after) != (holds, after):
        submission.row = replace(submission.row, holds=holds, after=after)
        actions.append(Store(row=submission.row))
    actions.append(Decision(what="retry", task=str(key), text=f"{len(again)} tasks"))
    return (*actions, *queue(state, submission, members, now=now))


def failed_in(tried: Iterable[TaskRow], member: int, /, *, is_of_killed: bool = False) -> list[TaskRow]:
    """Return the tasks that a retry runs again: those that failed, of all members (0) or of one.

    With `is_of_killed`, only those that did not exit by themselves: a cancel, a limit, a signal or the system ended
    them.
    """
    failed = [row for row in tried if has_failed(row) and member in (0, row.id.member)]
    return [row for row in failed if _was_killed(row)] if is_of_killed else failed


def has_failed(row: TaskRow) -> bool:
    """Return whether a task ended other than with exit code 0; a task killed by its user counts as failed."""
    if row.state is TaskState.EXECUTING:
        return row.is_cancelled and not row.is_wanted_again
    is_good = row.result is not None and row.result.exit_code == 0 and not row.result.cause
    return not is_good or row.state is TaskState.KILLED


def _was_killed(row: TaskRow) -> bool:
    if row.state in (TaskState.EXECUTING, TaskState.KILLED):
        # It is known to have failed, so an executing one was cancelled or is overdue.
        return True
    if row.state is TaskState.DENIED:
        return False
    # A shell whose program was killed at a limit, or a program that handles SIGTERM, has an exit code all the same.
    return row.result is None or row.result.exit_code is None or row.result.cause not in _OWN_EXITS


def _outdated(state: ModuleState, event: RetryRequested) -> Answer | None:
    """Return the refusal of a retry whose host has read rows that have changed, or are forgotten."""
    key = event.submission.id
    if not knows(state, key):
        return Answer(answer_to=event.answer_to, problem=f"{key} {GONE}")
    if any(row.state is TaskState.EXECUTING and row.id not in state.origin.tasks for row in event.tried):
        return _not_stored(event.answer_to, key)
    return None


def _not_stored(answer_to: AnswerTo, task: TaskId) -> Answer:
    return Answer(answer_to=answer_to, problem=f"the end of {task} {NOT_STORED}")


def _without_end(answer_to: AnswerTo, predecessor: Predecessor) -> Answer:
    on = predecessor.dependency.on
    if not predecessor.is_forgotten:
        return _not_stored(answer_to, on)
    return Answer(answer_to=answer_to, problem=f"{on} {FORGOTTEN}")


def _why_not_again(submission: Submission | None, outcomes: list[Judged]) -> str:
    # While some of its members have not ended, the submission itself waits on, or waits no more.
    failure = first_failure_of(outcomes) or (failure_of(outcomes) if submission is None else "")
    return failure and f"{failure}: {RETRY_FIRST}"


def _problem(state: ModuleState, event: Submitted) -> str:
    requirement = state.parse(event.requirement)
    if isinstance(requirement, BadPredicate):
        return f"the requirement is not a predicate: {requirement.text}"
    if not state.has_space:
        return "no_space: the disk of this module is full; nothing was submitted"
    if not event.command.argv:
        return "there is no command to run"
    longest_item = max((len(item.encode(errors="surrogateescape")) for item in event.items), default=0)
    if words_size(event.command) + _marks(event.command) * longest_item > COMMAND_LIMIT_BYTES:
        return f"the command and its environment are longer than {COMMAND_LIMIT_BYTES} bytes"
    if not 0 <= event.members <= MEMBER_LIMIT:
        return f"one submit takes at most {MEMBER_LIMIT} tasks"
    shapes = len(set(event.items)) if event.items else event.members
    if shapes > SHAPE_LIMIT and differs_by_member(event.tdv):
        return (
            f"one submit takes at most {SHAPE_LIMIT} tasks with other attributes each ({{}} in --set): submit several"
        )
    if event.at_once and not (event.members and event.waits):
        return "only members of an array that wait for a place can be limited to some at once"
    if any(entries and len(entries) != event.members for entries in (event.items, event.member_inputs)):
        return "the number of items, or of lists of inputs, is not the number of members"
    return ""


def _marks(command: Command) -> int:
    words = (*command.argv, *(value for _, value in command.env))
    return sum(word.count("{}") for word in words)
