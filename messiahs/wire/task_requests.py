"""Messages that request tasks, on the wire (MESSIAHS 5.3.2, 6.2)."""

from messiahs.core.interface.messages import TaskAccept, TaskDeny, TaskRequest
from messiahs.core.model.ids import MessageId, SearchId
from messiahs.wire.limits import amount, counter, predicate_text, secret, system_id
from messiahs.wire.sched_requests import read_reasons, read_trust, write_reasons, write_trust
from messiahs.wire.v1 import control_pb2


def write_task_request(wire: control_pb2.TaskRequest, request: TaskRequest) -> None:
    """Fill in a request for tasks."""
    wire.id, wire.search, wire.requester = request.id, request.search, request.requester
    wire.wanting, wire.count = request.wanting.encode(), request.count
    wire.hops_left, wire.asks_left = request.hops_left, request.asks_left
    wire.remaining_ns = request.remaining_ns
    write_trust(wire.trust, request.trust)


def read_task_request(wire: control_pb2.TaskRequest) -> TaskRequest:
    """Check a request for tasks."""
    return TaskRequest(
        id=MessageId(counter(wire.id)),
        search=SearchId(secret(wire.search)),
        requester=system_id(wire.requester),
        wanting=predicate_text(wire.wanting),
        count=amount(wire.count, lowest=1),
        hops_left=amount(wire.hops_left),
        asks_left=amount(wire.asks_left),
        remaining_ns=counter(wire.remaining_ns),
        trust=read_trust(wire.trust),
    )


def write_task_accept(wire: control_pb2.TaskAccept, accept: TaskAccept) -> None:
    """Fill in a promise of tasks."""
    wire.request, wire.count, wire.asks_left = accept.request, accept.count, accept.asks_left


def read_task_accept(wire: control_pb2.TaskAccept) -> TaskAccept:
    """Check a promise of tasks."""
    return TaskAccept(
        request=MessageId(counter(wire.request)),
        count=amount(wire.count, lowest=1),
        asks_left=amount(wire.asks_left),
    )


def write_task_deny(wire: control_pb2.TaskDeny, deny: TaskDeny) -> None:
    """Fill in a denial of tasks."""
    wire.request, wire.asks_left = deny.request, deny.asks_left
    write_reasons(wire.reasons, deny.reasons)


def read_task_deny(wire: control_pb2.TaskDeny) -> TaskDeny:
    """Check a denial of tasks."""
    return TaskDeny(
        request=MessageId(counter(wire.request)),
        reasons=read_reasons(wire.reasons),
        asks_left=amount(wire.asks_left),
    )
