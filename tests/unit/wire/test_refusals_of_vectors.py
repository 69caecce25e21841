"""Refused update vectors from neighbors."""

from collections.abc import Callable

import pytest

from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.demand import DemandClass, DemandKey, DemandSize
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import Interval, MachineClass, Vector
from messiahs.errors import CodecError
from messiahs.wire.codec import decode_status_vector, encode_status_vector
from messiahs.wire.v1 import descriptions_pb2, update_pb2

VECTOR = Vector((MachineClass(count=2, attributes=(("arch", "x86_64"), ("speed", Interval(3, 5)))),))


def vector_wire() -> update_pb2.StatusVector:
    message = StatusVector(kind=VectorKind.FOR_PARENTS, vector=VECTOR, period_ns=1, age_ns=1)
    return encode_status_vector(message)


def _decoded(vector: descriptions_pb2.Vector) -> Vector:
    wire = vector_wire()
    wire.vector = vector.SerializeToString()
    return decode_status_vector(wire).vector


def set_strings(vector: descriptions_pb2.Vector, *strings: str) -> None:
    del vector.strings[:]
    vector.strings.extend(strings)


def set_values(vector: descriptions_pb2.Vector, *values: int) -> None:
    del vector.classes[0].values[:]
    vector.classes[0].values.extend(values)


def add_extensions(vector: descriptions_pb2.Vector, count: int) -> None:
    first = len(vector.strings)
    vector.strings.extend(f"a{number}" for number in range(count))
    for number in range(count):
        vector.shapes.add(columns=[(first + number) * 8 + 3])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: setattr(wire, "kind", 0),
        lambda wire: setattr(wire, "kind", 4),
        lambda wire: setattr(wire, "period_ns", 2**63),
        lambda wire: wire.hears.append("no name"),
        lambda wire: wire.missing.add(module="no name", neighbor="b"),
        lambda wire: wire.missing.add(module="a", neighbor=""),
        lambda wire: wire.missing.add(module="a", neighbor="b", text="two\nlines"),
        lambda wire: wire.missing.add(module="a", neighbor="b", text="x" * 513),
        lambda wire: wire.missing.extend([update_pb2.MissingLink(module="a", neighbor="b")] * 65),
        lambda wire: wire.demand.extend([update_pb2.DemandClass(capacity="cpus", tasks=1)] * 17),
        lambda wire: wire.demand.add(capacity="", tasks=1),
        lambda wire: wire.demand.add(capacity="no name", tasks=1),
        lambda wire: wire.demand.add(capacity="x" * 33, tasks=1),
        lambda wire: wire.demand.add(capacity="cpus", amount=2**63),
        lambda wire: wire.demand.add(capacity="cpus", tasks=2**40),
        lambda wire: wire.demand.add(capacity="cpus", processors=2**40),
        lambda wire: wire.demand.add(capacity="cpus", wanted_s=2**40),
        lambda wire: wire.demand.add(capacity="cpus", denied=2**40),
        lambda wire: wire.demand.add(capacity="cpus", arch="x" * 65),
        lambda wire: wire.demand.add(capacity="cpus", os="two\nlines"),
        lambda wire: setattr(wire, "vector", b"\xff"),
        lambda wire: setattr(wire, "vector", wire.vector + bytes(4096)),
    ],
)
def test_a_status_vector_is_refused(spoil: Callable[[update_pb2.StatusVector], None]) -> None:
    wire = vector_wire()
    assert decode_status_vector(wire).vector == VECTOR
    spoil(wire)
    with pytest.raises(CodecError):
        decode_status_vector(wire)


