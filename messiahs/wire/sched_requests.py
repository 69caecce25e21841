"""Messages that request places for tasks, on the wire (MESSIAHS 5.3.2, 6.2)."""

from collections.abc import Iterable, MutableSequence, Sequence
from typing import Final

from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import DenyCode, Reason, SchedAccept, SchedDeny, SchedRequest
from messiahs.core.model.ids import Epoch, IdsGiven, MessageId, SearchId, Ticket
from messiahs.core.model.routes import DIALER_LIMIT, SpliceEnd
from messiahs.core.model.trust import Trust
from messiahs.errors import CodecError
from messiahs.wire.descriptions import read_tdv, write_tdv
from messiahs.wire.ids import read_claim, write_claim
from messiahs.wire.limits import (
    AVOID_LIMIT,
    FORMER_EPOCH_LIMIT,
    REASON_DEPTH_LIMIT,
    REASON_LIMIT,
    ROOT_LIMIT,
    RULE_LIMIT_BYTES,
    TEXT_LIMIT_BYTES,
    WIRE_VERSION_LIMIT,
    WORD_LIMIT_BYTES,
    address,
    amount,
    at_most,
    counter,
    line,
    predicate_text,
    secret,
    shortened,
    system_id,
)
from messiahs.wire.v1 import control_pb2

_TO_CODE: Final = {
    DenyCode.REFUSED_BY_POLICY: control_pb2.DENY_CODE_REFUSED_BY_POLICY,
    DenyCode.LIMIT_REACHED: control_pb2.DENY_CODE_LIMIT_REACHED,
    DenyCode.NO_CLASS: control_pb2.DENY_CODE_NO_CLASS,
    DenyCode.REQUIREMENT_UNMET: control_pb2.DENY_CODE_REQUIREMENT_UNMET,
    DenyCode.NO_CAPACITY: control_pb2.DENY_CODE_NO_CAPACITY,
    DenyCode.HOP_LIMIT: control_pb2.DENY_CODE_HOP_LIMIT,
    DenyCode.TIMED_OUT: control_pb2.DENY_CODE_TIMED_OUT,
    DenyCode.ALREADY_ASKED: control_pb2.DENY_CODE_ALREADY_ASKED,
    DenyCode.LOST: control_pb2.DENY_CODE_LOST,
    DenyCode.BAD_PREDICATE: control_pb2.DENY_CODE_BAD_PREDICATE,
    DenyCode.UNREACHABLE: control_pb2.DENY_CODE_UNREACHABLE,
    DenyCode.DRAINING: control_pb2.DENY_CODE_DRAINING,
    DenyCode.NO_SPACE: control_pb2.DENY_CODE_NO_SPACE,
    DenyCode.NO_TASK: control_pb2.DENY_CODE_NO_TASK,
}
_FROM_CODE: Final[dict[int, DenyCode]] = {number: code for code, number in _TO_CODE.items()}


def write_hello(wire: control_pb2.Hello, hello: Hello) -> None:
    """Fill in a hello."""
    wire.system, wire.epoch = hello.system, hello.epoch
    wire.wire_versions.extend(hello.wire_versions)
    wire.release = shortened(hello.release, WORD_LIMIT_BYTES)
    _write_given(wire.given, hello.given)
    if hello.heard_epoch is not None:
        wire.heard_epoch = hello.heard_epoch
        _write_given(wire.heard, hello.heard)
    wire.former_epochs.extend(hello.former[-FORMER_EPOCH_LIMIT:])


def read_hello(wire: control_pb2.Hello) -> Hello:
    """Check a hello."""
    at_most(len(wire.wire_versions), WIRE_VERSION_LIMIT, what="wire versions")
    at_most(len(wire.former_epochs), FORMER_EPOCH_LIMIT, what="former epochs")
    return Hello(
        system=system_id(wire.system),
        epoch=Epoch(wire.epoch),
        wire_versions=tuple(wire.wire_versions),
        release=line(wire.release, WORD_LIMIT_BYTES),
        given=_read_given(wire.given),
        heard_epoch=Epoch(wire.heard_epoch) if wire.HasField("heard_epoch") else None,
        heard=_read_given(wire.heard),
        former=tuple(map(Epoch, wire.former_epochs)),
    )


