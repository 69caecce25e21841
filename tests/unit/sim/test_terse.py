"""Events and actions in the report of a failure."""

from messiahs.core.actions import SendControl
from messiahs.core.events import AttemptStarted
from messiahs.core.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.core.messages import ClaimEnd, TaskStatusAck
from messiahs.sim.terse import terse

TASK = TaskId(SystemId("blays"), Epoch(1), 17, 3)


def test_ids_are_written_as_people_do() -> None:
    assert terse(AttemptStarted(attempt=AttemptId(TASK, 2))) == "AttemptStarted(attempt=blays.17.3#2)"


def test_what_is_as_usual_is_left_out() -> None:
    claim = ClaimId(SystemId("leonardo"), Epoch(1), 5)
    ack = TaskStatusAck(claim=claim, taken=(AttemptId(TASK, 1),))
    assert terse(SendControl(to=SystemId("cs"), message=ack)) == (
        "SendControl(to=cs, message=TaskStatusAck(claim=leonardo/5, taken=[blays.17.3#1]))"
    )
    assert terse(ClaimEnd(claim=claim)) == "ClaimEnd(claim=leonardo/5)"
