"""Requests of local users to their module: submit and cancel tasks (MESSIAHS 1)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from messiahs.core.interface.actions import Action, Answer, Decision, Store
from messiahs.core.interface.dependencies import Dependency, Predecessor
from messiahs.core.interface.events import AnswerTo, CancelRequested, Submitted
from messiahs.core.interface.limits import MEMBER_LIMIT, SHAPE_LIMIT
from messiahs.core.interface.messages import Command, DenyCode, Reason, TaskState
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.interface.rows import CountersRow, SubmissionRow, TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.attributes import MACHINE_ATTRIBUTES, Kind
from messiahs.core.model.descriptions import Description
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.instants import after as later
from messiahs.core.origin.array_members import differs_by_member
from messiahs.core.origin.cancellation import cancel_bound
from messiahs.core.origin.completion import WhyDenied, end_waiting, tried_in
from messiahs.core.origin.denial import deny_waiting
from messiahs.core.origin.dependencies import judged, queue
from messiahs.core.origin.member_runs import Run, count_in, run_of, take
from messiahs.core.origin.placement import place, words_size
from messiahs.core.origin.retention import note_open
from messiahs.core.origin.shape_queue import shapes_with, take_out
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Submission

_EXAMPLE: Description = {each.name: "" if each.kind is Kind.STRING else 0 for each in MACHINE_ATTRIBUTES.values()}
"""A machine that has all attributes of the catalogue, with values of their types."""
_COMPARED = {
    Kind.STRING: "a text, which is compared with eq, ne, ls, le, gr or ge",
    Kind.INTEGER: "a number, which is compared with =, <>, <, <=, > or >=",
}
COMMAND_LIMIT_BYTES = 128 * 1_024
COMMAND_TOO_LONG = f"the command and its environment are longer than {COMMAND_LIMIT_BYTES} bytes"
FULL = (
    "no_space: the disk of this module is full; nothing was submitted: forget ended tasks with their outputs "
    "(`messiahs clean`), or free other space there (`messiahs doctor`)"
)
"""The answer to a submit for which the disk has no room."""
NOT_STORED = "is not stored yet: try again"
"""The end of the answer to a user whose host has read rows that are about to change."""
FORGOTTEN = "is no longer known here, so nothing can wait for it: submit anew, without that condition"
"""The end of the answer to a retry of tasks that wait for another one, whose rows are gone."""


def on_submitted(state: ModuleState, event: Submitted, now: Instant) -> tuple[Action, ...]:
    """Store tasks under a new id and search for places; a repeated client key returns the same id."""
    known = state.origin.keys.get(event.key)
    if known is not None:
        return (Answer(answer_to=event.answer_to, task=known),)
    problem = problem_of(state, event)
    if problem:
        return (Answer(answer_to=event.answer_to, problem=problem),)
    outcomes = judged(state, event.after, [(min(1, event.members), event.members)])
    if isinstance(outcomes, Predecessor):
        return (without_end(event.answer_to, outcomes),)
    state.counters = counted(state, 1, now)
    task = TaskId(state.system, state.epoch, state.counters.submissions)
    row = row_of(event, task, key=event.key, after=tuple(each.dependency for each in outcomes), now=now)
    submission = enter(state, row, ended={}, started=0)
    queued = queue(state, submission, [run_of(row, row.id)], outcomes=outcomes, now=now)
    return (
        Store(row=state.counters),
        Store(row=row),
        submitted_decision(row),
        Answer(answer_to=event.answer_to, task=row.id),
        *queued,
    )


def counted(state: ModuleState, submissions: int, /, now: Instant) -> CountersRow:
    """Return the counters after so many submissions more."""
    before = state.counters
    kept_since = now if before.kept_since is None else before.kept_since
    return replace(before, submissions=before.submissions + submissions, kept_since=kept_since)


def row_of(
    event: Submitted,
    task: TaskId,
    /,
    *,
    key: ClientKey,
    after: tuple[Dependency, ...],
    workflow_size: int = 0,
    now: Instant,
) -> SubmissionRow:
    """Return the row of a submission that becomes a task, or the tasks of an array, now; 0 is no workflow."""
    return SubmissionRow(
        id=task,
        key=key,
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
        deadline_at=later(now, event.deadline_ns) if event.deadline_ns is not None else None,
        after=after,
        at_once=event.at_once,
        notification=event.notification,
        workflow_size=workflow_size,
    )


def submitted_decision(row: SubmissionRow) -> Decision:
    """Return the decision that a submission is stored."""
    return Decision(what="submitted", task=str(row.id), text=f"{max(1, row.members)} tasks: {row.command.argv[0]}")


def enter(
    state: ModuleState, row: SubmissionRow, *, ended: Mapping[tuple[TaskState, int | None], int], started: int
) -> Submission:
    """Enter a new or stored submission with its deadline; some of its tasks have ended, and of others some started."""
    state.origin.keys[row.key] = row.id
    submission = Submission(row=row, ended=Counter(ended), started=started)
    state.origin.submissions[row.id] = submission
    note_open(state, row)
    if row.deadline_at is not None:
        state.timers.set(TimerKind.DEADLINE, row.id, row.deadline_at)
    return submission


def not_stored(answer_to: AnswerTo, task: TaskId) -> Answer:
    """Return the answer to a user whose host has read rows before the end of a task was stored."""
    return Answer(answer_to=answer_to, problem=f"the end of {task} {NOT_STORED}")


def without_end(answer_to: AnswerTo, predecessor: Predecessor) -> Answer:
    """Return the answer to a user whose tasks wait for one that has ended in a way that is not known."""
    on = predecessor.dependency.on
    if not predecessor.is_forgotten:
        return not_stored(answer_to, on)
    return Answer(answer_to=answer_to, problem=f"{on} {FORGOTTEN}")


def on_cancel_requested(state: ModuleState, event: CancelRequested, now: Instant) -> tuple[Action, ...]:
    """End waiting tasks, and ask executors to end running ones; tasks that have ended stay as they are."""
    submission = state.origin.submissions.get(event.task.submission)
    if submission is None:
        return (Answer(answer_to=event.answer_to, task=event.task),)
    key, members = submission.row.id, event.members or run_of(submission.row, event.task)
    shapes = shapes_with(state, key)
    waiting = [run for shape in shapes for run in take_out(state, shape, key, members)]
    for others in (submission.aside, submission.dependent, submission.behind):
        waiting.extend(take(others, members))
    bound = sum(not row.is_cancelled or row.is_wanted_again for row in _bound(state, key, members))
    actions: list[Action] = [Answer(answer_to=event.answer_to, task=event.task, count=count_in(waiting) + bound)]
    actions.extend(end_waiting(state, key, waiting, final=TaskState.KILLED, now=now))
    for shape in shapes:
        actions.extend(place(state, shape, now))
    return (*actions, *cancel_bound(state, _bound(state, key, members), now))


def _bound(state: ModuleState, submission: TaskId, members: Run) -> list[TaskRow]:
    """Return the rows of a submission's members that are bound."""
    return [row for row in tried_in(state, submission, [members]) if row.claim is not None]


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
            left = take(waiting, run_of(submission.row, submission_id))
            why_denied = WhyDenied((reason,))
            actions.extend(end_waiting(state, submission_id, left, final=TaskState.DENIED, why=why_denied, now=now))
    return tuple(actions)