def _write_given(wire: control_pb2.IdsGiven, given: IdsGiven) -> None:
    wire.submissions, wire.claims = given.submissions, given.claims


def _read_given(wire: control_pb2.IdsGiven) -> IdsGiven:
    return IdsGiven(submissions=counter(wire.submissions), claims=counter(wire.claims))


def write_sched_request(wire: control_pb2.SchedRequest, request: SchedRequest) -> None:
    """Fill in a request for places."""
    wire.id, wire.search, wire.origin = request.id, request.search, request.origin
    write_tdv(wire.tdv, request.tdv)
    wire.requirement, wire.count = request.requirement.encode(), request.count
    wire.hops_left, wire.asks_left = request.hops_left, request.asks_left
    wire.remaining_ns = request.remaining_ns
    if request.answers is not None:
        wire.answers = request.answers
    write_trust(wire.trust, request.trust)
    wire.avoids.extend(request.avoids[:AVOID_LIMIT])
    wire.dialers.extend(request.dialers)
    if request.near is not None:
        write_claim(wire.near, request.near)
    wire.is_foreign = request.is_foreign
    wire.lease_ns = request.lease_ns


def read_sched_request(wire: control_pb2.SchedRequest) -> SchedRequest:
    """Check a request for places."""
    return SchedRequest(
        id=MessageId(counter(wire.id)),
        search=SearchId(secret(wire.search)),
        origin=system_id(wire.origin),
        tdv=read_tdv(wire.tdv),
        requirement=predicate_text(wire.requirement),
        count=amount(wire.count, lowest=1),
        hops_left=amount(wire.hops_left),
        asks_left=amount(wire.asks_left),
        remaining_ns=counter(wire.remaining_ns),
        answers=SearchId(secret(wire.answers)) if wire.answers else None,
        trust=read_trust(wire.trust),
        avoids=_digests(wire.avoids, AVOID_LIMIT, what="executors to avoid"),
        dialers=_digests(wire.dialers, DIALER_LIMIT, what="dialers"),
        near=read_claim(wire.near) if wire.HasField("near") else None,
        is_foreign=wire.is_foreign,
        lease_ns=counter(wire.lease_ns),
    )


def write_trust(wire: control_pb2.Trust, trust: Trust) -> None:
    """Fill in the roots that a system trusts, or none if there are too many."""
    if max(len(trust.roots), len(trust.vouchers)) <= ROOT_LIMIT:
        wire.roots.extend(trust.roots)
        wire.vouchers.extend(trust.vouchers)
    wire.trusts_relays = trust.trusts_relays


def read_trust(wire: control_pb2.Trust) -> Trust:
    """Check the roots that a system trusts."""
    return Trust(
        roots=_digests(wire.roots, ROOT_LIMIT, what="roots"),
        vouchers=_digests(wire.vouchers, ROOT_LIMIT, what="roots"),
        trusts_relays=wire.trusts_relays,
    )


def _digests(wires: Sequence[bytes], limit: int, *, what: str) -> tuple[bytes, ...]:
    at_most(len(wires), limit, what=what)
    return tuple(map(secret, wires))


def write_sched_accept(wire: control_pb2.SchedAccept, accept: SchedAccept) -> None:
    """Fill in a grant."""
    wire.request = accept.request
    write_claim(wire.claim, accept.claim)
    wire.address, wire.ticket = accept.address, accept.ticket
    wire.places, wire.window = accept.places, accept.window
    wire.lease_ns, wire.asks_left = accept.lease_ns, accept.asks_left
    if accept.server is not None:
        wire.server = accept.server
    if accept.hop_address is not None:
        wire.hop_address = accept.hop_address
    if accept.hop_ticket is not None:
        wire.hop_ticket = accept.hop_ticket
    write_trust(wire.trust, accept.trust)
    wire.place = accept.place
    if accept.splice is not None:
        wire.splice.system, wire.splice.ticket = accept.splice.system, accept.splice.ticket
    wire.is_foreign = accept.is_foreign


