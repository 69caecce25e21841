"""Members of arrays: what each runs, and running again those that failed."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.events import AnswerTo, CancelRequested
from messiahs.core.interface.messages import Command, SchedRequest, TaskState, TaskTransfer
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.instants import Instant
from messiahs.core.model.task_files import InputFile
from messiahs.core.origin.array_members import command_of, name_of, outputs_of, runs_of, tdv_of
from messiahs.core.state.origin import Submission
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    TASK,
    Rig,
    accept,
    attempt,
    message_in,
    only,
    retry_of,
    sent,
    status,
    statuses,
    tdv,
)

SHARED = InputFile(name="shared", sha256=b"s" * 32, size_bytes=1)
OWN = tuple(InputFile(name=f"own-{number}", sha256=bytes([number]) * 32, size_bytes=1) for number in (1, 2))


def row(**said: object) -> SubmissionRow:
    given: dict[str, object] = {
        "id": TASK,
        "key": ClientKey("k"),
        "tdv": tdv(),
        "requirement": "",
        "command": Command(argv=("echo", "{}"), env=(("WHO", "<{}>"),), inputs=(SHARED,), outputs=("{}.gz",)),
        "members": 2,
        "submitted_at": Instant(1),
        **said,
    }
    return SubmissionRow(**given)  # type: ignore[arg-type]


def test_braces_stand_for_the_item_of_a_member() -> None:
    command = command_of(row(items=("a b", "c")), TASK._replace(member=1))
    assert (command.argv, command.env, command.outputs) == (("echo", "a b"), (("WHO", "<a b>"),), ("a b.gz",))


def test_without_items_braces_stand_for_the_number() -> None:
    assert command_of(row(), TASK._replace(member=2)).argv == ("echo", "2")
    assert name_of(row(name="run {}"), TASK._replace(member=2)) == "run 2"


def test_a_single_task_keeps_its_braces() -> None:
    assert command_of(row(members=0), TASK).argv == ("echo", "{}")
    assert outputs_of(row(members=0), TASK) == ("{}.gz",)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(Command(argv=("echo", "{}")), id="in its words"),
        pytest.param(Command(argv=("true",), env=(("WHO", "<{}>"),)), id="in its variables"),
        pytest.param(Command(argv=("true",), outputs=("{}.gz",)), id="in its outputs"),
        pytest.param(Command(argv=("true",), env=(("{}", ""),), outputs=("all.gz",)), id="in the name of a variable"),
    ],
)
def test_braces_stand_for_the_item_wherever_they_are_except_in_names_of_variables(command: Command) -> None:
    task = TASK._replace(member=2)
    found = command_of(row(command=command), task)
    assert found.argv == tuple(word.replace("{}", "2") for word in command.argv)
    assert found.env == tuple((name, value.replace("{}", "2")) for name, value in command.env)
    assert (
        found.outputs
        == outputs_of(row(command=command), task)
        == tuple(name.replace("{}", "2") for name in command.outputs)
    )


def test_a_member_has_the_shared_inputs_and_its_own() -> None:
    command = command_of(row(member_inputs=((OWN[0],), (OWN[1],))), TASK._replace(member=2))
    assert command.inputs == (SHARED, OWN[1])


def test_a_value_that_is_a_number_once_it_is_filled_in_counts_as_one() -> None:
    templated = row(tdv=tdv(size="{}", label="no-{}"), items=("7", "x"))
    assert tdv_of(templated, 1).description() | {"size": 7, "label": "no-7"} == tdv_of(templated, 1).description()
    assert tdv_of(templated, 2).description()["size"] == "x"


def test_members_with_equal_needs_are_one_run() -> None:
    assert list(runs_of(row(members=100_000), [(1, 100_000)])) == [(tdv(), 1, 100_000)]
    varied = row(tdv=tdv(size="{}"), items=("1", "1", "2"), members=3)
    assert [(first, last) for _, first, last in runs_of(varied, [(1, 3)])] == [(1, 2), (3, 3)]
    assert [(first, last) for _, first, last in runs_of(row(members=9), [(1, 2), (5, 5)])] == [(1, 2), (5, 5)]


def test_every_member_is_sent_with_its_own_command(rig: Rig) -> None:
    actions = rig.submit(2, command=Command(argv=("echo", "{}")), items=("one", "two"))
    ((_, ask),) = sent(actions, SchedRequest)
    transfer = message_in(rig.hear(CHILD, accept(ask.id, places=2)), TaskTransfer)
    assert [task.command.argv[1] for task in transfer.tasks] == ["one", "two"]


def test_members_with_different_needs_are_searched_for_apart(rig: Rig) -> None:
    actions = rig.submit(2, tdv=tdv(size="{}"), items=("1", "2"))
    asked = [ask.tdv.description()["size"] for _, ask in sent(actions, SchedRequest)]
    assert asked == [1, 2]


def _ended(rig: Rig) -> tuple[SubmissionRow, tuple[TaskRow, ...]]:
    """End an array of three: one task well, one badly, one killed by its user."""
    ((_, ask),) = sent(rig.submit(3), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=3))
    rows: list[Action] = [*rig.hear(CHILD, statuses(status(attempt(member=1)), status(attempt(member=2), exit_code=1)))]
    rows += rig.handle(CancelRequested(answer_to=AnswerTo(9), task=TASK._replace(member=3)))
    rows += rig.hear(CHILD, statuses(status(attempt(member=3), TaskState.KILLED)))
    stored = [action.row for action in only(rows, Store)]
    (submission,) = [each for each in stored if isinstance(each, SubmissionRow)]
    return submission, tuple(each for each in stored if isinstance(each, TaskRow) and each.ended_at is not None)


def test_a_retry_runs_again_what_failed_or_was_killed_and_nothing_else(rig: Rig) -> None:
    submission, tried = _ended(rig)
    assert len(tried) == 3
    retry = retry_of(submission, tried)
    ((_, ask),) = sent(rig.handle(retry), SchedRequest)
    assert ask.count == 2
    again = rig.state.origin.submissions[TASK]
    assert (again.open_members, again.ended.total()) == (2, 1)
    assert [row.executed_on for row in rig.state.origin.tasks.values()] == ["", ""]
    claim = CLAIM._replace(number=2)
    transfer = message_in(rig.hear(CHILD, accept(ask.id, claim=claim, places=2)), TaskTransfer)
    assert [task.attempt for task in transfer.tasks] == [attempt(2, member=2), attempt(2, member=3)]
    done = rig.hear(CHILD, statuses(*(status(attempt(2, member=member)) for member in (2, 3)), claim=claim))
    final = [each.row for each in only(done, Store) if isinstance(each.row, TaskRow) and each.row.ended_at is not None]
    assert [row.state for row in final] == [TaskState.FINISHED, TaskState.FINISHED]


@pytest.mark.parametrize(("member", "again"), [(1, ()), (2, (2,)), (3, (3,))])
def test_a_retry_of_one_member_runs_that_one_if_it_failed(rig: Rig, member: int, again: tuple[int, ...]) -> None:
    submission, tried = _ended(rig)
    rig.handle(retry_of(submission, tried, member=member))
    assert tuple(task.member for task in rig.state.origin.tasks) == again


def test_a_retry_that_is_repeated_runs_nothing_twice(rig: Rig) -> None:
    submission, tried = _ended(rig)
    retry = retry_of(submission, tried)
    rig.handle(retry)
    assert sent(rig.handle(retry), SchedRequest) == ()
    assert isinstance(rig.state.origin.submissions[TASK], Submission)
    assert rig.state.origin.submissions[TASK].open_members == 2


def test_a_retry_replaces_inputs_of_the_names_that_the_tasks_have(rig: Rig) -> None:
    old, other = (
        InputFile(name="a", sha256=b"1" * 32, size_bytes=1),
        InputFile(name="b", sha256=b"2" * 32, size_bytes=1),
    )
    new, unknown = (
        InputFile(name="a", sha256=b"3" * 32, size_bytes=1),
        InputFile(name="c", sha256=b"4" * 32, size_bytes=1),
    )
    submission, tried = _ended(rig)
    submission = replace(submission, command=replace(submission.command, inputs=(old, other)))
    request = replace(retry_of(submission, tried), inputs=(new, unknown))
    ((_, ask),) = sent(rig.handle(request), SchedRequest)
    transfer = message_in(rig.hear(CHILD, accept(ask.id, claim=CLAIM._replace(number=2), places=2)), TaskTransfer)
    assert [task.command.inputs for task in transfer.tasks] == [(new, other)] * 2
    assert rig.state.origin.submissions[TASK].row.command.inputs == (new, other)
