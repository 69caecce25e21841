"""The control channel's messages, by batch (MESSIAHS 5.3.2)."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import assert_never

from messiahs.core.interface.hello import Hello
from messiahs.core.interface.ledger_messages import UsageReport, UsageReportAck
from messiahs.core.interface.membership_messages import (
    CycleProbe,
    Handover,
    HandoverDone,
    Leave,
    SiblingAssignment,
    SiblingRequest,
    SumsSettled,
)
from messiahs.core.interface.messages import (
    ClaimEnd,
    ControlMessage,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    SystemStatusQuery,
    TaskAccept,
    TaskDeny,
    TaskKill,
    TaskRequest,
    TaskRevoke,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.errors import CodecError
from messiahs.wire import claims, handovers, leaving, sched_requests, siblings, task_requests, usage_reports
from messiahs.wire.limits import BATCH_LIMIT, at_most
from messiahs.wire.parsing import parsed, serialized
from messiahs.wire.v1 import control_pb2


def encode_control(messages: Sequence[ControlMessage]) -> control_pb2.ControlBatch:
    """Encode a batch; a `CodecError` explains why a message cannot be sent."""
    at_most(len(messages), BATCH_LIMIT, what="messages")
    batch = control_pb2.ControlBatch()
    try:
        for message in messages:
            _write(batch.messages.add(), message)
    except ValueError as error:
        raise CodecError(f"a control message cannot be sent: {error}") from error
    return batch


def decode_control(
    batch: control_pb2.ControlBatch, *, on_drop: Callable[[str], None] | None = None
) -> tuple[ControlMessage, ...]:
    """Decode a batch, without messages of a kind that this release does not know.

    A malformed message raises a `CodecError`. With `on_drop` it is skipped instead, and `on_drop` gets the reason for
    every skipped message, also for one of an unknown kind.
    """
    return tuple(message for message in _each(batch, on_drop) if message is not None)


def _each(batch: control_pb2.ControlBatch, on_drop: Callable[[str], None] | None) -> Iterator[ControlMessage | None]:
    at_most(len(batch.messages), BATCH_LIMIT, what="messages")
    for wire in batch.messages:
        try:
            message = yield from _reading(wire)
        except CodecError as error:
            if on_drop is None:
                raise
            on_drop(str(error))
            yield None
            continue
        if message is None and on_drop is not None:
            on_drop("a control message of an unknown kind")
        yield message


def control_to_bytes(messages: Sequence[ControlMessage]) -> bytes:
    """Serialise a batch."""
    return serialized(encode_control(messages))


def control_from_bytes(content: bytes, *, on_drop: Callable[[str], None] | None = None) -> tuple[ControlMessage, ...]:
    """Parse a batch as `decode_control` does; bytes that are not a batch always raise."""
    return decode_control(parsed(control_pb2.ControlBatch(), content), on_drop=on_drop)


def each_control_in(content: bytes, *, on_drop: Callable[[str], None]) -> Iterator[ControlMessage | None]:
    """Parse a batch as `control_from_bytes` does, one message after the other; None is a pause, or one that is skipped.

    Bytes that are not a batch are skipped as a whole.
    """
    try:
        yield from _each(parsed(control_pb2.ControlBatch(), content), on_drop)
    except CodecError as error:
        on_drop(str(error))
        yield None


def joined_control(batches: Iterable[bytes]) -> bytes:
    """Join serialised batches in their order (a repeated field is the concatenation of its parts)."""
    return b"".join(batches)


def _write(wire: control_pb2.ControlMessage, message: ControlMessage) -> None:
    match message:
        case TaskStatus():
            claims.write_task_status(wire.task_status, message)
        case TaskStatusAck():
            claims.write_task_status_ack(wire.task_status_ack, message)
        case SchedRequest():
            sched_requests.write_sched_request(wire.sched_request, message)
        case SchedAccept():
            sched_requests.write_sched_accept(wire.sched_accept, message)
        case SchedDeny():
            sched_requests.write_sched_deny(wire.sched_deny, message)
        case TaskRequest():
            task_requests.write_task_request(wire.task_request, message)
        case TaskAccept():
            task_requests.write_task_accept(wire.task_accept, message)
        case TaskDeny():
            task_requests.write_task_deny(wire.task_deny, message)
        case TaskStatusQuery():
            claims.write_task_status_query(wire.task_status_query, message)
        case TaskKill():
            claims.write_task_kill(wire.task_kill, message)
        case TaskRevoke():
            claims.write_task_revoke(wire.task_revoke, message)
        case ClaimEnd():
            claims.write_claim_end(wire.claim_end, message)
        case Hello():
            sched_requests.write_hello(wire.hello, message)
        case Leave():
            leaving.write_leave(wire.leave, message)
        case Handover():
            handovers.write_handover(wire.handover, message)
        case HandoverDone():
            handovers.write_handover_done(wire.handover_done, message)
        case SumsSettled():
            handovers.write_sums_settled(wire.sums_settled, message)
        case CycleProbe():
            handovers.write_cycle_probe(wire.cycle_probe, message)
        case SiblingRequest():
            siblings.write_sibling_request(wire.sibling_request, message)
        case SiblingAssignment():
            siblings.write_sibling_assignment(wire.sibling_assignment, message)
        case UsageReport():
            usage_reports.write_usage_report(wire.usage_report, message)
        case UsageReportAck():
            usage_reports.write_usage_report_ack(wire.usage_report_ack, message)
        case SystemStatusQuery():
            wire.system_status_query.SetInParent()
        case _:
            assert_never(message)


def _reading(wire: control_pb2.ControlMessage) -> Generator[None, None, ControlMessage | None]:
    """Check a message, with pauses if it may be long."""
    if wire.WhichOneof("kind") == "task_status":
        return (yield from claims.reading_task_status(wire.task_status))
    return _read(wire)


def _read(wire: control_pb2.ControlMessage) -> ControlMessage | None:
    match wire.WhichOneof("kind"):
        case "task_status_ack":
            return claims.read_task_status_ack(wire.task_status_ack)
        case "sched_request":
            return sched_requests.read_sched_request(wire.sched_request)
        case "sched_accept":
            return sched_requests.read_sched_accept(wire.sched_accept)
        case "sched_deny":
            return sched_requests.read_sched_deny(wire.sched_deny)
        case "task_request":
            return task_requests.read_task_request(wire.task_request)
        case "task_accept":
            return task_requests.read_task_accept(wire.task_accept)
        case "task_deny":
            return task_requests.read_task_deny(wire.task_deny)
        case "task_status_query":
            return claims.read_task_status_query(wire.task_status_query)
        case "task_kill":
            return claims.read_task_kill(wire.task_kill)
        case "task_revoke":
            return claims.read_task_revoke(wire.task_revoke)
        case "claim_end":
            return claims.read_claim_end(wire.claim_end)
        case "hello":
            return sched_requests.read_hello(wire.hello)
        case "system_status_query":
            return SystemStatusQuery()
        case "leave":
            return leaving.read_leave(wire.leave)
        case "handover":
            return handovers.read_handover(wire.handover)
        case "handover_done":
            return handovers.read_handover_done(wire.handover_done)
        case "sums_settled":
            return handovers.read_sums_settled(wire.sums_settled)
        case "cycle_probe":
            return handovers.read_cycle_probe(wire.cycle_probe)
        case "sibling_request":
            return siblings.read_sibling_request(wire.sibling_request)
        case "sibling_assignment":
            return siblings.read_sibling_assignment(wire.sibling_assignment)
        case "usage_report":
            return usage_reports.read_usage_report(wire.usage_report)
        case "usage_report_ack":
            return usage_reports.read_usage_report_ack(wire.usage_report_ack)
        case _:
            return None
