"""Tasks that do not wait, on machines that can start none: they are denied at once."""

from collections.abc import Sequence

import pytest

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import HOUR, SECOND, after
from messiahs.core.model.task_files import InputFile
from messiahs.sim.world.conditions import Conditions
from tests.simulation.family import family
from tests.unit.core.rig import tdv

POND = SystemId("pond")


@pytest.mark.parametrize("machines", [("pond",), ("brook",), ("pond", "brook"), ("brook", "ditch")])
def test_a_task_that_does_not_wait_is_denied_within_seconds_with_the_machine_that_could_not_start_it(
    machines: Sequence[str],
) -> None:
    parents: dict[str, Sequence[str]] = {"pond": (), "brook": ("pond",), "ditch": ("pond",)}
    federation = family(parents, machines=machines, conditions=Conditions(failed_staging=100))
    submitted_at = federation.now
    event = Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey("k"),
        tdv=tdv(origin=POND),
        requirement="",
        command=Command(argv=("true",), inputs=(InputFile(name="input", sha256=bytes(32), size_bytes=1),)),
        waits=False,
    )
    federation.post(POND, event)
    federation.run(lambda: bool(federation.ended), until=after(submitted_at, HOUR))
    (row,) = federation.ended.values()
    assert row.state is TaskState.DENIED
    assert row.ended_at is not None
    assert row.ended_at - submitted_at < 10 * SECOND
    assert row.reasons[0].module in machines
    assert row.reasons[0].text == "the last attempt could not be started: staging_failed"
