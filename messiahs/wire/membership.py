"""Joining on the wire (MESSIAHS 6.2): a request, and its answer."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from messiahs.core.interface.limits import LONGEST_PERIOD_NS, SHORTEST_PERIOD_NS
from messiahs.core.model.attributes import STRING_LIMIT_BYTES, Value
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.errors import CodecError
from messiahs.wire.limits import (
    CERTIFICATE_LIMIT_BYTES,
    CERTIFICATE_REQUEST_LIMIT_BYTES,
    MACHINE_LIMIT,
    ROOTS_LIMIT_BYTES,
    RULE_LIMIT_BYTES,
    TEXT_LIMIT_BYTES,
    WORD_LIMIT_BYTES,
    address,
    at_most,
    attribute_name,
    counter,
    line,
    shortened,
    system_id,
)
from messiahs.wire.parsing import parsed, serialized
from messiahs.wire.v1 import descriptions_pb2, membership_pb2

_ROLES: Final = {
    Relation.CHILD: membership_pb2.JOIN_ROLE_CHILD,
    Relation.SIBLING: membership_pb2.JOIN_ROLE_SIBLING,
}
_RELATIONS: Final = {wire: role for role, wire in _ROLES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A system asks to become a neighbor. `certificate_request` and `certificate` are PEM; the latter may be empty.

    `address` (host:port) is where it listens, empty if nobody can dial it; `machine` describes its machine for people.
    `is_primary`: the receiver becomes its primary parent.
    """

    name: SystemId
    role: Relation
    certificate_request: bytes
    address: str = ""
    machine: tuple[tuple[str, Value], ...] = ()
    release: str = ""
    certificate: bytes = b""
    is_primary: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAccept:
    """The system is a neighbor, with this certificate (PEM; empty: it needs none) and the roots of the site (PEM)."""

    certificate: bytes
    roots: bytes
    update_period_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDeny:
    """The system does not become a neighbor: the rule of the policy that decided, if any, and the reason."""

    text: str
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPending:
    """Something is waited for, and the request is to be repeated after `again_ns` at the earliest."""

    text: str
    again_ns: int


JoinAnswer = JoinAccept | JoinDeny | JoinPending


def join_request_to_bytes(request: JoinRequest) -> bytes:
    """Serialise a request to join."""
    wire = membership_pb2.JoinRequest(
        name=request.name,
        role=_ROLES[request.role],
        certificate_request=request.certificate_request,
        address=request.address,
        release=request.release,
        certificate=request.certificate,
        is_primary=request.is_primary,
    )
    for name, value in request.machine:
        if isinstance(value, str):
            wire.machine.add(name=name, text=value)
        else:
            wire.machine.add(name=name, integer=value)
    return serialized(wire)


def join_request_from_bytes(content: bytes) -> JoinRequest:
    """Check a request to join."""
    wire = parsed(membership_pb2.JoinRequest(), content)
    if wire.role not in _RELATIONS:
        raise CodecError(f"{wire.role} is not a role in which a system can join")
    at_most(len(wire.certificate_request), CERTIFICATE_REQUEST_LIMIT_BYTES, what="bytes of a certificate request")
    at_most(len(wire.certificate), CERTIFICATE_LIMIT_BYTES, what="bytes of a certificate")
    return JoinRequest(
        name=system_id(wire.name),
        role=_RELATIONS[wire.role],
        certificate_request=wire.certificate_request,
        address=address(wire.address),
        machine=_read_machine(wire.machine),
        release=line(wire.release, WORD_LIMIT_BYTES),
        certificate=wire.certificate,
        is_primary=wire.is_primary,
    )


def join_answer_to_bytes(answer: JoinAnswer) -> bytes:
    """Serialise an answer; texts are cut to their bound."""
    wire = membership_pb2.JoinAnswer()
    match answer:
        case JoinAccept():
            wire.accept.certificate, wire.accept.roots = answer.certificate, answer.roots
            wire.accept.update_period_ns = answer.update_period_ns
        case JoinDeny():
            wire.deny.rule = shortened(answer.rule, RULE_LIMIT_BYTES)
            wire.deny.text = shortened(answer.text, TEXT_LIMIT_BYTES)
        case JoinPending():
            wire.pending.text, wire.pending.again_ns = shortened(answer.text, TEXT_LIMIT_BYTES), answer.again_ns
    return serialized(wire)


def join_answer_from_bytes(content: bytes) -> JoinAnswer:
    """Check an answer."""
    wire = parsed(membership_pb2.JoinAnswer(), content)
    match wire.WhichOneof("kind"):
        case "accept":
            at_most(len(wire.accept.certificate), CERTIFICATE_LIMIT_BYTES, what="bytes of a certificate")
            at_most(len(wire.accept.roots), ROOTS_LIMIT_BYTES, what="bytes of roots")
            if not SHORTEST_PERIOD_NS <= wire.accept.update_period_ns <= LONGEST_PERIOD_NS:
                raise CodecError(f"an update period of {wire.accept.update_period_ns} ns: from 50ms to 1h")
            return JoinAccept(
                certificate=wire.accept.certificate,
                roots=wire.accept.roots,
                update_period_ns=wire.accept.update_period_ns,
            )
        case "deny":
            return JoinDeny(rule=line(wire.deny.rule, RULE_LIMIT_BYTES), text=line(wire.deny.text, TEXT_LIMIT_BYTES))
        case "pending":
            return JoinPending(text=line(wire.pending.text, TEXT_LIMIT_BYTES), again_ns=counter(wire.pending.again_ns))
        case _:
            raise CodecError("an answer of no known kind")


def _read_machine(pairs: Iterable[descriptions_pb2.Pair]) -> tuple[tuple[str, Value], ...]:
    read = tuple(map(_read_pair, pairs))
    at_most(len(read), MACHINE_LIMIT, what="attributes")
    if any(one >= other for (one, _), (other, _) in pairwise(read)):
        raise CodecError("attributes are not sorted, or one appears twice")
    return read


def _read_pair(pair: descriptions_pb2.Pair) -> tuple[str, Value]:
    match pair.WhichOneof("value"):
        case "integer":
            return attribute_name(pair.name), pair.integer
        case "text":
            return attribute_name(pair.name), line(pair.text, STRING_LIMIT_BYTES)
        case _:
            raise CodecError(f"{attribute_name(pair.name)} has no value")
