from messiahs.wire.v1 import descriptions_pb2 as _descriptions_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JoinRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOIN_ROLE_UNSPECIFIED: _ClassVar[JoinRole]
    JOIN_ROLE_CHILD: _ClassVar[JoinRole]
    JOIN_ROLE_SIBLING: _ClassVar[JoinRole]
JOIN_ROLE_UNSPECIFIED: JoinRole
JOIN_ROLE_CHILD: JoinRole
JOIN_ROLE_SIBLING: JoinRole

class JoinRequest(_message.Message):
    __slots__ = ("name", "role", "certificate_request", "address", "machine", "release", "certificate", "is_primary")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    IS_PRIMARY_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: JoinRole
    certificate_request: bytes
    address: str
    machine: _containers.RepeatedCompositeFieldContainer[_descriptions_pb2.Pair]
    release: str
    certificate: bytes
    is_primary: bool
    def __init__(self, name: _Optional[str] = ..., role: _Optional[_Union[JoinRole, str]] = ..., certificate_request: _Optional[bytes] = ..., address: _Optional[str] = ..., machine: _Optional[_Iterable[_Union[_descriptions_pb2.Pair, _Mapping]]] = ..., release: _Optional[str] = ..., certificate: _Optional[bytes] = ..., is_primary: _Optional[bool] = ...) -> None: ...

class JoinAccept(_message.Message):
    __slots__ = ("certificate", "roots", "update_period_ns")
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_PERIOD_NS_FIELD_NUMBER: _ClassVar[int]
    certificate: bytes
    roots: bytes
    update_period_ns: int
    def __init__(self, certificate: _Optional[bytes] = ..., roots: _Optional[bytes] = ..., update_period_ns: _Optional[int] = ...) -> None: ...

class JoinDeny(_message.Message):
    __slots__ = ("rule", "text")
    RULE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    rule: str
    text: str
    def __init__(self, rule: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class JoinPending(_message.Message):
    __slots__ = ("text", "again_ns")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    AGAIN_NS_FIELD_NUMBER: _ClassVar[int]
    text: str
    again_ns: int
    def __init__(self, text: _Optional[str] = ..., again_ns: _Optional[int] = ...) -> None: ...

class JoinAnswer(_message.Message):
    __slots__ = ("accept", "deny", "pending")
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    DENY_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    accept: JoinAccept
    deny: JoinDeny
    pending: JoinPending
    def __init__(self, accept: _Optional[_Union[JoinAccept, _Mapping]] = ..., deny: _Optional[_Union[JoinDeny, _Mapping]] = ..., pending: _Optional[_Union[JoinPending, _Mapping]] = ...) -> None: ...
