"""Refused values from neighbors: each in a message that is otherwise well-formed."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from messiahs.core.interface.messages import (
    AttemptStatus,
    BoundTask,
    Command,
    DenyCode,
    Reason,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    SystemStatusQuery,
    TaskRequest,
    TaskState,
    TaskStatus,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.model.attributes import MACHINE_ATTRIBUTES, Kind
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, MessageId, SearchId, SystemId, TaskId, Ticket
from messiahs.core.model.task_files import Output
from messiahs.core.vectors.vectors import Interval, MachineClass, Vector
from messiahs.errors import CodecError
from messiahs.language.predicate.predicates import predicate_parser
from messiahs.wire.codec import (
    control_from_bytes,
    control_to_bytes,
    decode_control,
    decode_transfer,
    encode_control,
    encode_transfer,
    status_vector_to_bytes,
)
from messiahs.wire.v1 import control_pb2, descriptions_pb2, task_pb2
from tests.hostile.predicates import refused_bytes

CS = SystemId("cs")
CLAIM = ClaimId(CS, Epoch(1), 1)
ATTEMPT = AttemptId(TaskId(CS, Epoch(1), 1), 1)
SIXTEEN = bytes(16)
DESCRIPTION = TDV((("cpus", 1), ("origin", "cs"), ("user", "ada")))


def request() -> control_pb2.ControlBatch:
    return encode_control(
        (
            SchedRequest(
                id=MessageId(1),
                search=SearchId(SIXTEEN),
                origin=CS,
                tdv=DESCRIPTION,
                requirement="",
                count=1,
                hops_left=1,
                asks_left=1,
                remaining_ns=1,
            ),
        )
    )


def accept() -> control_pb2.ControlBatch:
    return encode_control(
        (
            SchedAccept(
                request=MessageId(1),
                claim=CLAIM,
                address="localhost:1",
                ticket=Ticket(SIXTEEN),
                places=1,
                window=1,
                lease_ns=1,
                asks_left=1,
            ),
        )
    )


def deny() -> control_pb2.ControlBatch:
    reason = Reason(module=CS, code=DenyCode.LOST)
    return encode_control((SchedDeny(request=MessageId(1), reasons=(reason,), asks_left=0),))


def status() -> control_pb2.ControlBatch:
    outputs = (Output(name="stdout", size_bytes=1),)
    attempt = AttemptStatus(attempt=ATTEMPT, state=TaskState.FINISHED, exit_code=0, outputs=outputs)
    return encode_control((TaskStatus(claim=CLAIM, attempts=(attempt,), window=1),))


def nested(depth: int) -> control_pb2.Reason:
    wire = control_pb2.Reason(module="cs", code=control_pb2.DENY_CODE_LOST)
    return (
        wire
        if depth == 1
        else control_pb2.Reason(module="cs", code=control_pb2.DENY_CODE_LOST, hops=[nested(depth - 1)])
    )


def pair(name: str, value: int | str) -> descriptions_pb2.Pair:
    if isinstance(value, str):
        return descriptions_pb2.Pair(name=name, text=value)
    return descriptions_pb2.Pair(name=name, integer=value)


def set_pairs(wire: control_pb2.SchedRequest, *pairs: tuple[str, int | str]) -> None:
    del wire.tdv.pairs[:]
    wire.tdv.pairs.extend(pair(name, value) for name, value in pairs)


CPUS, ORIGIN, USER = ("cpus", 1), ("origin", "cs"), ("user", "ada")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: setattr(wire, "search", bytes(15)),
        lambda wire: setattr(wire, "origin", "../cs"),
        lambda wire: setattr(wire, "origin", "a" * 256),
        lambda wire: setattr(wire, "origin", ""),
        lambda wire: setattr(wire, "count", 0),
        lambda wire: setattr(wire, "count", 2**40),
        lambda wire: setattr(wire, "id", 2**63),
        lambda wire: setattr(wire, "remaining_ns", 2**63),
        lambda wire: wire.trust.roots.append(bytes(15)),
        lambda wire: wire.trust.vouchers.extend([SIXTEEN] * 17),
        lambda wire: wire.avoids.extend([SIXTEEN] * 65),
        lambda wire: set_pairs(wire, CPUS, ORIGIN),
        lambda wire: set_pairs(wire, ORIGIN, CPUS, USER),
        lambda wire: set_pairs(wire, CPUS, CPUS, ORIGIN, USER),
        lambda wire: set_pairs(wire, ("1st", 1), CPUS, ORIGIN, USER),
        lambda wire: set_pairs(wire, ("a" * 65, 1), CPUS, ORIGIN, USER),
        lambda wire: set_pairs(wire, ("cpus", "many"), ORIGIN, USER),
        lambda wire: set_pairs(wire, CPUS, ("origin", 1), USER),
        lambda wire: set_pairs(wire, CPUS, ORIGIN, ("user", "é" * 33)),
        lambda wire: set_pairs(wire, *((f"a{number}", 1) for number in range(9)), CPUS, ORIGIN, USER),
        lambda wire: wire.tdv.pairs[0].ClearField("integer"),
    ],
)
def test_a_request_for_places_is_refused(spoil: Callable[[control_pb2.SchedRequest], None]) -> None:
    batch = request()
    assert decode_control(batch)
    spoil(batch.messages[0].sched_request)
    with pytest.raises(CodecError):
        decode_control(batch)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: setattr(wire, "ticket", b""),
        lambda wire: setattr(wire, "places", 0),
        lambda wire: setattr(wire, "window", 2**40),
        lambda wire: setattr(wire, "address", "local host:1"),
        lambda wire: setattr(wire, "address", "h" * 301),
        lambda wire: wire.ClearField("claim"),
    ],
)
def test_a_grant_is_refused(spoil: Callable[[control_pb2.SchedAccept], None]) -> None:
    batch = accept()
    assert decode_control(batch)
    spoil(batch.messages[0].sched_accept)
    with pytest.raises(CodecError):
        decode_control(batch)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: setattr(wire.reasons[0], "code", 0),
        lambda wire: setattr(wire.reasons[0], "code", 99),
        lambda wire: setattr(wire.reasons[0], "text", "x" * 513),
        lambda wire: setattr(wire.reasons[0], "rule", "x" * 257),
        lambda wire: wire.reasons.append(nested(33)),
        lambda wire: wire.reasons.extend([nested(1)] * 256),
        lambda wire: wire.reasons.extend([nested(32)] * 8),
    ],
)
def test_a_denial_is_refused(spoil: Callable[[control_pb2.SchedDeny], None]) -> None:
    batch = deny()
    assert decode_control(batch)
    spoil(batch.messages[0].sched_deny)
    with pytest.raises(CodecError):
        decode_control(batch)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: setattr(wire, "state", 0),
        lambda wire: setattr(wire, "state", 7),
        lambda wire: setattr(wire, "substate", 9),
        lambda wire: wire.ClearField("exit_code"),
        lambda wire: setattr(wire, "exit_code", 256),
        lambda wire: setattr(wire, "exit_code", -1),
        lambda wire: setattr(wire, "signal", 0),
        lambda wire: setattr(wire, "cause", "x" * 65),
        lambda wire: setattr(wire, "cause", "unreachable"),
        lambda wire: setattr(wire, "cause", "unknown"),
        lambda wire: setattr(wire, "text", "x" * 513),
        lambda wire: setattr(wire.usage, "cpu_ns", 1 << 60),
        lambda wire: setattr(wire.usage, "suspended_ns", 1 << 63),
        lambda wire: setattr(wire.containment, "isolation", "x" * 65),
        lambda wire: setattr(wire.containment, "lacks", "x" * 257),
        lambda wire: setattr(wire.outputs[0], "name", "/etc/passwd"),
        lambda wire: setattr(wire.outputs[0], "name", "a/../b"),
        lambda wire: setattr(wire.outputs[0], "name", "work/../b"),
        lambda wire: setattr(wire.outputs[0], "name", "module.db"),
        lambda wire: setattr(wire.outputs[0], "name", "work"),
        lambda wire: setattr(wire.outputs[0], "name", "stdout/b"),
        lambda wire: setattr(wire.outputs[0], "name", "a\nb"),
        lambda wire: setattr(wire.outputs[0], "name", ""),
        lambda wire: setattr(wire.outputs[0], "name", "x" * 256),
        lambda wire: wire.outputs.extend([wire.outputs[0]] * 1026),
        lambda wire: setattr(wire.attempt.task, "member", 2**32),
        lambda wire: setattr(wire.attempt, "number", 2**32),
        lambda wire: setattr(wire.attempt.task, "system", "CS"),
    ],
)
def test_the_status_of_an_attempt_is_refused(spoil: Callable[[control_pb2.AttemptStatus], None]) -> None:
    batch = status()
    assert decode_control(batch)
    spoil(batch.messages[0].task_status.attempts[0])
    with pytest.raises(CodecError):
        decode_control(batch)


def add_variables(wire: task_pb2.TaskTransfer, *, name: bytes, value: bytes) -> None:
    wire.tasks[0].command.env.add(name=name, value=value)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: setattr(wire, "ticket", bytes(17)),
        lambda wire: setattr(wire.claim, "executor", "C S"),
        lambda wire: wire.tasks[0].command.ClearField("argv"),
        lambda wire: wire.tasks[0].command.argv.insert(0, b""),
        lambda wire: wire.tasks[0].command.argv.append(b"a\0b"),
        lambda wire: wire.tasks[0].command.argv.append(bytes([65]) * (128 << 10)),
        lambda wire: wire.tasks[0].command.argv.extend([b""] * (128 << 10)),
        lambda wire: add_variables(wire, name=b"", value=b"x"),
        lambda wire: add_variables(wire, name=b"A=B", value=b"x"),
        lambda wire: add_variables(wire, name=b"A", value=b"x\0"),
        lambda wire: wire.tasks.extend([wire.tasks[0]] * 1024),
    ],
)
def test_a_transfer_is_refused(spoil: Callable[[task_pb2.TaskTransfer], None]) -> None:
    task = BoundTask(attempt=ATTEMPT, command=Command(argv=("true",)))
    wire = encode_transfer(TaskTransfer(claim=CLAIM, ticket=Ticket(SIXTEEN), tasks=(task,)))
    assert decode_transfer(wire)
    spoil(wire)
    with pytest.raises(CodecError):
        decode_transfer(wire)


def test_a_batch_of_1025_messages_is_refused_on_both_sides() -> None:
    queries = (SystemStatusQuery(),) * 1025
    with pytest.raises(CodecError):
        encode_control(queries)
    batch = encode_control(queries[:-1])
    assert len(decode_control(batch)) == 1024
    batch.messages.add().system_status_query.SetInParent()
    with pytest.raises(CodecError):
        decode_control(batch)


def test_with_a_callback_only_the_malformed_and_the_unknown_are_left_out() -> None:
    batch = request()
    batch.messages[0].sched_request.count = 0
    batch.MergeFrom(status())
    # Field 99 of a control message, with nothing in it: a kind of a later release.
    content = batch.SerializeToString() + b"\x0a\x03\x9a\x06\x00"
    dropped: list[str] = []
    assert control_from_bytes(content, on_drop=dropped.append) == decode_control(status())
    assert dropped == [f"0 is not in 1 to {2**40 - 1}", "a control message of an unknown kind"]


def test_unknown_kinds_are_left_out_without_a_callback_too() -> None:
    assert control_from_bytes(b"\x0a\x03\x9a\x06\x00") == ()


def test_texts_that_are_too_long_are_cut_between_characters_when_they_are_sent() -> None:
    reason = Reason(module=CS, code=DenyCode.LOST, text="é" * 300, rule="x" * 300)
    sent = SchedDeny(request=MessageId(1), reasons=(reason,), asks_left=0)
    (received,) = control_from_bytes(control_to_bytes((sent,)))
    assert isinstance(received, SchedDeny)
    assert received.reasons[0].text == "é" * 256
    assert received.reasons[0].rule == "x" * 256


def test_reasons_that_are_too_many_or_too_deep_are_left_out_when_they_are_sent() -> None:
    deep = Reason(module=CS, code=DenyCode.LOST)
    for _ in range(40):
        deep = Reason(module=CS, code=DenyCode.LOST, hops=(deep,))
    sent = SchedDeny(request=MessageId(1), reasons=(deep,) * 10, asks_left=0)
    (received,) = control_from_bytes(control_to_bytes((sent,)))
    assert isinstance(received, SchedDeny)
    assert len(received.reasons) == 8


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: setattr(wire, "search", b"short"),
        lambda wire: setattr(wire, "requester", "no name"),
        lambda wire: setattr(wire, "count", 0),
        lambda wire: setattr(wire, "asks_left", 2**40),
        lambda wire: setattr(wire, "remaining_ns", 2**63),
    ],
)
def test_a_request_for_tasks_is_refused(spoil: Callable[[control_pb2.TaskRequest], None]) -> None:
    batch = control_pb2.ControlBatch()
    wanted = batch.messages.add().task_request
    wanted.id, wanted.search, wanted.requester, wanted.count = 2, SIXTEEN, CS, 1
    assert decode_control(batch)
    spoil(wanted)
    with pytest.raises(CodecError):
        decode_control(batch)


def test_a_promise_of_no_task_and_an_answer_to_no_search_are_refused() -> None:
    promise, answering = control_pb2.ControlBatch(), request()
    promise.messages.add().task_accept.request = 1
    answering.messages[0].sched_request.answers = b"short"
    for batch in (promise, answering):
        with pytest.raises(CodecError):
            decode_control(batch)


@pytest.mark.parametrize("name", refused_bytes())
def test_a_predicate_of_whatever_bytes_arrives_and_its_parser_refuses_it(name: str) -> None:
    for_places, for_tasks = request(), control_pb2.ControlBatch()
    for_places.messages[0].sched_request.requirement = refused_bytes()[name]
    wanted = for_tasks.messages.add().task_request
    wanted.id, wanted.search, wanted.requester, wanted.count = 2, SIXTEEN, CS, 1
    wanted.wanting = refused_bytes()[name]
    (asked_for_places,) = control_from_bytes(for_places.SerializeToString())
    (asked_for_tasks,) = control_from_bytes(for_tasks.SerializeToString())
    assert isinstance(asked_for_places, SchedRequest)
    assert isinstance(asked_for_tasks, TaskRequest)
    for text in (asked_for_places.requirement, asked_for_tasks.wanting):
        assert isinstance(predicate_parser(text), BadPredicate)
        assert len(text) < 4200


def test_a_predicate_of_the_greatest_length_arrives_whole() -> None:
    batch = request()
    text = f'$a eq "{"é" * 2044}"'
    batch.messages[0].sched_request.requirement = text.encode()
    (message,) = decode_control(batch)
    assert isinstance(message, SchedRequest)
    assert message.requirement == text
    assert len(text.encode()) == 4096


def test_a_message_with_invalid_unicode_raises_only_a_codec_error() -> None:
    batch = request()
    message = decode_control(batch)[0]
    assert isinstance(message, SchedRequest)
    with pytest.raises(CodecError):
        control_to_bytes((SystemStatusQuery(), replace(message, requirement="\udcff")))


def test_64_classes_of_every_machine_attribute_stay_well_below_4096_bytes() -> None:
    names = [name for name, attribute in MACHINE_ATTRIBUTES.items() if attribute.kind is Kind.INTEGER]
    classes = []
    for number in range(64):
        said = {name: Interval(number + 64, number + 90) for name in names} | {"arch": "x86_64", "os": "Linux"}
        classes.append(MachineClass(count=1000, attributes=tuple(sorted(said.items()))))
    message = StatusVector(kind=VectorKind(1), vector=Vector(tuple(classes)), period_ns=1, age_ns=1)
    assert len(status_vector_to_bytes(message)) < 3_600


def test_a_vector_larger_than_4096_bytes_cannot_be_sent() -> None:
    classes = tuple(MachineClass(count=number, attributes=(("arch", f"{number:064}"),)) for number in range(1, 65))
    with pytest.raises(CodecError, match="at most 4096"):
        status_vector_to_bytes(StatusVector(kind=VectorKind(1), vector=Vector(classes), period_ns=1, age_ns=1))