def read_sched_accept(wire: control_pb2.SchedAccept) -> SchedAccept:
    """Check a grant."""
    return SchedAccept(
        request=MessageId(counter(wire.request)),
        claim=read_claim(wire.claim),
        address=address(wire.address),
        ticket=Ticket(secret(wire.ticket)),
        places=amount(wire.places, lowest=1),
        window=amount(wire.window),
        lease_ns=counter(wire.lease_ns),
        asks_left=amount(wire.asks_left),
        server=system_id(wire.server) if wire.HasField("server") else None,
        hop_address=address(wire.hop_address) if wire.HasField("hop_address") else None,
        hop_ticket=Ticket(secret(wire.hop_ticket)) if wire.HasField("hop_ticket") else None,
        trust=read_trust(wire.trust),
        place=secret(wire.place) if wire.place else b"",
        splice=_read_splice(wire.splice) if wire.HasField("splice") and wire.HasField("hop_ticket") else None,
        is_foreign=wire.is_foreign,
    )


def _read_splice(wire: control_pb2.SpliceEnd) -> SpliceEnd:
    return SpliceEnd(system=system_id(wire.system), ticket=Ticket(secret(wire.ticket)))


def write_sched_deny(wire: control_pb2.SchedDeny, deny: SchedDeny) -> None:
    """Fill in a denial; reasons beyond the limits of number and depth are omitted."""
    wire.request, wire.asks_left = deny.request, deny.asks_left
    write_reasons(wire.reasons, deny.reasons)


def read_sched_deny(wire: control_pb2.SchedDeny) -> SchedDeny:
    """Check a denial."""
    return SchedDeny(
        request=MessageId(counter(wire.request)),
        reasons=read_reasons(wire.reasons),
        asks_left=amount(wire.asks_left),
    )


def write_reasons(wires: MutableSequence[control_pb2.Reason], reasons: Iterable[Reason]) -> None:
    """Fill in reasons of a denial; those beyond the limits of number and depth are omitted."""
    wires.extend(_reasons_to_wire(reasons, depth=1, left=[REASON_LIMIT]))


def read_reasons(wires: Sequence[control_pb2.Reason]) -> tuple[Reason, ...]:
    """Check reasons of a denial."""
    return _read_reasons(wires, depth=1, left=[REASON_LIMIT])


def _reasons_to_wire(reasons: Iterable[Reason], *, depth: int, left: list[int]) -> list[control_pb2.Reason]:
    wires: list[control_pb2.Reason] = []
    if depth > REASON_DEPTH_LIMIT:
        return wires
    for reason in reasons:
        if not left[0]:
            break
        left[0] -= 1
        wires.append(
            control_pb2.Reason(
                module=reason.module,
                code=_TO_CODE[reason.code],
                rule=shortened(reason.rule, RULE_LIMIT_BYTES),
                text=shortened(reason.text, TEXT_LIMIT_BYTES),
                hops=_reasons_to_wire(reason.hops, depth=depth + 1, left=left),
            )
        )
    return wires


def _read_reasons(wires: Sequence[control_pb2.Reason], *, depth: int, left: list[int]) -> tuple[Reason, ...]:
    left[0] -= len(wires)
    if left[0] < 0 or (wires and depth > REASON_DEPTH_LIMIT):
        raise CodecError(f"more than {REASON_LIMIT} reasons, or nested deeper than {REASON_DEPTH_LIMIT}")
    return tuple(_read_reason(wire, depth=depth, left=left) for wire in wires)


def _read_reason(wire: control_pb2.Reason, *, depth: int, left: list[int]) -> Reason:
    code = _FROM_CODE.get(wire.code)
    if code is None:
        raise CodecError(f"{wire.code} is not the code of a denial")
    return Reason(
        module=system_id(wire.module),
        code=code,
        rule=line(wire.rule, RULE_LIMIT_BYTES),
        text=line(wire.text, TEXT_LIMIT_BYTES),
        hops=_read_reasons(wire.hops, depth=depth + 1, left=left),
    )
