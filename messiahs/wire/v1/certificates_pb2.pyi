from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RevokedCertificates(_message.Message):
    __slots__ = ("list",)
    LIST_FIELD_NUMBER: _ClassVar[int]
    list: bytes
    def __init__(self, list: _Optional[bytes] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("number", "certificate_request", "certificate", "hops")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    number: int
    certificate_request: bytes
    certificate: bytes
    hops: int
    def __init__(self, number: _Optional[int] = ..., certificate_request: _Optional[bytes] = ..., certificate: _Optional[bytes] = ..., hops: _Optional[int] = ...) -> None: ...

class RenewAnswer(_message.Message):
    __slots__ = ("number", "certificate", "text")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    number: int
    certificate: bytes
    text: str
    def __init__(self, number: _Optional[int] = ..., certificate: _Optional[bytes] = ..., text: _Optional[str] = ...) -> None: ...

class CertificateMessage(_message.Message):
    __slots__ = ("revoked", "request", "answer")
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    revoked: RevokedCertificates
    request: RenewRequest
    answer: RenewAnswer
    def __init__(self, revoked: _Optional[_Union[RevokedCertificates, _Mapping]] = ..., request: _Optional[_Union[RenewRequest, _Mapping]] = ..., answer: _Optional[_Union[RenewAnswer, _Mapping]] = ...) -> None: ...
