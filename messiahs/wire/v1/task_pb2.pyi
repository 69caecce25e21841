from messiahs.wire.v1 import descriptions_pb2 as _descriptions_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TransferFailure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRANSFER_FAILURE_REFUSED: _ClassVar[TransferFailure]
    TRANSFER_FAILURE_DENIED: _ClassVar[TransferFailure]
    TRANSFER_FAILURE_BEYOND: _ClassVar[TransferFailure]
TRANSFER_FAILURE_REFUSED: TransferFailure
TRANSFER_FAILURE_DENIED: TransferFailure
TRANSFER_FAILURE_BEYOND: TransferFailure

class Variable(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    value: bytes
    def __init__(self, name: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class InputFile(_message.Message):
    __slots__ = ("name", "sha256", "size_bytes", "is_executable", "link_target", "is_folder")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_EXECUTABLE_FIELD_NUMBER: _ClassVar[int]
    LINK_TARGET_FIELD_NUMBER: _ClassVar[int]
    IS_FOLDER_FIELD_NUMBER: _ClassVar[int]
    name: str
    sha256: bytes
    size_bytes: int
    is_executable: bool
    link_target: str
    is_folder: bool
    def __init__(self, name: _Optional[str] = ..., sha256: _Optional[bytes] = ..., size_bytes: _Optional[int] = ..., is_executable: _Optional[bool] = ..., link_target: _Optional[str] = ..., is_folder: _Optional[bool] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("argv", "env", "inputs", "outputs", "takes_stdin", "cwd", "terminal")
    ARGV_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    TAKES_STDIN_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    argv: _containers.RepeatedScalarFieldContainer[bytes]
    env: _containers.RepeatedCompositeFieldContainer[Variable]
    inputs: _containers.RepeatedCompositeFieldContainer[InputFile]
    outputs: _containers.RepeatedScalarFieldContainer[str]
    takes_stdin: bool
    cwd: str
    terminal: TerminalSize
    def __init__(self, argv: _Optional[_Iterable[bytes]] = ..., env: _Optional[_Iterable[_Union[Variable, _Mapping]]] = ..., inputs: _Optional[_Iterable[_Union[InputFile, _Mapping]]] = ..., outputs: _Optional[_Iterable[str]] = ..., takes_stdin: _Optional[bool] = ..., cwd: _Optional[str] = ..., terminal: _Optional[_Union[TerminalSize, _Mapping]] = ...) -> None: ...

class TerminalSize(_message.Message):
    __slots__ = ("rows", "columns")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    columns: int
    def __init__(self, rows: _Optional[int] = ..., columns: _Optional[int] = ...) -> None: ...

class BoundTask(_message.Message):
    __slots__ = ("attempt", "command")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    attempt: _descriptions_pb2.AttemptId
    command: Command
    def __init__(self, attempt: _Optional[_Union[_descriptions_pb2.AttemptId, _Mapping]] = ..., command: _Optional[_Union[Command, _Mapping]] = ...) -> None: ...

class TaskTransfer(_message.Message):
    __slots__ = ("claim", "ticket", "tasks", "files", "supplier")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    SUPPLIER_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    ticket: bytes
    tasks: _containers.RepeatedCompositeFieldContainer[BoundTask]
    files: _containers.RepeatedScalarFieldContainer[bytes]
    supplier: bytes
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., ticket: _Optional[bytes] = ..., tasks: _Optional[_Iterable[_Union[BoundTask, _Mapping]]] = ..., files: _Optional[_Iterable[bytes]] = ..., supplier: _Optional[bytes] = ...) -> None: ...

class TransferAnswer(_message.Message):
    __slots__ = ("problem", "claim", "kind")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    problem: str
    claim: _descriptions_pb2.ClaimId
    kind: TransferFailure
    def __init__(self, problem: _Optional[str] = ..., claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., kind: _Optional[_Union[TransferFailure, str]] = ...) -> None: ...

class BulkOffer(_message.Message):
    __slots__ = ("port", "token", "key")
    PORT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    port: int
    token: bytes
    key: bytes
    def __init__(self, port: _Optional[int] = ..., token: _Optional[bytes] = ..., key: _Optional[bytes] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("claim", "ticket", "attempt", "name", "offset_bytes", "follow", "bulk", "hashed", "offer")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    BULK_FIELD_NUMBER: _ClassVar[int]
    HASHED_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    ticket: bytes
    attempt: _descriptions_pb2.AttemptId
    name: str
    offset_bytes: int
    follow: bool
    bulk: bool
    hashed: bool
    offer: BulkOffer
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., ticket: _Optional[bytes] = ..., attempt: _Optional[_Union[_descriptions_pb2.AttemptId, _Mapping]] = ..., name: _Optional[str] = ..., offset_bytes: _Optional[int] = ..., follow: _Optional[bool] = ..., bulk: _Optional[bool] = ..., hashed: _Optional[bool] = ..., offer: _Optional[_Union[BulkOffer, _Mapping]] = ...) -> None: ...

class ReadChunk(_message.Message):
    __slots__ = ("content", "sha256", "bulk", "sent_bytes", "is_dialed")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    BULK_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_DIALED_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    sha256: bytes
    bulk: BulkOffer
    sent_bytes: int
    is_dialed: bool
    def __init__(self, content: _Optional[bytes] = ..., sha256: _Optional[bytes] = ..., bulk: _Optional[_Union[BulkOffer, _Mapping]] = ..., sent_bytes: _Optional[int] = ..., is_dialed: _Optional[bool] = ...) -> None: ...

class PutRequest(_message.Message):
    __slots__ = ("claim", "ticket", "files", "supplier", "bulk")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    SUPPLIER_FIELD_NUMBER: _ClassVar[int]
    BULK_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    ticket: bytes
    files: _containers.RepeatedCompositeFieldContainer[PutFile]
    supplier: bytes
    bulk: BulkOffer
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., ticket: _Optional[bytes] = ..., files: _Optional[_Iterable[_Union[PutFile, _Mapping]]] = ..., supplier: _Optional[bytes] = ..., bulk: _Optional[_Union[BulkOffer, _Mapping]] = ...) -> None: ...

class PutFile(_message.Message):
    __slots__ = ("sha256", "size_bytes")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    sha256: bytes
    size_bytes: int
    def __init__(self, sha256: _Optional[bytes] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class PutMessage(_message.Message):
    __slots__ = ("request", "content")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    request: PutRequest
    content: bytes
    def __init__(self, request: _Optional[_Union[PutRequest, _Mapping]] = ..., content: _Optional[bytes] = ...) -> None: ...

class PutAnswer(_message.Message):
    __slots__ = ("offsets_bytes", "problem", "bulk", "kind", "is_dialed")
    OFFSETS_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    BULK_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    IS_DIALED_FIELD_NUMBER: _ClassVar[int]
    offsets_bytes: _containers.RepeatedScalarFieldContainer[int]
    problem: str
    bulk: BulkOffer
    kind: TransferFailure
    is_dialed: bool
    def __init__(self, offsets_bytes: _Optional[_Iterable[int]] = ..., problem: _Optional[str] = ..., bulk: _Optional[_Union[BulkOffer, _Mapping]] = ..., kind: _Optional[_Union[TransferFailure, str]] = ..., is_dialed: _Optional[bool] = ...) -> None: ...

class FeedRequest(_message.Message):
    __slots__ = ("claim", "ticket", "attempt")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    ticket: bytes
    attempt: _descriptions_pb2.AttemptId
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., ticket: _Optional[bytes] = ..., attempt: _Optional[_Union[_descriptions_pb2.AttemptId, _Mapping]] = ...) -> None: ...

class FeedPiece(_message.Message):
    __slots__ = ("content", "is_end")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    IS_END_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    is_end: bool
    def __init__(self, content: _Optional[bytes] = ..., is_end: _Optional[bool] = ...) -> None: ...

class FeedMessage(_message.Message):
    __slots__ = ("request", "piece")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    request: FeedRequest
    piece: FeedPiece
    def __init__(self, request: _Optional[_Union[FeedRequest, _Mapping]] = ..., piece: _Optional[_Union[FeedPiece, _Mapping]] = ...) -> None: ...

class FeedAnswer(_message.Message):
    __slots__ = ("offset_bytes", "is_closed", "problem", "has_ended", "has_terminal")
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_CLOSED_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    HAS_ENDED_FIELD_NUMBER: _ClassVar[int]
    HAS_TERMINAL_FIELD_NUMBER: _ClassVar[int]
    offset_bytes: int
    is_closed: bool
    problem: str
    has_ended: bool
    has_terminal: bool
    def __init__(self, offset_bytes: _Optional[int] = ..., is_closed: _Optional[bool] = ..., problem: _Optional[str] = ..., has_ended: _Optional[bool] = ..., has_terminal: _Optional[bool] = ...) -> None: ...

class PipeMessage(_message.Message):
    __slots__ = ("token", "content", "splice")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SPLICE_FIELD_NUMBER: _ClassVar[int]
    token: bytes
    content: bytes
    splice: SpliceQuery
    def __init__(self, token: _Optional[bytes] = ..., content: _Optional[bytes] = ..., splice: _Optional[_Union[SpliceQuery, _Mapping]] = ...) -> None: ...

class SpliceQuery(_message.Message):
    __slots__ = ("claim", "ticket")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    ticket: bytes
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., ticket: _Optional[bytes] = ...) -> None: ...
