from messiahs.wire.v1 import descriptions_pb2 as _descriptions_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Variable(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    value: bytes
    def __init__(self, name: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("argv", "env")
    ARGV_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    argv: _containers.RepeatedScalarFieldContainer[bytes]
    env: _containers.RepeatedCompositeFieldContainer[Variable]
    def __init__(self, argv: _Optional[_Iterable[bytes]] = ..., env: _Optional[_Iterable[_Union[Variable, _Mapping]]] = ...) -> None: ...

class BoundTask(_message.Message):
    __slots__ = ("attempt", "command")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    attempt: _descriptions_pb2.AttemptId
    command: Command
    def __init__(self, attempt: _Optional[_Union[_descriptions_pb2.AttemptId, _Mapping]] = ..., command: _Optional[_Union[Command, _Mapping]] = ...) -> None: ...

class TaskTransfer(_message.Message):
    __slots__ = ("claim", "ticket", "tasks")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    ticket: bytes
    tasks: _containers.RepeatedCompositeFieldContainer[BoundTask]
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., ticket: _Optional[bytes] = ..., tasks: _Optional[_Iterable[_Union[BoundTask, _Mapping]]] = ...) -> None: ...

class TransferAnswer(_message.Message):
    __slots__ = ("problem",)
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    problem: str
    def __init__(self, problem: _Optional[str] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("claim", "ticket", "attempt", "name", "offset_bytes", "follow")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    ticket: bytes
    attempt: _descriptions_pb2.AttemptId
    name: str
    offset_bytes: int
    follow: bool
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., ticket: _Optional[bytes] = ..., attempt: _Optional[_Union[_descriptions_pb2.AttemptId, _Mapping]] = ..., name: _Optional[str] = ..., offset_bytes: _Optional[int] = ..., follow: _Optional[bool] = ...) -> None: ...

class ReadChunk(_message.Message):
    __slots__ = ("content",)
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    def __init__(self, content: _Optional[bytes] = ...) -> None: ...