def problem_of(state: ModuleState, event: Submitted) -> str:
    """Return why a submission is refused; empty if it is not."""
    requirement = state.parse(event.requirement)
    if isinstance(requirement, BadPredicate):
        return f"the requirement is not a predicate: {requirement.text}"
    for name in requirement.mistyped_in(_EXAMPLE):
        words = _COMPARED[MACHINE_ATTRIBUTES[name].kind]
        return f"the requirement can never be true: ${name} is {words}"
    if not state.has_space:
        return FULL
    if not event.command.argv:
        return "there is no command to run"
    longest_item = max((len(item.encode(errors="surrogateescape")) for item in event.items), default=0)
    if words_size(event.command) + _marks(event.command) * longest_item > COMMAND_LIMIT_BYTES:
        return COMMAND_TOO_LONG
    if not 0 <= event.members <= MEMBER_LIMIT:
        return f"one submit takes at most {MEMBER_LIMIT} tasks"
    if own_shapes(event) > SHAPE_LIMIT:
        return (
            f"one submit takes at most {SHAPE_LIMIT} tasks with other attributes each ({{}} in --set): submit several"
        )
    if event.at_once and not (event.members and event.waits):
        return "`%` limits how many members of an array run at once, others wait: it goes with --array, not --no-wait"
    if any(entries and len(entries) != event.members for entries in (event.items, event.member_inputs)):
        return "the number of items, or of lists of inputs, is not the number of members"
    return ""


def own_shapes(event: Submitted) -> int:
    """Return how many descriptions the members of a submission have if each has its own, else 0."""
    if not event.members or not differs_by_member(event.tdv):
        return 0
    return len(set(event.items)) if event.items else event.members


def _marks(command: Command) -> int:
    words = (*command.argv, *(value for _, value in command.env))
    return sum(word.count(PLACEHOLDER) for word in words)
