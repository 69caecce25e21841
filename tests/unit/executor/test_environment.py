"""The variables of a task."""

import pytest
from msgspec.structs import replace

from messiahs.core.model.ids import AttemptId, Epoch, SystemId, TaskId
from messiahs.executor.starter.spawn import Spawner
from tests.unit.executor.runner_rig import start_of

STATED = (("HOME", "/elsewhere"), ("MESSIAHS_ARRAY_INDEX", "9"), ("MESSIAHS_ATTEMPT", "9"), ("MESSIAHS_TASK_ID", "zz"))


@pytest.mark.parametrize(("member", "index"), [(0, {}), (3, {"MESSIAHS_ARRAY_INDEX": "9"})])
def test_which_task_it_is_is_true_whatever_it_states(member: int, index: dict[str, str]) -> None:
    attempt = AttemptId(TaskId(SystemId("blays"), Epoch(1), 17, member), 2)
    start = replace(start_of(attempt), env=(*STATED, ("MESSIAHS_STATE", "/s")))
    found = Spawner(user="ann", path="/bin", nothing=0).environment(start, "/w")
    assert {name: value for name, value in found.items() if name not in {"PATH", "LANG", "TMPDIR", "USER"}} == {
        "HOME": "/elsewhere",
        "MESSIAHS_STATE": "/s",
        "MESSIAHS_TASK_ID": str(attempt.task),
        "MESSIAHS_ATTEMPT": "2",
        **index,
    }
