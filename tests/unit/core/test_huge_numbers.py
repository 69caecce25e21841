"""Numbers of neighbors and users that are as large as the wire allows: what follows from them still fits 64 bits."""

from dataclasses import replace

from messiahs.core.interface.actions import SendVector, StartAttempt
from messiahs.core.interface.events import TransferReceived, VectorReceived
from messiahs.core.interface.limits import LONGEST_PERIOD_NS
from messiahs.core.interface.messages import SchedAccept, SchedRequest, StatusVector, Substate, TaskState, VectorKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.attributes import INTEGER_HIGHEST, MOST_MACHINES
from messiahs.core.model.instants import SECOND
from messiahs.core.vectors.vectors import EMPTY, Vector
from messiahs.trace.format.segments import state_bytes
from messiahs.wire.update import status_vector_from_bytes, status_vector_to_bytes
from tests.unit.core.rig import (
    CHILD,
    ORIGIN,
    PARENT,
    Rig,
    accept,
    attempt,
    message_in,
    only,
    remote,
    request,
    sent,
    status,
    statuses,
    tdv,
    transfer,
    view,
)

UP = VectorKind.FOR_PARENTS


def test_more_machines_than_can_be_counted_are_sent_as_the_maximum(rig: Rig) -> None:
    (machine,) = view().classes
    crowd = replace(machine, count=MOST_MACHINES)
    message = StatusVector(kind=UP, vector=Vector((crowd, crowd)), period_ns=SECOND, age_ns=0)
    message = status_vector_from_bytes(status_vector_to_bytes(message))
    rig.handle(VectorReceived(sender=CHILD, message=message))
    sums = [each.message for each in only(rig.wait(2 * SECOND), SendVector) if each.message.kind is UP]
    assert status_vector_from_bytes(status_vector_to_bytes(sums[-1])).vector.machines == MOST_MACHINES


def test_a_neighbor_that_names_an_endless_period_is_lost_after_three_of_the_longest_ones(rig: Rig) -> None:
    message = StatusVector(kind=UP, vector=EMPTY, period_ns=INTEGER_HIGHEST, age_ns=INTEGER_HIGHEST)
    rig.handle(VectorReceived(sender=CHILD, message=message))
    assert rig.state.timers.deadline_of(TimerKind.INPUT, CHILD) == rig.now + 3 * LONGEST_PERIOD_NS
    assert state_bytes(rig.state)


def test_a_task_with_the_longest_time_limit_can_be_recorded_while_it_runs_elsewhere(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(tdv=tdv(est_time=INTEGER_HIGHEST)), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING, substate=Substate.RUNNING)))
    assert state_bytes(rig.state)


def test_a_task_with_the_longest_time_limit_can_be_given_to_the_starter(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request(tdv=tdv(est_time=INTEGER_HIGHEST))), SchedAccept)
    message = transfer(granted.claim, granted.ticket, remote())
    (start,) = only(rig.handle(TransferReceived(sender=ORIGIN, message=message)), StartAttempt)
    assert start.limit_ns is not None
    assert start.limit_ns <= INTEGER_HIGHEST
