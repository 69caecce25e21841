from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VectorKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VECTOR_KIND_UNSPECIFIED: _ClassVar[VectorKind]
    VECTOR_KIND_FOR_PARENTS: _ClassVar[VectorKind]
    VECTOR_KIND_FOR_CHILDREN: _ClassVar[VectorKind]
    VECTOR_KIND_FOR_SIBLINGS: _ClassVar[VectorKind]
VECTOR_KIND_UNSPECIFIED: VectorKind
VECTOR_KIND_FOR_PARENTS: VectorKind
VECTOR_KIND_FOR_CHILDREN: VectorKind
VECTOR_KIND_FOR_SIBLINGS: VectorKind

class MissingLink(_message.Message):
    __slots__ = ("module", "neighbor", "text")
    MODULE_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOR_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    module: str
    neighbor: str
    text: str
    def __init__(self, module: _Optional[str] = ..., neighbor: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class DemandClass(_message.Message):
    __slots__ = ("capacity", "is_busy", "amount", "arch", "os", "tasks", "processors", "wanted_s", "denied")
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    IS_BUSY_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    ARCH_FIELD_NUMBER: _ClassVar[int]
    OS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    WANTED_S_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    capacity: str
    is_busy: bool
    amount: int
    arch: str
    os: str
    tasks: int
    processors: int
    wanted_s: int
    denied: int
    def __init__(self, capacity: _Optional[str] = ..., is_busy: _Optional[bool] = ..., amount: _Optional[int] = ..., arch: _Optional[str] = ..., os: _Optional[str] = ..., tasks: _Optional[int] = ..., processors: _Optional[int] = ..., wanted_s: _Optional[int] = ..., denied: _Optional[int] = ...) -> None: ...

class StatusVector(_message.Message):
    __slots__ = ("kind", "vector", "period_ns", "age_ns", "hears", "waiting", "makes_room", "lets_go", "missing", "counted", "handovers", "settling", "demand", "stamp", "echo", "held_ns", "round_trip_ns", "throughput")
    KIND_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    PERIOD_NS_FIELD_NUMBER: _ClassVar[int]
    AGE_NS_FIELD_NUMBER: _ClassVar[int]
    HEARS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    MAKES_ROOM_FIELD_NUMBER: _ClassVar[int]
    LETS_GO_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    HANDOVERS_FIELD_NUMBER: _ClassVar[int]
    SETTLING_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    ECHO_FIELD_NUMBER: _ClassVar[int]
    HELD_NS_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_NS_FIELD_NUMBER: _ClassVar[int]
    THROUGHPUT_FIELD_NUMBER: _ClassVar[int]
    kind: VectorKind
    vector: bytes
    period_ns: int
    age_ns: int
    hears: _containers.RepeatedScalarFieldContainer[str]
    waiting: int
    makes_room: bool
    lets_go: bool
    missing: _containers.RepeatedCompositeFieldContainer[MissingLink]
    counted: bool
    handovers: int
    settling: _containers.RepeatedScalarFieldContainer[int]
    demand: _containers.RepeatedCompositeFieldContainer[DemandClass]
    stamp: int
    echo: int
    held_ns: int
    round_trip_ns: int
    throughput: int
    def __init__(self, kind: _Optional[_Union[VectorKind, str]] = ..., vector: _Optional[bytes] = ..., period_ns: _Optional[int] = ..., age_ns: _Optional[int] = ..., hears: _Optional[_Iterable[str]] = ..., waiting: _Optional[int] = ..., makes_room: _Optional[bool] = ..., lets_go: _Optional[bool] = ..., missing: _Optional[_Iterable[_Union[MissingLink, _Mapping]]] = ..., counted: _Optional[bool] = ..., handovers: _Optional[int] = ..., settling: _Optional[_Iterable[int]] = ..., demand: _Optional[_Iterable[_Union[DemandClass, _Mapping]]] = ..., stamp: _Optional[int] = ..., echo: _Optional[int] = ..., held_ns: _Optional[int] = ..., round_trip_ns: _Optional[int] = ..., throughput: _Optional[int] = ...) -> None: ...
