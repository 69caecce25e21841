"""The command and needs of each member of a submission: `{}` in a template is replaced by the member's item.

The item of a member is the text that the user gave for it, or its number. A single task has no item and keeps its `{}`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter

from messiahs.core.interface.ended_members import UntriedEnd
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import TaskId
from messiahs.core.origin.member_runs import Run


def command_of(row: SubmissionRow, task: TaskId) -> Command:
    """Return the command of one member, including its own inputs."""
    command, item = row.command, item_of(row, task.member)
    if row.member_inputs and task.member:
        command = replace(command, inputs=(*command.inputs, *row.member_inputs[task.member - 1]))
    values = (value for _, value in command.env)
    if item is None or not any(PLACEHOLDER in text for text in (*command.argv, *values, *command.outputs, command.cwd)):
        return command
    return replace(
        command,
        argv=tuple(word.replace(PLACEHOLDER, item) for word in command.argv),
        env=tuple((name, value.replace(PLACEHOLDER, item)) for name, value in command.env),
        outputs=outputs_of(row, task),
        cwd=command.cwd.replace(PLACEHOLDER, item),
    )


def outputs_of(row: SubmissionRow, task: TaskId) -> tuple[str, ...]:
    """Return the outputs that the command of one member declares."""
    item = item_of(row, task.member)
    return (
        row.command.outputs if item is None else tuple(name.replace(PLACEHOLDER, item) for name in row.command.outputs)
    )


def members_of(row: SubmissionRow) -> range:
    """Return the member numbers of a submission's tasks: 0 for a single task, else 1 to the last."""
    return range(min(1, row.members), row.members + 1)


def without_items(row: SubmissionRow) -> SubmissionRow:
    """Return an array without what only its members have: for one that has ended, nothing in the core needs it."""
    return replace(row, items=(), member_inputs=())


def with_untried(row: SubmissionRow, stored: Iterable[TaskRow]) -> Iterator[TaskRow]:
    """Yield the stored rows of a submission's tasks, then a row for each member that ended without one."""
    known: set[int] = set()
    for task in stored:
        known.add(task.id.member)
        yield task
    for run in row.untried:
        for member in range(run.first, run.last + 1):
            if member not in known:
                yield _made_up(row, member, run)


def untried_endings(row: SubmissionRow, stored: Iterable[TaskRow]) -> Iterator[tuple[TaskState, int]]:
    """Yield, by state, the number of rows that `with_untried` would add."""
    known = sorted(task.id.member for task in stored)
    for run in row.untried:
        stored_in = bisect_right(known, run.last) - bisect_left(known, run.first)
        yield run.state, run.last - run.first + 1 - stored_in


def row_of(row: SubmissionRow, task: TaskId) -> TaskRow:
    """Return a row for a task without a stored one: the task is waiting, or has ended untried."""
    return rows_of(row, (task,))[0]


def rows_of(row: SubmissionRow, tasks: Sequence[TaskId]) -> list[TaskRow]:
    """Return what `row_of` returns, for many tasks in order; fast for any number of runs that ended untried."""
    runs = sorted(row.untried, key=attrgetter("first"))
    firsts = [run.first for run in runs]
    made_up = []
    for task in tasks:
        place = bisect_right(firsts, task.member) - 1
        is_untried = place >= 0 and task.member <= runs[place].last
        made_up.append(_made_up(row, task.member, runs[place]) if is_untried else TaskRow(id=task))
    return made_up


def item_of(row: SubmissionRow, member: int) -> str | None:
    """Return what `{}` stands for in one member; None for a single task."""
    if not member:
        return None
    return row.items[member - 1] if row.items else str(member)


def name_of(row: SubmissionRow, task: TaskId) -> str:
    """Return the name of one member."""
    item = item_of(row, task.member)
    return row.name if item is None else row.name.replace(PLACEHOLDER, item)


def tdv_of(row: SubmissionRow, member: int) -> TDV:
    """Return the TDV of one member; a value that is an integer after its `{}` is replaced becomes an integer."""
    item = item_of(row, member)
    if item is None or not differs_by_member(row.tdv):
        return row.tdv
    return TDV(tuple((name, _filled(value, item)) for name, value in row.tdv.pairs))


def differs_by_member(tdv: TDV) -> bool:
    """Return whether each member has a description of its own."""
    return any(isinstance(value, str) and PLACEHOLDER in value for _, value in tdv.pairs)


def runs_of(row: SubmissionRow, runs: Iterable[Run]) -> Iterator[tuple[TDV, int, int]]:
    """Yield runs of members as runs (TDV, first, last) with equal TDVs."""
    for first, last in runs:
        if not row.members or not differs_by_member(row.tdv):
            yield row.tdv, first, last
            continue
        for tdv, group in groupby(range(first, last + 1), key=partial(tdv_of, row)):
            run = list(group)
            yield tdv, run[0], run[-1]


def _made_up(row: SubmissionRow, member: int, run: UntriedEnd) -> TaskRow:
    return TaskRow(
        id=row.id._replace(member=member),
        state=run.state,
        substate=None,
        ended_at=run.ended_at,
        is_cancelled=run.state is TaskState.KILLED,
        reasons=run.reasons,
        search=run.search,
    )


def _filled(value: Value, item: str) -> Value:
    if isinstance(value, int) or PLACEHOLDER not in value:
        return value
    filled = value.replace(PLACEHOLDER, item)
    return int(filled) if filled.removeprefix("-").isdecimal() and filled.isascii() else filled
