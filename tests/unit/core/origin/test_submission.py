"""What local users ask: submitting, cancelling, deadlines."""

import pytest

from messiahs.core.interface.actions import Action, Answer, Decision, Store, TaskEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested, LinkDown, StoreChanged
from messiahs.core.interface.limits import SHAPE_LIMIT
from messiahs.core.interface.messages import Command, SchedRequest, TaskKill, TaskState
from messiahs.core.interface.rows import CountersRow, SubmissionRow, TaskRow
from messiahs.core.model.ids import ClientKey, TaskId
from messiahs.core.model.instants import SECOND, after
from messiahs.core.origin.retry import failed_in
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    COMMAND,
    TASK,
    Rig,
    accept,
    answered,
    attempt,
    have_results,
    message_in,
    only,
    sent,
    status,
    statuses,
    tdv,
)


def rows(actions: tuple[Action, ...]) -> list[tuple[int, str]]:
    found = [action.row for action in only(actions, Store) if isinstance(action.row, TaskRow)]
    return [(row.id.member, row.state) for row in found]


def runs(actions: tuple[Action, ...]) -> list[tuple[int, int, str]]:
    """Return the members that ended without a row, by what was stored last of their submission."""
    *_, last = [action.row for action in only(actions, Store) if isinstance(action.row, SubmissionRow)]
    return [(run.first, run.last, run.state) for run in last.untried]


def cancel(rig: Rig, member: int = 0) -> tuple[Action, ...]:
    return rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK._replace(member=member)))


def bind(rig: Rig, *, members: int, places: int) -> None:
    ((_, ask),) = sent(rig.submit(members), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=places))


def test_members_with_attributes_of_their_own_are_bounded(rig: Rig) -> None:
    (refused,) = only(rig.submit(SHAPE_LIMIT + 1, tdv=tdv(x="{}")), Answer)
    assert refused.problem.startswith(f"one submit takes at most {SHAPE_LIMIT} tasks with other attributes each")
    assert rig.state.origin.submissions == {}
    two = ("odd", "even") * SHAPE_LIMIT
    (taken,) = only(rig.submit(len(two), tdv=tdv(x="{}"), items=two), Answer)
    assert (taken.problem, taken.task) == ("", TASK)


def test_a_submission_is_stored_with_its_counter_before_it_is_answered(rig: Rig) -> None:
    actions = rig.submit(members=3, name="sweep", retries=1, deadline_ns=60 * SECOND)
    assert actions[:4] == (
        Store(row=CountersRow(submissions=1, kept_since=rig.now)),
        Store(
            row=SubmissionRow(
                id=TASK,
                key=ClientKey("k"),
                tdv=tdv(),
                requirement="",
                command=COMMAND,
                members=3,
                submitted_at=rig.now,
                name="sweep",
                retries=1,
                deadline_at=after(rig.now, 60 * SECOND),
            )
        ),
        Decision(what="submitted", task="me.1", text="3 tasks: true"),
        Answer(answer_to=AnswerTo(1), task=TASK),
    )


def test_the_same_key_gives_the_same_id_and_no_second_task(rig: Rig) -> None:
    rig.submit()
    assert rig.submit() == (Answer(answer_to=AnswerTo(1), task=TASK),)
    assert answered(rig.submit(key=ClientKey("other"))).task == TASK._replace(number=2)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"requirement": "$speed >"}, "the requirement is not a predicate"),
        ({"requirement": "$speed > 1 and $os > 3"}, "can never be true: $os is a text, which is compared with eq, ne"),
        ({"requirement": '$load ls "9"'}, "can never be true: $load is a number, which is compared with =, <>"),
        ({"command": Command(argv=())}, "there is no command"),
        ({"command": Command(argv=("x" * 200_000,))}, "longer than"),
        ({"command": Command(argv=("x",), env=(("A", "x" * 200_000),))}, "longer than"),
        ({"members": 1_000_001}, "at most 1000000"),
        ({"members": -1}, "at most"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(rig: Rig, said: dict[str, object], problem: str) -> None:
    actions = rig.submit(**said)  # type: ignore[arg-type]
    assert problem in answered(actions).problem
    assert len(actions) == 1
    assert rig.state.counters == CountersRow()


def test_nothing_is_taken_while_the_disk_is_full(rig: Rig) -> None:
    rig.handle(StoreChanged(has_space=False))
    assert "no_space" in answered(rig.submit()).problem


def test_arguments_need_not_be_unicode(rig: Rig) -> None:
    assert answered(rig.submit(command=Command(argv=("cat", b"\xff".decode(errors="surrogateescape"))))).task == TASK


def test_a_waiting_task_that_is_cancelled_is_killed_at_once(rig: Rig) -> None:
    rig.submit()
    actions = cancel(rig)
    assert answered(actions).task == TASK
    assert rows(actions) == [(0, "killed")]
    assert TaskEnded(task=TASK) in actions
    assert rig.state.origin.submissions == {}


def test_one_waiting_member_of_an_array_can_be_cancelled(rig: Rig) -> None:
    rig.submit(members=5)
    assert rows(cancel(rig, member=3)) == [(3, "killed")]
    (shape,) = rig.state.origin.shapes.values()
    assert list(shape.waiting) == [(TASK, 1, 2), (TASK, 4, 5)]
    assert rows(cancel(rig, member=3)) == []


def test_to_cancel_an_array_ends_what_waits_and_kills_what_is_bound(rig: Rig) -> None:
    bind(rig, members=4, places=2)
    actions = cancel(rig)
    kills = [message.attempts for _, message in sent(actions, TaskKill)]
    assert kills == [(attempt(member=1), attempt(member=2))]
    assert rows(actions) == [(1, "executing"), (2, "executing")]
    assert runs(actions) == [(3, 4, "killed")]
    killed = [status(attempt(member=member), TaskState.KILLED) for member in (1, 2)]
    assert rows(rig.hear(CHILD, statuses(*killed))) == [(1, "killed"), (2, "killed")]
    assert not (rig.state.origin.submissions)
    assert not (rig.state.origin.claims)


def test_one_bound_member_can_be_cancelled_and_the_others_continue(rig: Rig) -> None:
    bind(rig, members=2, places=2)
    assert message_in(cancel(rig, member=2), TaskKill).attempts == (attempt(member=2),)
    rig.hear(CHILD, statuses(status(attempt(member=2), TaskState.KILLED)))
    assert rig.state.origin.tasks[TASK._replace(member=1)].claim == CLAIM


def test_a_task_whose_executor_cannot_be_reached_is_marked_until_it_can(rig: Rig) -> None:
    bind(rig, members=0, places=1)
    rig.handle(LinkDown(neighbor=CHILD))
    cancel(rig)
    assert rig.state.origin.tasks[TASK].is_cancelled
    rig.greet(CHILD)
    actions = rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING), renewal=1))
    assert message_in(actions, TaskKill).attempts == (attempt(),)


