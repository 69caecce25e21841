from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ValueKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALUE_KIND_UNSPECIFIED: _ClassVar[ValueKind]
    VALUE_KIND_INTERVAL: _ClassVar[ValueKind]
    VALUE_KIND_STRING: _ClassVar[ValueKind]
    VALUE_KIND_VARIOUS: _ClassVar[ValueKind]
VALUE_KIND_UNSPECIFIED: ValueKind
VALUE_KIND_INTERVAL: ValueKind
VALUE_KIND_STRING: ValueKind
VALUE_KIND_VARIOUS: ValueKind

class TaskId(_message.Message):
    __slots__ = ("system", "epoch", "number", "member")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    system: str
    epoch: int
    number: int
    member: int
    def __init__(self, system: _Optional[str] = ..., epoch: _Optional[int] = ..., number: _Optional[int] = ..., member: _Optional[int] = ...) -> None: ...

class AttemptId(_message.Message):
    __slots__ = ("task", "number")
    TASK_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    task: TaskId
    number: int
    def __init__(self, task: _Optional[_Union[TaskId, _Mapping]] = ..., number: _Optional[int] = ...) -> None: ...

class ClaimId(_message.Message):
    __slots__ = ("executor", "epoch", "number")
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    executor: str
    epoch: int
    number: int
    def __init__(self, executor: _Optional[str] = ..., epoch: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class Pair(_message.Message):
    __slots__ = ("name", "integer", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    integer: int
    text: str
    def __init__(self, name: _Optional[str] = ..., integer: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class TaskDescription(_message.Message):
    __slots__ = ("pairs",)
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[Pair]
    def __init__(self, pairs: _Optional[_Iterable[_Union[Pair, _Mapping]]] = ...) -> None: ...

class Vector(_message.Message):
    __slots__ = ("strings", "shapes", "classes")
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    strings: _containers.RepeatedScalarFieldContainer[str]
    shapes: _containers.RepeatedCompositeFieldContainer[Shape]
    classes: _containers.RepeatedCompositeFieldContainer[MachineClass]
    def __init__(self, strings: _Optional[_Iterable[str]] = ..., shapes: _Optional[_Iterable[_Union[Shape, _Mapping]]] = ..., classes: _Optional[_Iterable[_Union[MachineClass, _Mapping]]] = ...) -> None: ...

class Shape(_message.Message):
    __slots__ = ("columns",)
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, columns: _Optional[_Iterable[int]] = ...) -> None: ...

class MachineClass(_message.Message):
    __slots__ = ("shape", "count", "values")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    shape: int
    count: int
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, shape: _Optional[int] = ..., count: _Optional[int] = ..., values: _Optional[_Iterable[int]] = ...) -> None: ...
