"""Requests to join and their answers on the wire: what is sent arrives, and what is out of bounds is refused."""

from collections.abc import Callable

import pytest

from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.core.model.neighbors import Relation
from messiahs.errors import CodecError
from messiahs.wire.codec import (
    JoinAccept,
    JoinAnswer,
    JoinDeny,
    JoinPending,
    JoinRequest,
    join_answer_from_bytes,
    join_answer_to_bytes,
    join_request_from_bytes,
    join_request_to_bytes,
)
from messiahs.wire.limits import CERTIFICATE_LIMIT_BYTES, CERTIFICATE_REQUEST_LIMIT_BYTES, ROOTS_LIMIT_BYTES
from messiahs.wire.v1 import membership_pb2

REQUEST = JoinRequest(
    name=SystemId("xinu"),
    role=Relation.CHILD,
    certificate_request=b"request",
    address="localhost:1",
    machine=(("arch", "x86_64"), ("slots", 4)),
    release="1.0",
    certificate=b"certificate",
)
ANSWERS = (
    JoinAccept(certificate=b"certificate", roots=b"roots", update_period_ns=SECOND),
    JoinDeny(rule="allow child when $peer.name eq x", text="no"),
    JoinPending(text="wait", again_ns=5),
)


def test_a_request_arrives_as_it_was_sent() -> None:
    assert join_request_from_bytes(join_request_to_bytes(REQUEST)) == REQUEST


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda each: type(each).__name__)
def test_an_answer_arrives_as_it_was_sent(answer: JoinAnswer) -> None:
    assert join_answer_from_bytes(join_answer_to_bytes(answer)) == answer


def test_a_long_text_of_an_answer_is_cut() -> None:
    arrived = join_answer_from_bytes(join_answer_to_bytes(JoinDeny(text="x" * 600 + "\n")))
    assert arrived == JoinDeny(text="x" * 512)


def _no_role(wire: membership_pb2.JoinRequest) -> None:
    wire.role = membership_pb2.JOIN_ROLE_UNSPECIFIED


def _a_path_as_name(wire: membership_pb2.JoinRequest) -> None:
    wire.name = "../tls"


def _a_long_request(wire: membership_pb2.JoinRequest) -> None:
    wire.certificate_request = b"x" * (CERTIFICATE_REQUEST_LIMIT_BYTES + 1)


def _a_long_certificate(wire: membership_pb2.JoinRequest) -> None:
    wire.certificate = b"x" * (CERTIFICATE_LIMIT_BYTES + 1)


def _no_address(wire: membership_pb2.JoinRequest) -> None:
    wire.address = "a b"


def _control_characters(wire: membership_pb2.JoinRequest) -> None:
    wire.release = "\x1b[2J"


def _too_many_attributes(wire: membership_pb2.JoinRequest) -> None:
    del wire.machine[:]
    for number in range(65):
        wire.machine.add(name=f"a{number:03}", integer=1)


def _unsorted_attributes(wire: membership_pb2.JoinRequest) -> None:
    wire.machine.add(name="arch", text="again")


def _an_attribute_without_value(wire: membership_pb2.JoinRequest) -> None:
    wire.machine.add(name="zone")


def _an_attribute_with_control_characters(wire: membership_pb2.JoinRequest) -> None:
    wire.machine.add(name="zone", text="\n")


@pytest.mark.parametrize(
    "spoil",
    [
        _no_role,
        _a_path_as_name,
        _a_long_request,
        _a_long_certificate,
        _no_address,
        _control_characters,
        _too_many_attributes,
        _unsorted_attributes,
        _an_attribute_without_value,
        _an_attribute_with_control_characters,
    ],
    ids=lambda spoil: spoil.__name__,
)
def test_a_request_out_of_bounds_is_refused(spoil: Callable[[membership_pb2.JoinRequest], None]) -> None:
    wire = membership_pb2.JoinRequest.FromString(join_request_to_bytes(REQUEST))
    spoil(wire)
    with pytest.raises(CodecError):
        join_request_from_bytes(wire.SerializeToString())


@pytest.mark.parametrize(
    "wire",
    [
        membership_pb2.JoinAnswer(),
        membership_pb2.JoinAnswer(accept=membership_pb2.JoinAccept(roots=b"roots")),
        membership_pb2.JoinAnswer(accept=membership_pb2.JoinAccept(roots=b"roots", update_period_ns=1_000)),
        membership_pb2.JoinAnswer(accept=membership_pb2.JoinAccept(roots=b"roots", update_period_ns=HOUR + 1)),
        membership_pb2.JoinAnswer(
            accept=membership_pb2.JoinAccept(roots=b"x" * (ROOTS_LIMIT_BYTES + 1), update_period_ns=SECOND)
        ),
        membership_pb2.JoinAnswer(deny=membership_pb2.JoinDeny(text="\x1b[2J")),
        membership_pb2.JoinAnswer(pending=membership_pb2.JoinPending(again_ns=1 << 63)),
    ],
    ids=["nothing", "no period", "a short period", "a long period", "many roots", "control characters", "a long pause"],
)
def test_an_answer_out_of_bounds_is_refused(wire: membership_pb2.JoinAnswer) -> None:
    with pytest.raises(CodecError):
        join_answer_from_bytes(wire.SerializeToString())