def test_to_cancel_what_has_ended_or_never_was_changes_nothing(rig: Rig) -> None:
    assert cancel(rig) == (Answer(answer_to=AnswerTo(2), task=TASK),)
    bind(rig, members=0, places=1)
    rig.hear(CHILD, statuses(status(attempt())))
    assert cancel(rig) == (Answer(answer_to=AnswerTo(2), task=TASK),)


def test_a_waiting_task_is_denied_at_its_deadline_and_a_running_one_continues(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(3, deadline_ns=5 * SECOND), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=1))
    assert runs(rig.wait(5 * SECOND)) == [(2, 3, "denied")]
    assert rows(rig.hear(CHILD, statuses(status(attempt(member=1))))) == [(1, "finished")]


def test_a_deadline_is_gone_with_the_last_task(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(deadline_ns=5 * SECOND), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    actions = rig.hear(CHILD, statuses(status(attempt())))
    last = [action.row for action in only(actions, Store) if isinstance(action.row, SubmissionRow)]
    assert [row.ended_at for row in last] == [rig.now]
    assert rows(rig.wait(10 * SECOND)) == []


def test_members_are_numbered_from_one_and_a_single_task_is_member_none(rig: Rig) -> None:
    bind(rig, members=1, places=1)
    assert list(rig.state.origin.tasks) == [TaskId(*TASK[:3], 1)]


def test_a_retry_of_the_killed_leaves_tasks_alone_that_exited_by_themselves_or_were_denied() -> None:
    def row(member: int, state: TaskState, **said: object) -> TaskRow:
        result = status(attempt(member=member), state, **said) if said else None
        return TaskRow(id=TASK._replace(member=member), state=state, result=result)

    tried = [
        row(1, TaskState.FINISHED, exit_code=0),
        row(2, TaskState.FINISHED, exit_code=1),
        row(3, TaskState.ABORTED, exit_code=0, cause=Cause.OUTPUT_MISSING),
        row(4, TaskState.ABORTED, cause=Cause.TIME_LIMIT),
        row(5, TaskState.ABORTED, signal=9),
        row(6, TaskState.KILLED),
        row(7, TaskState.DENIED),
        # Its shell reports that its program was killed, and a program may handle SIGTERM.
        row(8, TaskState.ABORTED, exit_code=137, cause=Cause.MEMORY_LIMIT),
        row(9, TaskState.ABORTED, exit_code=0, cause=Cause.TIME_LIMIT),
        row(10, TaskState.ABORTED, exit_code=127, cause=Cause.NOT_FOUND),
    ]
    assert [each.id.member for each in failed_in(tried, is_of_killed=True)] == [4, 5, 6, 8, 9]
    assert [each.id.member for each in failed_in(tried, is_of_killed=False)] == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_cancel_answers_how_many_tasks_it_ends(rig: Rig) -> None:
    bind(rig, members=6, places=4)
    have_results(rig)
    rig.hear(CHILD, statuses(status(attempt(member=1))))
    assert answered(cancel(rig, member=2)).count == 1
    assert answered(cancel(rig, member=2)).count == 0
    assert answered(cancel(rig, member=1)).count == 0
    assert answered(cancel(rig)).count == 4
    assert answered(cancel(rig)).count == 0
