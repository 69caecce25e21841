"""The update channel's one message (MESSIAHS 5.3.1)."""

from typing import Final

from messiahs.core.interface.limits import SETTLING_LIMIT
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.attributes import STRING_LIMIT_BYTES
from messiahs.core.model.demand import CAPACITY, CLASS_LIMIT, DemandClass, DemandKey, DemandSize, summed
from messiahs.core.model.link_costs import (
    HIGHEST_THROUGHPUT,
    LONGEST_ROUND_TRIP_NS,
    NO_PROBE,
    UNKNOWN_COSTS,
    LinkCosts,
    Probe,
)
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.vectors.vectors import Vector
from messiahs.errors import CodecError
from messiahs.wire.byte_cache import cached_by_bytes
from messiahs.wire.descriptions import read_vector, write_vector
from messiahs.wire.limits import (
    MISSING_LINK_LIMIT,
    NEIGHBOR_LIMIT,
    TEXT_LIMIT_BYTES,
    VECTOR_LIMIT_BYTES,
    amount,
    at_most,
    counter,
    line,
    shortened,
    system_id,
)
from messiahs.wire.parsing import parsed, serialized
from messiahs.wire.v1 import descriptions_pb2, update_pb2

_CACHED_BYTES: Final = 512 << 10
"""Most vectors equal those of the last period. A decoded vector takes about 25 times its bytes."""

_TO_KIND: Final = {
    VectorKind.FOR_PARENTS: update_pb2.VECTOR_KIND_FOR_PARENTS,
    VectorKind.FOR_CHILDREN: update_pb2.VECTOR_KIND_FOR_CHILDREN,
    VectorKind.FOR_SIBLINGS: update_pb2.VECTOR_KIND_FOR_SIBLINGS,
}
_FROM_KIND: Final[dict[int, VectorKind]] = {number: kind for kind, number in _TO_KIND.items()}


def encode_status_vector(message: StatusVector) -> update_pb2.StatusVector:
    """Encode a status vector; a `CodecError` if it exceeds 64 classes or 4,096 bytes."""
    wire = update_pb2.StatusVector()
    try:
        wire.kind = _TO_KIND[message.kind]
        wire.vector = _vector_bytes(message.vector)
        wire.period_ns, wire.age_ns = message.period_ns, message.age_ns
        wire.hears.extend(message.hears)
        wire.waiting, wire.makes_room, wire.lets_go = message.waiting, message.makes_room, message.lets_go
        for each in message.missing:
            text = shortened(each.text, TEXT_LIMIT_BYTES)
            wire.missing.add(module=each.module, neighbor=each.neighbor, text=text)
        if message.counted is not None:
            wire.counted = message.counted
        wire.handovers = message.handovers
        wire.settling.extend(message.settling)
        for one in message.demand:
            _write_demand(wire.demand.add(), one)
        wire.stamp, wire.echo, wire.held_ns = message.probe
        round_trip_ns, throughput = message.behind
        wire.round_trip_ns, wire.throughput = round_trip_ns or 0, throughput or 0
    except ValueError as error:
        raise CodecError(f"a status vector cannot be sent: {error}") from error
    return wire


def decode_status_vector(wire: update_pb2.StatusVector) -> StatusVector:
    """Check a status vector."""
    kind = _FROM_KIND.get(wire.kind)
    if kind is None:
        raise CodecError(f"{wire.kind} is not a kind of vector")
    at_most(len(wire.hears), NEIGHBOR_LIMIT, what="siblings")
    at_most(len(wire.missing), MISSING_LINK_LIMIT, what="missing links")
    at_most(len(wire.settling), SETTLING_LIMIT, what="marks of handovers")
    at_most(len(wire.demand), CLASS_LIMIT, what="classes of unmet demand")
    return StatusVector(
        kind=kind,
        vector=_vector_of(wire.vector),
        period_ns=counter(wire.period_ns),
        age_ns=counter(wire.age_ns),
        hears=tuple(map(system_id, wire.hears)),
        waiting=amount(wire.waiting),
        makes_room=wire.makes_room,
        lets_go=wire.lets_go,
        missing=tuple(map(_read_missing, wire.missing)),
        counted=wire.counted if wire.HasField("counted") else None,
        handovers=counter(wire.handovers),
        settling=tuple(map(counter, wire.settling)),
        demand=summed(map(_read_demand, wire.demand)),
        probe=_read_probe(wire),
        behind=_read_costs(wire),
    )


def _read_probe(wire: update_pb2.StatusVector) -> Probe:
    return Probe(counter(wire.stamp), counter(wire.echo), counter(wire.held_ns)) if wire.stamp else NO_PROBE


def _read_costs(wire: update_pb2.StatusVector) -> LinkCosts:
    round_trip_ns, throughput = counter(wire.round_trip_ns), counter(wire.throughput)
    if not (round_trip_ns or throughput):
        return UNKNOWN_COSTS
    return LinkCosts(
        min(LONGEST_ROUND_TRIP_NS, round_trip_ns) if round_trip_ns else None,
        min(HIGHEST_THROUGHPUT, throughput) if throughput else None,
    )


def _read_missing(wire: update_pb2.MissingLink) -> MissingLink:
    return MissingLink(
        module=system_id(wire.module), neighbor=system_id(wire.neighbor), text=line(wire.text, TEXT_LIMIT_BYTES)
    )


def _write_demand(wire: update_pb2.DemandClass, one: DemandClass) -> None:
    key, size = one.key, one.size
    wire.capacity, wire.is_busy, wire.amount, wire.arch, wire.os = key
    wire.tasks, wire.processors, wire.wanted_s, wire.denied = size


def _read_demand(wire: update_pb2.DemandClass) -> DemandClass:
    if CAPACITY.fullmatch(wire.capacity) is None:
        raise CodecError(f"{wire.capacity[:80]!r} is not the name of a capacity")
    arch, system = (line(text, STRING_LIMIT_BYTES) for text in (wire.arch, wire.os))
    return DemandClass(
        DemandKey(wire.capacity, wire.is_busy, counter(wire.amount), arch, system),
        DemandSize(amount(wire.tasks), amount(wire.processors), amount(wire.wanted_s), amount(wire.denied)),
    )


def _written(vector: Vector) -> bytes:
    wire = descriptions_pb2.Vector()
    write_vector(wire, vector)
    return serialized(wire)


def _read(content: bytes) -> Vector:
    at_most(len(content), VECTOR_LIMIT_BYTES, what="bytes of vector")
    return read_vector(parsed(descriptions_pb2.Vector(), content))


_vector_bytes = cached_by_bytes(_written, limit_bytes=_CACHED_BYTES, size=lambda _, content: len(content))
_vector_of = cached_by_bytes(_read, limit_bytes=_CACHED_BYTES, size=lambda content, _: len(content))


def status_vector_to_bytes(message: StatusVector) -> bytes:
    """Serialise a status vector."""
    return serialized(encode_status_vector(message))


def status_vector_from_bytes(content: bytes) -> StatusVector:
    """Parse a status vector."""
    return decode_status_vector(parsed(update_pb2.StatusVector(), content))
