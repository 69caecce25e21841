"""The checks that find a task which begins before what it waits for has happened, or is forgotten too early."""

from dataclasses import replace

import pytest

from messiahs.core.interface.dependencies import Dependency, WantedOutput, When
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.instants import Instant
from messiahs.sim.checks.order import StartOrder
from tests.unit.core.rig import TASK, attempt, status, tdv

LATER = TASK._replace(number=2)


def submission(number: int, *after: Dependency, members: int = 0) -> SubmissionRow:
    return SubmissionRow(
        id=TASK._replace(number=number),
        key=ClientKey(f"k{number}"),
        tdv=tdv(),
        requirement="",
        command=Command(argv=("true",)),
        members=members,
        submitted_at=Instant(0),
        after=after,
    )


def ended(member: int, exit_code: int) -> TaskRow:
    task = TASK._replace(member=member)
    result = status(attempt(member=member), exit_code=exit_code)
    return TaskRow(id=task, state=TaskState.FINISHED, result=result)


@pytest.mark.parametrize("when", [When.STARTED, When.ENDED, When.OK])
def test_a_task_begins_too_early_until_all_members_of_an_array_have_come_so_far(when: When) -> None:
    order = StartOrder()
    order.stored(submission(1, members=2))
    order.stored(submission(2, Dependency(on=TASK, when=when.value)))
    order.begun(TASK._replace(member=1))
    order.ended(ended(1, 0))
    assert order.why_not(LATER) == f"{TASK} has not been {when}"
    order.begun(TASK._replace(member=2))
    assert bool(order.why_not(LATER)) == (when is not When.STARTED)
    order.ended(ended(2, 1))
    assert bool(order.why_not(LATER)) == (when is When.OK)
    order.ended(ended(2, 0))
    assert not order.why_not(LATER)


def test_a_member_begins_too_early_until_the_other_one_of_its_number_has_ended_well() -> None:
    order = StartOrder()
    order.stored(submission(1, members=2))
    order.stored(submission(2, Dependency(on=TASK, when=When.EACH.value), members=2))
    first, second = LATER._replace(member=1), LATER._replace(member=2)
    order.ended(ended(1, 0))
    order.ended(ended(2, 1))
    assert not order.why_not(first)
    assert order.why_not(second) == f"{TASK._replace(member=2)} has not been ok"
    order.ended(ended(2, 0))
    assert not order.why_not(second)


def test_a_submission_is_forgotten_too_early_until_it_and_what_depends_on_it_have_ended() -> None:
    order = StartOrder()
    first, later = submission(1), submission(2, Dependency(on=TASK, when=When.ENDED.value, is_met=True))
    order.stored(first)
    order.stored(later)
    assert order.forget(TASK) == "has not ended"
    order.stored(replace(first, ended_at=Instant(1)))
    assert order.forget(TASK) == f"is needed by {LATER}"
    order.stored(replace(later, ended_at=Instant(2)))
    assert not order.forget(TASK)


def test_a_task_begins_too_early_until_outputs_of_others_are_its_inputs() -> None:
    order = StartOrder()
    order.stored(submission(1))
    later = submission(2, Dependency(on=TASK, when=When.OK.value, outputs=(WantedOutput(name="a", to="b"),)))
    order.stored(later)
    order.ended(ended(0, 0))
    assert order.why_not(LATER) == "outputs that it takes of others are not there"
    order.stored(replace(later, taken=1))
    assert not order.why_not(LATER)
