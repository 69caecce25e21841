"""How a task ended, as those are told that waited for it in vain."""

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import AttemptStatus, TaskState
from messiahs.core.interface.rows import TaskRow
from messiahs.core.origin.how_ended import how_ended, how_some_ended
from tests.unit.core.rig import TASK, attempt


@pytest.mark.parametrize(
    ("state", "exit_code", "signal", "cause", "how"),
    [
        (TaskState.FINISHED, 3, None, Cause.NONE, "exit code 3"),
        (TaskState.ABORTED, None, 9, Cause.NONE, "signal 9"),
        (TaskState.ABORTED, None, 9, Cause.MEMORY_LIMIT, "memory limit"),
        (TaskState.ABORTED, 0, None, Cause.OUTPUT_MISSING, "exit code 0, output missing"),
        (TaskState.ABORTED, None, None, Cause.NONE, "aborted"),
        (TaskState.KILLED, None, 15, Cause.KILLED, "cancelled"),
        (TaskState.DENIED, 3, None, Cause.NONE, "denied"),
    ],
)
def test_the_end_of_a_task_is_told_in_words(
    state: TaskState, exit_code: int | None, signal: int | None, cause: Cause, how: str
) -> None:
    result = AttemptStatus(attempt=attempt(), state=state, exit_code=exit_code, signal=signal, cause=cause)
    assert how_ended(TaskRow(id=TASK, state=state, result=result)) == how


def test_a_task_that_never_ran_was_cancelled_or_denied() -> None:
    states = (TaskState.KILLED, TaskState.DENIED)
    assert [how_ended(TaskRow(id=TASK, state=state)) for state in states] == ["cancelled", "denied"]


def test_of_an_array_those_are_counted_that_did_not_end_well() -> None:
    ended = {(TaskState.FINISHED, 0): 4, (TaskState.KILLED, None): 2, (TaskState.FINISHED, 3): 1}
    ended |= {(TaskState.ABORTED, 0): 1, (TaskState.DENIED, None): 0}
    assert how_some_ended(ended, members=9) == "1 of 9: aborted; 1 of 9: exit code 3; 2 of 9: cancelled"