def test_equal_classes_of_unmet_demand_are_added_up_and_the_words_of_newer_releases_are_kept() -> None:
    wire = vector_wire()
    wire.demand.add(capacity="cpus", tasks=1, processors=2)
    wire.demand.add(capacity="tapes", tasks=7, processors=7)
    wire.demand.add(capacity="cpus", tasks=2**40 - 1, processors=4)
    wire.demand.add(capacity="mem")
    assert decode_status_vector(wire).demand == (
        DemandClass(DemandKey("tapes"), DemandSize(7, 7)),
        DemandClass(DemandKey("cpus"), DemandSize(2**40 - 1, 6)),
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda vector: setattr(vector.classes[0], "count", 0),
        lambda vector: setattr(vector.classes[0], "count", 2**40),
        lambda vector: setattr(vector.classes[0], "shape", 1),
        lambda vector: set_values(vector, 2, 3),
        lambda vector: set_values(vector, 2, 3, 0, 0),
        lambda vector: set_values(vector, 3, 3, 0),
        lambda vector: set_values(vector, -1, 3, 0),
        lambda vector: set_values(vector, 2, 3, -1),
        lambda vector: set_values(vector, 2, 248, 0),
        lambda vector: set_values(vector, 2, -249, 0),
        lambda vector: set_values(vector, 2, -(2**63), 2**63 - 1),
        lambda vector: set_strings(vector, "arch", "speed"),
        lambda vector: set_strings(vector, "arch", "arch", "x86_64"),
        lambda vector: set_strings(vector, "speed", "arch", "x86_64"),
        lambda vector: set_strings(vector, "a-b", "speed", "x86_64"),
        lambda vector: set_strings(vector, "arch", "speed", "x" * 65),
        lambda vector: set_strings(vector, "arch", "speed", "x86\x1b[2J"),
        lambda vector: set_strings(vector, "arch", "speed", "\u202e46_68x"),
        lambda vector: vector.shapes[0].columns.append(8 * 99 + 1),
        lambda vector: vector.shapes[0].columns.append(4),
        lambda vector: vector.classes.extend([vector.classes[0]] * 64),
        lambda vector: vector.strings.extend(["x" * 64] * 64),
        lambda vector: add_extensions(vector, 9),
    ],
)
def test_a_vector_is_refused(spoil: Callable[[descriptions_pb2.Vector], None]) -> None:
    vector = descriptions_pb2.Vector.FromString(vector_wire().vector)
    assert _decoded(vector) == VECTOR
    spoil(vector)
    with pytest.raises(CodecError):
        _decoded(vector)


def test_eight_extensions_and_64_classes_are_taken() -> None:
    vector = descriptions_pb2.Vector.FromString(vector_wire().vector)
    add_extensions(vector, 8)
    vector.classes.extend([vector.classes[0]] * 63)
    assert _decoded(vector).machines == 128


def test_classes_in_another_order_are_put_into_theirs() -> None:
    others = tuple(MachineClass(count=1, attributes=(("speed", Interval(low, 9)),)) for low in range(3))
    wire = encode_status_vector(StatusVector(kind=VectorKind(1), vector=Vector(others[::-1]), period_ns=1, age_ns=1))
    assert decode_status_vector(wire).vector == Vector(others)


@pytest.mark.parametrize(
    ("name", "sent", "taken"),
    [
        ("load_mean", Interval(-9, 200), Interval(0, bucket_of(10_000))),
        ("load_mean", Interval(100, 200), Interval(bucket_of(10_000), bucket_of(10_000))),
        ("load_mean", Interval(3, 9), Interval(3, 9)),
        ("avail_mem_sd", Interval(-20, -10), Interval(0, 0)),
        ("slots_count", Interval(-1, 4), Interval(0, 4)),
        ("wait_time_permanence", Interval(-1, 4), Interval(0, 4)),
        ("comm_cost_mean", Interval(-9, 9), Interval(-9, 9)),
        ("room_count", Interval(-9, 9), Interval(-9, 9)),
    ],
)
def test_what_a_neighbor_sends_as_a_history_is_brought_into_its_range(
    name: str, sent: Interval, taken: Interval
) -> None:
    message = StatusVector(
        kind=VectorKind.FOR_PARENTS,
        vector=Vector((MachineClass(count=1, attributes=((name, sent),)),)),
        period_ns=1,
        age_ns=1,
    )
    (machine,) = decode_status_vector(encode_status_vector(message)).vector.classes
    assert machine.attributes == ((name, taken),)
