from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReachResult(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REACH_RESULT_UNSPECIFIED: _ClassVar[ReachResult]
    REACH_RESULT_ANSWERED: _ClassVar[ReachResult]
    REACH_RESULT_REFUSED: _ClassVar[ReachResult]
    REACH_RESULT_SILENT: _ClassVar[ReachResult]
    REACH_RESULT_UNRESOLVED: _ClassVar[ReachResult]
    REACH_RESULT_OTHER: _ClassVar[ReachResult]
    REACH_RESULT_FAILED: _ClassVar[ReachResult]
    REACH_RESULT_NO_ADDRESS: _ClassVar[ReachResult]
    REACH_RESULT_NOT_NOW: _ClassVar[ReachResult]
REACH_RESULT_UNSPECIFIED: ReachResult
REACH_RESULT_ANSWERED: ReachResult
REACH_RESULT_REFUSED: ReachResult
REACH_RESULT_SILENT: ReachResult
REACH_RESULT_UNRESOLVED: ReachResult
REACH_RESULT_OTHER: ReachResult
REACH_RESULT_FAILED: ReachResult
REACH_RESULT_NO_ADDRESS: ReachResult
REACH_RESULT_NOT_NOW: ReachResult

class ReachRequest(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class ReachAnswer(_message.Message):
    __slots__ = ("number", "result", "address", "text", "clock_ns", "took_ns")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CLOCK_NS_FIELD_NUMBER: _ClassVar[int]
    TOOK_NS_FIELD_NUMBER: _ClassVar[int]
    number: int
    result: ReachResult
    address: str
    text: str
    clock_ns: int
    took_ns: int
    def __init__(self, number: _Optional[int] = ..., result: _Optional[_Union[ReachResult, str]] = ..., address: _Optional[str] = ..., text: _Optional[str] = ..., clock_ns: _Optional[int] = ..., took_ns: _Optional[int] = ...) -> None: ...

class ReachMessage(_message.Message):
    __slots__ = ("request", "answer")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    request: ReachRequest
    answer: ReachAnswer
    def __init__(self, request: _Optional[_Union[ReachRequest, _Mapping]] = ..., answer: _Optional[_Union[ReachAnswer, _Mapping]] = ...) -> None: ...
