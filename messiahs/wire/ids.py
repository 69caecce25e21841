"""Ids on the wire (MESSIAHS 5.3.2)."""

from collections.abc import Iterable, Sequence

from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, TaskId
from messiahs.wire.limits import ATTEMPT_LIMIT, at_most, counter, position, system_id
from messiahs.wire.v1 import descriptions_pb2


def write_claim(wire: descriptions_pb2.ClaimId, claim: ClaimId) -> None:
    """Fill in the id of a claim."""
    wire.executor, wire.epoch, wire.number = claim


def read_claim(wire: descriptions_pb2.ClaimId) -> ClaimId:
    """Check the id of a claim."""
    return ClaimId(system_id(wire.executor), Epoch(wire.epoch), counter(wire.number))


def write_attempt(wire: descriptions_pb2.AttemptId, attempt: AttemptId) -> None:
    """Fill in the id of an attempt."""
    task = wire.task
    task.system, task.epoch, task.number, task.member = attempt.task
    wire.number = attempt.number


def read_attempt(wire: descriptions_pb2.AttemptId) -> AttemptId:
    """Check the id of an attempt."""
    task = wire.task
    return AttemptId(
        TaskId(system_id(task.system), Epoch(task.epoch), counter(task.number), position(task.member)),
        position(wire.number),
    )


def attempts_to_wire(attempts: Iterable[AttemptId]) -> list[descriptions_pb2.AttemptId]:
    """Make the ids of several attempts."""
    wires = []
    for attempt in attempts:
        wire = descriptions_pb2.AttemptId()
        write_attempt(wire, attempt)
        wires.append(wire)
    return wires


def read_attempts(wires: Sequence[descriptions_pb2.AttemptId]) -> tuple[AttemptId, ...]:
    """Check the ids of several attempts."""
    at_most(len(wires), ATTEMPT_LIMIT, what="attempts")
    return tuple(map(read_attempt, wires))
