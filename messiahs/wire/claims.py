"""The messages of a claim, on the wire (MESSIAHS 5.3.2)."""

from collections.abc import Generator
from typing import Final

from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import (
    AttemptStatus,
    ClaimEnd,
    Substate,
    TaskKill,
    TaskRevoke,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.model.ids import SearchId
from messiahs.core.model.output_names import DECLARED_PREFIX, LOGS
from messiahs.core.model.task_files import Output
from messiahs.core.model.usage import LACKS_LIMIT_BYTES, Containment
from messiahs.errors import CodecError
from messiahs.wire.assigned import read_assigned, write_assigned
from messiahs.wire.ids import attempts_to_wire, read_attempt, read_attempts, read_claim, write_attempt, write_claim
from messiahs.wire.limits import (
    ATTEMPT_LIMIT,
    OUTPUT_LIMIT,
    TEXT_LIMIT_BYTES,
    WORD_LIMIT_BYTES,
    amount,
    at_most,
    check_kind,
    counter,
    line,
    relative_path,
    secret,
    shortened,
    system_id,
)
from messiahs.wire.parsing import in_parts
from messiahs.wire.usage import read_usage, write_usage
from messiahs.wire.v1 import control_pb2

_TO_STATE: Final = {
    TaskState.EXECUTING: control_pb2.TASK_STATE_EXECUTING,
    TaskState.FINISHED: control_pb2.TASK_STATE_FINISHED,
    TaskState.ABORTED: control_pb2.TASK_STATE_ABORTED,
    TaskState.KILLED: control_pb2.TASK_STATE_KILLED,
    TaskState.REVOKED: control_pb2.TASK_STATE_REVOKED,
    TaskState.DENIED: control_pb2.TASK_STATE_DENIED,
}
_FROM_STATE: Final[dict[int, TaskState]] = {number: state for state, number in _TO_STATE.items()}
_TO_SUBSTATE: Final = {
    Substate.QUEUED: control_pb2.SUBSTATE_QUEUED,
    Substate.STAGING: control_pb2.SUBSTATE_STAGING,
    Substate.RUNNING: control_pb2.SUBSTATE_RUNNING,
    Substate.SUSPENDED: control_pb2.SUBSTATE_SUSPENDED,
    Substate.VACATING: control_pb2.SUBSTATE_VACATING,
}
_FROM_SUBSTATE: Final[dict[int, Substate]] = {number: substate for substate, number in _TO_SUBSTATE.items()}

_HIGHEST_EXIT_CODE: Final = 255
_HIGHEST_SIGNAL: Final = 127


def write_task_status(wire: control_pb2.TaskStatus, status: TaskStatus) -> None:
    """Fill in states of a claim's attempts."""
    write_claim(wire.claim, status.claim)
    for attempt in status.attempts:
        _write_attempt_status(wire.attempts.add(), attempt)
    wire.window, wire.renewal = status.window, status.renewal


def reading_task_status(wire: control_pb2.TaskStatus) -> Generator[None, None, TaskStatus]:
    """Check states of a claim's attempts, with pauses: see `in_parts`."""
    at_most(len(wire.attempts), ATTEMPT_LIMIT, what="attempts")
    return TaskStatus(
        claim=read_claim(wire.claim),
        attempts=(yield from in_parts(_read_attempt_status, wire.attempts, entries=lambda each: len(each.outputs))),
        window=amount(wire.window),
        renewal=counter(wire.renewal),
    )


def _write_attempt_status(wire: control_pb2.AttemptStatus, status: AttemptStatus) -> None:
    write_attempt(wire.attempt, status.attempt)
    wire.state = _TO_STATE[status.state]
    if status.substate is not None:
        wire.substate = _TO_SUBSTATE[status.substate]
    if status.exit_code is not None:
        wire.exit_code = status.exit_code
    if status.signal is not None:
        wire.signal = status.signal
    if status.cause:
        wire.cause = shortened(status.cause, WORD_LIMIT_BYTES)
    if status.text:
        wire.text = shortened(status.text, TEXT_LIMIT_BYTES)
    wire.is_rule_text = status.is_rule_text
    wire.ran_ns = status.ran_ns
    if status.usage is not None:
        write_usage(wire.usage, status.usage)
    if status.containment is not None:
        wire.containment.isolation = shortened(status.containment.isolation, WORD_LIMIT_BYTES)
        wire.containment.lacks = shortened(status.containment.lacks, LACKS_LIMIT_BYTES)
    write_assigned(wire, status.assigned)
    for output in status.outputs:
        wire.outputs.add(
            name=output.name,
            size_bytes=output.size_bytes,
            is_executable=output.is_executable,
            link_target=output.link_target,
            is_folder=output.is_folder,
        )


def _read_attempt_status(wire: control_pb2.AttemptStatus) -> AttemptStatus:
    state, substate = _FROM_STATE.get(wire.state), _FROM_SUBSTATE.get(wire.substate)
    if state is None or (substate is None and wire.substate):
        raise CodecError(f"{wire.state}, {wire.substate} is not a state of a task")
    if state is TaskState.FINISHED and not wire.HasField("exit_code") and not wire.HasField("signal"):
        raise CodecError("a finished task has neither an exit code nor a signal")
    if wire.cause == Cause.UNREACHABLE or (wire.cause == Cause.NEVER_ARRIVED and state is not TaskState.DENIED):
        raise CodecError(f"{wire.cause} is no cause of which an executor reports a task as {state}")
    at_most(len(wire.outputs), OUTPUT_LIMIT, what="outputs")
    return AttemptStatus(
        attempt=read_attempt(wire.attempt),
        state=state,
        substate=substate,
        exit_code=_in_range(wire.exit_code, lowest=0, highest=_HIGHEST_EXIT_CODE)
        if wire.HasField("exit_code")
        else None,
        signal=_in_range(wire.signal, lowest=1, highest=_HIGHEST_SIGNAL) if wire.HasField("signal") else None,
        cause=line(wire.cause, WORD_LIMIT_BYTES),
        text=line(wire.text, TEXT_LIMIT_BYTES),
        is_rule_text=wire.is_rule_text,
        ran_ns=counter(wire.ran_ns),
        usage=read_usage(wire.usage) if wire.HasField("usage") else None,
        containment=_read_containment(wire.containment) if wire.HasField("containment") else None,
        outputs=tuple(map(_read_output, wire.outputs)),
        assigned=read_assigned(wire),
    )


def _read_containment(wire: control_pb2.Containment) -> Containment:
    return Containment(
        isolation=line(wire.isolation, WORD_LIMIT_BYTES),
        lacks=line(wire.lacks, LACKS_LIMIT_BYTES),
    )


def _read_output(wire: control_pb2.Output) -> Output:
    size_bytes = counter(wire.size_bytes)
    name = relative_path(wire.name)
    is_file = not wire.link_target and not wire.is_folder
    if not name.startswith(DECLARED_PREFIX) and not (name in LOGS and is_file):
        raise CodecError(f"{name[:80]!r} is not an output of a task")
    path = name.removeprefix(DECLARED_PREFIX)
    check_kind(path, link_target=wire.link_target, is_folder=wire.is_folder, size_bytes=size_bytes)
    return Output(
        name=name,
        size_bytes=size_bytes,
        is_executable=wire.is_executable,
        link_target=wire.link_target,
        is_folder=wire.is_folder,
    )


def _in_range(number: int, *, lowest: int, highest: int) -> int:
    if not lowest <= number <= highest:
        raise CodecError(f"{number} is not in {lowest} to {highest}")
    return number


def write_task_status_ack(wire: control_pb2.TaskStatusAck, ack: TaskStatusAck) -> None:
    """Fill in an acknowledgement."""
    write_claim(wire.claim, ack.claim)
    wire.taken.extend(attempts_to_wire(ack.taken))
    wire.unbound.extend(attempts_to_wire(ack.unbound))
    wire.renewal = ack.renewal
    wire.moving.extend(attempts_to_wire(ack.moving))
    wire.lease_ns = ack.lease_ns


def read_task_status_ack(wire: control_pb2.TaskStatusAck) -> TaskStatusAck:
    """Check an acknowledgement."""
    return TaskStatusAck(
        claim=read_claim(wire.claim),
        taken=read_attempts(wire.taken),
        unbound=read_attempts(wire.unbound),
        renewal=counter(wire.renewal),
        moving=read_attempts(wire.moving),
        lease_ns=counter(wire.lease_ns),
    )


def write_task_status_query(wire: control_pb2.TaskStatusQuery, query: TaskStatusQuery) -> None:
    """Fill in a query for attempts."""
    write_claim(wire.claim, query.claim)
    wire.attempts.extend(attempts_to_wire(query.attempts))


def read_task_status_query(wire: control_pb2.TaskStatusQuery) -> TaskStatusQuery:
    """Check a query for attempts."""
    return TaskStatusQuery(claim=read_claim(wire.claim), attempts=read_attempts(wire.attempts))


def write_task_kill(wire: control_pb2.TaskKill, kill: TaskKill) -> None:
    """Fill in a request to end attempts."""
    write_claim(wire.claim, kill.claim)
    wire.attempts.extend(attempts_to_wire(kill.attempts))
    wire.is_move = kill.is_move
    wire.is_barring = kill.is_barring


def read_task_kill(wire: control_pb2.TaskKill) -> TaskKill:
    """Check a request to end attempts."""
    return TaskKill(
        claim=read_claim(wire.claim),
        attempts=read_attempts(wire.attempts),
        is_move=wire.is_move,
        is_barring=wire.is_barring,
    )


def write_task_revoke(wire: control_pb2.TaskRevoke, revoke: TaskRevoke) -> None:
    """Fill in the attempts that are to move."""
    write_claim(wire.claim, revoke.claim)
    wire.attempts.extend(attempts_to_wire(revoke.attempts))
    wire.text = shortened(revoke.text, TEXT_LIMIT_BYTES)
    if revoke.answers is not None:
        wire.answers = revoke.answers
    if revoke.toward is not None:
        wire.toward = revoke.toward


def read_task_revoke(wire: control_pb2.TaskRevoke) -> TaskRevoke:
    """Check the attempts that are to move."""
    return TaskRevoke(
        claim=read_claim(wire.claim),
        attempts=read_attempts(wire.attempts),
        text=line(wire.text, TEXT_LIMIT_BYTES),
        answers=SearchId(secret(wire.answers)) if wire.answers else None,
        toward=system_id(wire.toward) if wire.toward else None,
    )


def write_claim_end(wire: control_pb2.ClaimEnd, end: ClaimEnd) -> None:
    """Fill in the end of a claim."""
    write_claim(wire.claim, end.claim)
    wire.is_forgotten = end.is_forgotten


def read_claim_end(wire: control_pb2.ClaimEnd) -> ClaimEnd:
    """Check the end of a claim."""
    return ClaimEnd(claim=read_claim(wire.claim), is_forgotten=wire.is_forgotten)
