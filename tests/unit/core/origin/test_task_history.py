"""The history of tasks as shown to users: how each attempt ended."""

from typing import Any

import pytest

from messiahs.core.interface.messages import TaskState
from tests.unit.core.origin.test_task_status import bind, final
from tests.unit.core.rig import CHILD, Rig, attempt, status, statuses


def test_each_attempt_that_is_tried_again_has_its_exit_code(rig: Rig) -> None:
    bind(rig, retries=2)
    for number, code in enumerate((2, 3, 4), start=1):
        actions = rig.hear(CHILD, statuses(status(attempt(number), exit_code=code)))
    ends = [(entry.attempt, entry.text) for entry in final(actions).history if entry.event == "finished"]
    assert ends == [(1, "exit code 2"), (2, "exit code 3"), (3, "exit code 4")]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"state": TaskState.ABORTED, "signal": 9}, ("aborted", "signal 9")),
        (
            {"state": TaskState.ABORTED, "exit_code": 3, "cause": "output_missing", "text": "missing: out"},
            ("output_missing", "exit code 3"),
        ),
        ({"state": TaskState.FINISHED, "exit_code": 0}, ("finished", "")),
    ],
)
def test_the_history_of_a_task_has_how_each_attempt_ended(
    rig: Rig, said: dict[str, Any], shown: tuple[str, str]
) -> None:
    bind(rig)
    row = final(rig.hear(CHILD, statuses(status(attempt(), **said))))
    assert (row.history[-1].event, row.history[-1].text) == shown
