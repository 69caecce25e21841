from messiahs.wire.v1 import descriptions_pb2 as _descriptions_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_EXECUTING: _ClassVar[TaskState]
    TASK_STATE_FINISHED: _ClassVar[TaskState]
    TASK_STATE_ABORTED: _ClassVar[TaskState]
    TASK_STATE_KILLED: _ClassVar[TaskState]
    TASK_STATE_REVOKED: _ClassVar[TaskState]
    TASK_STATE_DENIED: _ClassVar[TaskState]

class Substate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUBSTATE_UNSPECIFIED: _ClassVar[Substate]
    SUBSTATE_QUEUED: _ClassVar[Substate]
    SUBSTATE_STAGING: _ClassVar[Substate]
    SUBSTATE_RUNNING: _ClassVar[Substate]
    SUBSTATE_SUSPENDED: _ClassVar[Substate]
    SUBSTATE_VACATING: _ClassVar[Substate]

class DenyCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DENY_CODE_UNSPECIFIED: _ClassVar[DenyCode]
    DENY_CODE_REFUSED_BY_POLICY: _ClassVar[DenyCode]
    DENY_CODE_LIMIT_REACHED: _ClassVar[DenyCode]
    DENY_CODE_NO_CLASS: _ClassVar[DenyCode]
    DENY_CODE_REQUIREMENT_UNMET: _ClassVar[DenyCode]
    DENY_CODE_NO_CAPACITY: _ClassVar[DenyCode]
    DENY_CODE_HOP_LIMIT: _ClassVar[DenyCode]
    DENY_CODE_TIMED_OUT: _ClassVar[DenyCode]
    DENY_CODE_ALREADY_ASKED: _ClassVar[DenyCode]
    DENY_CODE_LOST: _ClassVar[DenyCode]
    DENY_CODE_BAD_PREDICATE: _ClassVar[DenyCode]
    DENY_CODE_UNREACHABLE: _ClassVar[DenyCode]
    DENY_CODE_DRAINING: _ClassVar[DenyCode]
    DENY_CODE_NO_SPACE: _ClassVar[DenyCode]
    DENY_CODE_NO_TASK: _ClassVar[DenyCode]
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_EXECUTING: TaskState
TASK_STATE_FINISHED: TaskState
TASK_STATE_ABORTED: TaskState
TASK_STATE_KILLED: TaskState
TASK_STATE_REVOKED: TaskState
TASK_STATE_DENIED: TaskState
SUBSTATE_UNSPECIFIED: Substate
SUBSTATE_QUEUED: Substate
SUBSTATE_STAGING: Substate
SUBSTATE_RUNNING: Substate
SUBSTATE_SUSPENDED: Substate
SUBSTATE_VACATING: Substate
DENY_CODE_UNSPECIFIED: DenyCode
DENY_CODE_REFUSED_BY_POLICY: DenyCode
DENY_CODE_LIMIT_REACHED: DenyCode
DENY_CODE_NO_CLASS: DenyCode
DENY_CODE_REQUIREMENT_UNMET: DenyCode
DENY_CODE_NO_CAPACITY: DenyCode
DENY_CODE_HOP_LIMIT: DenyCode
DENY_CODE_TIMED_OUT: DenyCode
DENY_CODE_ALREADY_ASKED: DenyCode
DENY_CODE_LOST: DenyCode
DENY_CODE_BAD_PREDICATE: DenyCode
DENY_CODE_UNREACHABLE: DenyCode
DENY_CODE_DRAINING: DenyCode
DENY_CODE_NO_SPACE: DenyCode
DENY_CODE_NO_TASK: DenyCode

class Hello(_message.Message):
    __slots__ = ("system", "epoch", "wire_versions", "release", "given", "heard_epoch", "heard", "former_epochs")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    HEARD_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    FORMER_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    system: str
    epoch: int
    wire_versions: _containers.RepeatedScalarFieldContainer[int]
    release: str
    given: IdsGiven
    heard_epoch: int
    heard: IdsGiven
    former_epochs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, system: _Optional[str] = ..., epoch: _Optional[int] = ..., wire_versions: _Optional[_Iterable[int]] = ..., release: _Optional[str] = ..., given: _Optional[_Union[IdsGiven, _Mapping]] = ..., heard_epoch: _Optional[int] = ..., heard: _Optional[_Union[IdsGiven, _Mapping]] = ..., former_epochs: _Optional[_Iterable[int]] = ...) -> None: ...

class IdsGiven(_message.Message):
    __slots__ = ("submissions", "claims")
    SUBMISSIONS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    submissions: int
    claims: int
    def __init__(self, submissions: _Optional[int] = ..., claims: _Optional[int] = ...) -> None: ...

class Trust(_message.Message):
    __slots__ = ("roots", "vouchers", "trusts_relays")
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    VOUCHERS_FIELD_NUMBER: _ClassVar[int]
    TRUSTS_RELAYS_FIELD_NUMBER: _ClassVar[int]
    roots: _containers.RepeatedScalarFieldContainer[bytes]
    vouchers: _containers.RepeatedScalarFieldContainer[bytes]
    trusts_relays: bool
    def __init__(self, roots: _Optional[_Iterable[bytes]] = ..., vouchers: _Optional[_Iterable[bytes]] = ..., trusts_relays: _Optional[bool] = ...) -> None: ...

class SchedRequest(_message.Message):
    __slots__ = ("id", "search", "origin", "tdv", "requirement", "count", "hops_left", "asks_left", "remaining_ns", "answers", "trust", "avoids", "dialers", "near", "is_foreign", "lease_ns")
    ID_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TDV_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    HOPS_LEFT_FIELD_NUMBER: _ClassVar[int]
    ASKS_LEFT_FIELD_NUMBER: _ClassVar[int]
    REMAINING_NS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    AVOIDS_FIELD_NUMBER: _ClassVar[int]
    DIALERS_FIELD_NUMBER: _ClassVar[int]
    NEAR_FIELD_NUMBER: _ClassVar[int]
    IS_FOREIGN_FIELD_NUMBER: _ClassVar[int]
    LEASE_NS_FIELD_NUMBER: _ClassVar[int]
    id: int
    search: bytes
    origin: str
    tdv: _descriptions_pb2.TaskDescription
    requirement: bytes
    count: int
    hops_left: int
    asks_left: int
    remaining_ns: int
    answers: bytes
    trust: Trust
    avoids: _containers.RepeatedScalarFieldContainer[bytes]
    dialers: _containers.RepeatedScalarFieldContainer[bytes]
    near: _descriptions_pb2.ClaimId
    is_foreign: bool
    lease_ns: int
    def __init__(self, id: _Optional[int] = ..., search: _Optional[bytes] = ..., origin: _Optional[str] = ..., tdv: _Optional[_Union[_descriptions_pb2.TaskDescription, _Mapping]] = ..., requirement: _Optional[bytes] = ..., count: _Optional[int] = ..., hops_left: _Optional[int] = ..., asks_left: _Optional[int] = ..., remaining_ns: _Optional[int] = ..., answers: _Optional[bytes] = ..., trust: _Optional[_Union[Trust, _Mapping]] = ..., avoids: _Optional[_Iterable[bytes]] = ..., dialers: _Optional[_Iterable[bytes]] = ..., near: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., is_foreign: _Optional[bool] = ..., lease_ns: _Optional[int] = ...) -> None: ...

class SchedAccept(_message.Message):
    __slots__ = ("request", "claim", "address", "ticket", "places", "window", "lease_ns", "asks_left", "server", "hop_address", "hop_ticket", "trust", "place", "splice", "is_foreign")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    LEASE_NS_FIELD_NUMBER: _ClassVar[int]
    ASKS_LEFT_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    HOP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    HOP_TICKET_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    SPLICE_FIELD_NUMBER: _ClassVar[int]
    IS_FOREIGN_FIELD_NUMBER: _ClassVar[int]
    request: int
    claim: _descriptions_pb2.ClaimId
    address: str
    ticket: bytes
    places: int
    window: int
    lease_ns: int
    asks_left: int
    server: str
    hop_address: str
    hop_ticket: bytes
    trust: Trust
    place: bytes
    splice: SpliceEnd
    is_foreign: bool
    def __init__(self, request: _Optional[int] = ..., claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., address: _Optional[str] = ..., ticket: _Optional[bytes] = ..., places: _Optional[int] = ..., window: _Optional[int] = ..., lease_ns: _Optional[int] = ..., asks_left: _Optional[int] = ..., server: _Optional[str] = ..., hop_address: _Optional[str] = ..., hop_ticket: _Optional[bytes] = ..., trust: _Optional[_Union[Trust, _Mapping]] = ..., place: _Optional[bytes] = ..., splice: _Optional[_Union[SpliceEnd, _Mapping]] = ..., is_foreign: _Optional[bool] = ...) -> None: ...

class SpliceEnd(_message.Message):
    __slots__ = ("system", "ticket")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    system: str
    ticket: bytes
    def __init__(self, system: _Optional[str] = ..., ticket: _Optional[bytes] = ...) -> None: ...

class Reason(_message.Message):
    __slots__ = ("module", "code", "rule", "text", "hops")
    MODULE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    module: str
    code: DenyCode
    rule: str
    text: str
    hops: _containers.RepeatedCompositeFieldContainer[Reason]
    def __init__(self, module: _Optional[str] = ..., code: _Optional[_Union[DenyCode, str]] = ..., rule: _Optional[str] = ..., text: _Optional[str] = ..., hops: _Optional[_Iterable[_Union[Reason, _Mapping]]] = ...) -> None: ...

class SchedDeny(_message.Message):
    __slots__ = ("request", "reasons", "asks_left")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    ASKS_LEFT_FIELD_NUMBER: _ClassVar[int]
    request: int
    reasons: _containers.RepeatedCompositeFieldContainer[Reason]
    asks_left: int
    def __init__(self, request: _Optional[int] = ..., reasons: _Optional[_Iterable[_Union[Reason, _Mapping]]] = ..., asks_left: _Optional[int] = ...) -> None: ...

class TaskRequest(_message.Message):
    __slots__ = ("id", "search", "requester", "wanting", "count", "hops_left", "asks_left", "remaining_ns", "trust")
    ID_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELD_NUMBER: _ClassVar[int]
    REQUESTER_FIELD_NUMBER: _ClassVar[int]
    WANTING_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    HOPS_LEFT_FIELD_NUMBER: _ClassVar[int]
    ASKS_LEFT_FIELD_NUMBER: _ClassVar[int]
    REMAINING_NS_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    id: int
    search: bytes
    requester: str
    wanting: bytes
    count: int
    hops_left: int
    asks_left: int
    remaining_ns: int
    trust: Trust
    def __init__(self, id: _Optional[int] = ..., search: _Optional[bytes] = ..., requester: _Optional[str] = ..., wanting: _Optional[bytes] = ..., count: _Optional[int] = ..., hops_left: _Optional[int] = ..., asks_left: _Optional[int] = ..., remaining_ns: _Optional[int] = ..., trust: _Optional[_Union[Trust, _Mapping]] = ...) -> None: ...

class TaskAccept(_message.Message):
    __slots__ = ("request", "count", "asks_left")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ASKS_LEFT_FIELD_NUMBER: _ClassVar[int]
    request: int
    count: int
    asks_left: int
    def __init__(self, request: _Optional[int] = ..., count: _Optional[int] = ..., asks_left: _Optional[int] = ...) -> None: ...

class TaskDeny(_message.Message):
    __slots__ = ("request", "reasons", "asks_left")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    ASKS_LEFT_FIELD_NUMBER: _ClassVar[int]
    request: int
    reasons: _containers.RepeatedCompositeFieldContainer[Reason]
    asks_left: int
    def __init__(self, request: _Optional[int] = ..., reasons: _Optional[_Iterable[_Union[Reason, _Mapping]]] = ..., asks_left: _Optional[int] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("name", "size_bytes", "is_executable", "link_target", "is_folder")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_EXECUTABLE_FIELD_NUMBER: _ClassVar[int]
    LINK_TARGET_FIELD_NUMBER: _ClassVar[int]
    IS_FOLDER_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    is_executable: bool
    link_target: str
    is_folder: bool
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., is_executable: _Optional[bool] = ..., link_target: _Optional[str] = ..., is_folder: _Optional[bool] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("cpu_ns", "peak_memory_bytes", "written_bytes", "read_bytes", "suspended_ns")
    CPU_NS_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_BYTES_FIELD_NUMBER: _ClassVar[int]
    READ_BYTES_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_NS_FIELD_NUMBER: _ClassVar[int]
    cpu_ns: int
    peak_memory_bytes: int
    written_bytes: int
    read_bytes: int
    suspended_ns: int
    def __init__(self, cpu_ns: _Optional[int] = ..., peak_memory_bytes: _Optional[int] = ..., written_bytes: _Optional[int] = ..., read_bytes: _Optional[int] = ..., suspended_ns: _Optional[int] = ...) -> None: ...

class Containment(_message.Message):
    __slots__ = ("isolation", "lacks")
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    isolation: str
    lacks: str
    def __init__(self, isolation: _Optional[str] = ..., lacks: _Optional[str] = ...) -> None: ...

class Assigned(_message.Message):
    __slots__ = ("name", "numbers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    numbers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., numbers: _Optional[_Iterable[int]] = ...) -> None: ...

class AttemptStatus(_message.Message):
    __slots__ = ("attempt", "state", "substate", "exit_code", "signal", "cause", "text", "ran_ns", "outputs", "is_rule_text", "usage", "containment", "assigned")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SUBSTATE_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    RAN_NS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    IS_RULE_TEXT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    CONTAINMENT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    attempt: _descriptions_pb2.AttemptId
    state: TaskState
    substate: Substate
    exit_code: int
    signal: int
    cause: str
    text: str
    ran_ns: int
    outputs: _containers.RepeatedCompositeFieldContainer[Output]
    is_rule_text: bool
    usage: Usage
    containment: Containment
    assigned: _containers.RepeatedCompositeFieldContainer[Assigned]
    def __init__(self, attempt: _Optional[_Union[_descriptions_pb2.AttemptId, _Mapping]] = ..., state: _Optional[_Union[TaskState, str]] = ..., substate: _Optional[_Union[Substate, str]] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., cause: _Optional[str] = ..., text: _Optional[str] = ..., ran_ns: _Optional[int] = ..., outputs: _Optional[_Iterable[_Union[Output, _Mapping]]] = ..., is_rule_text: _Optional[bool] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., containment: _Optional[_Union[Containment, _Mapping]] = ..., assigned: _Optional[_Iterable[_Union[Assigned, _Mapping]]] = ...) -> None: ...

class TaskStatus(_message.Message):
    __slots__ = ("claim", "attempts", "window", "renewal")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    RENEWAL_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    attempts: _containers.RepeatedCompositeFieldContainer[AttemptStatus]
    window: int
    renewal: int
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[AttemptStatus, _Mapping]]] = ..., window: _Optional[int] = ..., renewal: _Optional[int] = ...) -> None: ...

class TaskStatusAck(_message.Message):
    __slots__ = ("claim", "taken", "unbound", "renewal", "moving", "lease_ns")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    UNBOUND_FIELD_NUMBER: _ClassVar[int]
    RENEWAL_FIELD_NUMBER: _ClassVar[int]
    MOVING_FIELD_NUMBER: _ClassVar[int]
    LEASE_NS_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    taken: _containers.RepeatedCompositeFieldContainer[_descriptions_pb2.AttemptId]
    unbound: _containers.RepeatedCompositeFieldContainer[_descriptions_pb2.AttemptId]
    renewal: int
    moving: _containers.RepeatedCompositeFieldContainer[_descriptions_pb2.AttemptId]
    lease_ns: int
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., taken: _Optional[_Iterable[_Union[_descriptions_pb2.AttemptId, _Mapping]]] = ..., unbound: _Optional[_Iterable[_Union[_descriptions_pb2.AttemptId, _Mapping]]] = ..., renewal: _Optional[int] = ..., moving: _Optional[_Iterable[_Union[_descriptions_pb2.AttemptId, _Mapping]]] = ..., lease_ns: _Optional[int] = ...) -> None: ...

class TaskStatusQuery(_message.Message):
    __slots__ = ("claim", "attempts")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    attempts: _containers.RepeatedCompositeFieldContainer[_descriptions_pb2.AttemptId]
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[_descriptions_pb2.AttemptId, _Mapping]]] = ...) -> None: ...

class TaskKill(_message.Message):
    __slots__ = ("claim", "attempts", "is_move", "is_barring")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    IS_MOVE_FIELD_NUMBER: _ClassVar[int]
    IS_BARRING_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    attempts: _containers.RepeatedCompositeFieldContainer[_descriptions_pb2.AttemptId]
    is_move: bool
    is_barring: bool
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[_descriptions_pb2.AttemptId, _Mapping]]] = ..., is_move: _Optional[bool] = ..., is_barring: _Optional[bool] = ...) -> None: ...

class TaskRevoke(_message.Message):
    __slots__ = ("claim", "attempts", "text", "answers", "toward")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    TOWARD_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    attempts: _containers.RepeatedCompositeFieldContainer[_descriptions_pb2.AttemptId]
    text: str
    answers: bytes
    toward: str
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[_descriptions_pb2.AttemptId, _Mapping]]] = ..., text: _Optional[str] = ..., answers: _Optional[bytes] = ..., toward: _Optional[str] = ...) -> None: ...

class ClaimEnd(_message.Message):
    __slots__ = ("claim", "is_forgotten")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    IS_FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    is_forgotten: bool
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., is_forgotten: _Optional[bool] = ...) -> None: ...

class SystemStatusQuery(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Leave(_message.Message):
    __slots__ = ("text", "is_done", "is_sibling")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IS_DONE_FIELD_NUMBER: _ClassVar[int]
    IS_SIBLING_FIELD_NUMBER: _ClassVar[int]
    text: str
    is_done: bool
    is_sibling: bool
    def __init__(self, text: _Optional[str] = ..., is_done: _Optional[bool] = ..., is_sibling: _Optional[bool] = ...) -> None: ...

class Handover(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class HandoverDone(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class SumsSettled(_message.Message):
    __slots__ = ("marks",)
    MARKS_FIELD_NUMBER: _ClassVar[int]
    marks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, marks: _Optional[_Iterable[int]] = ...) -> None: ...

class SiblingRequest(_message.Message):
    __slots__ = ("address", "siblings", "assigned", "most", "refused")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SIBLINGS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    address: str
    siblings: _containers.RepeatedScalarFieldContainer[str]
    assigned: _containers.RepeatedScalarFieldContainer[str]
    most: int
    refused: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, address: _Optional[str] = ..., siblings: _Optional[_Iterable[str]] = ..., assigned: _Optional[_Iterable[str]] = ..., most: _Optional[int] = ..., refused: _Optional[_Iterable[str]] = ...) -> None: ...

class AssignedSibling(_message.Message):
    __slots__ = ("system", "address", "roots")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    system: str
    address: str
    roots: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, system: _Optional[str] = ..., address: _Optional[str] = ..., roots: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SiblingAssignment(_message.Message):
    __slots__ = ("siblings", "withdrawn")
    SIBLINGS_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    siblings: _containers.RepeatedCompositeFieldContainer[AssignedSibling]
    withdrawn: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, siblings: _Optional[_Iterable[_Union[AssignedSibling, _Mapping]]] = ..., withdrawn: _Optional[_Iterable[str]] = ...) -> None: ...

class CycleProbe(_message.Message):
    __slots__ = ("number", "hops_left")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    HOPS_LEFT_FIELD_NUMBER: _ClassVar[int]
    number: int
    hops_left: int
    def __init__(self, number: _Optional[int] = ..., hops_left: _Optional[int] = ...) -> None: ...

class ClaimUsage(_message.Message):
    __slots__ = ("claim", "processor_ns", "is_final", "used_ns")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    PROCESSOR_NS_FIELD_NUMBER: _ClassVar[int]
    IS_FINAL_FIELD_NUMBER: _ClassVar[int]
    USED_NS_FIELD_NUMBER: _ClassVar[int]
    claim: _descriptions_pb2.ClaimId
    processor_ns: int
    is_final: bool
    used_ns: int
    def __init__(self, claim: _Optional[_Union[_descriptions_pb2.ClaimId, _Mapping]] = ..., processor_ns: _Optional[int] = ..., is_final: _Optional[bool] = ..., used_ns: _Optional[int] = ...) -> None: ...

class UsageReport(_message.Message):
    __slots__ = ("usages",)
    USAGES_FIELD_NUMBER: _ClassVar[int]
    usages: _containers.RepeatedCompositeFieldContainer[ClaimUsage]
    def __init__(self, usages: _Optional[_Iterable[_Union[ClaimUsage, _Mapping]]] = ...) -> None: ...

class UsageReportAck(_message.Message):
    __slots__ = ("claims",)
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    claims: _containers.RepeatedCompositeFieldContainer[_descriptions_pb2.ClaimId]
    def __init__(self, claims: _Optional[_Iterable[_Union[_descriptions_pb2.ClaimId, _Mapping]]] = ...) -> None: ...

class ControlMessage(_message.Message):
    __slots__ = ("hello", "sched_request", "sched_accept", "sched_deny", "task_status", "task_status_ack", "task_status_query", "task_kill", "claim_end", "system_status_query", "task_revoke", "task_request", "task_accept", "task_deny", "leave", "handover", "handover_done", "sums_settled", "sibling_request", "sibling_assignment", "cycle_probe", "usage_report", "usage_report_ack")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    SCHED_REQUEST_FIELD_NUMBER: _ClassVar[int]
    SCHED_ACCEPT_FIELD_NUMBER: _ClassVar[int]
    SCHED_DENY_FIELD_NUMBER: _ClassVar[int]
    TASK_STATUS_FIELD_NUMBER: _ClassVar[int]
    TASK_STATUS_ACK_FIELD_NUMBER: _ClassVar[int]
    TASK_STATUS_QUERY_FIELD_NUMBER: _ClassVar[int]
    TASK_KILL_FIELD_NUMBER: _ClassVar[int]
    CLAIM_END_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_STATUS_QUERY_FIELD_NUMBER: _ClassVar[int]
    TASK_REVOKE_FIELD_NUMBER: _ClassVar[int]
    TASK_REQUEST_FIELD_NUMBER: _ClassVar[int]
    TASK_ACCEPT_FIELD_NUMBER: _ClassVar[int]
    TASK_DENY_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    HANDOVER_FIELD_NUMBER: _ClassVar[int]
    HANDOVER_DONE_FIELD_NUMBER: _ClassVar[int]
    SUMS_SETTLED_FIELD_NUMBER: _ClassVar[int]
    SIBLING_REQUEST_FIELD_NUMBER: _ClassVar[int]
    SIBLING_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    CYCLE_PROBE_FIELD_NUMBER: _ClassVar[int]
    USAGE_REPORT_FIELD_NUMBER: _ClassVar[int]
    USAGE_REPORT_ACK_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    sched_request: SchedRequest
    sched_accept: SchedAccept
    sched_deny: SchedDeny
    task_status: TaskStatus
    task_status_ack: TaskStatusAck
    task_status_query: TaskStatusQuery
    task_kill: TaskKill
    claim_end: ClaimEnd
    system_status_query: SystemStatusQuery
    task_revoke: TaskRevoke
    task_request: TaskRequest
    task_accept: TaskAccept
    task_deny: TaskDeny
    leave: Leave
    handover: Handover
    handover_done: HandoverDone
    sums_settled: SumsSettled
    sibling_request: SiblingRequest
    sibling_assignment: SiblingAssignment
    cycle_probe: CycleProbe
    usage_report: UsageReport
    usage_report_ack: UsageReportAck
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., sched_request: _Optional[_Union[SchedRequest, _Mapping]] = ..., sched_accept: _Optional[_Union[SchedAccept, _Mapping]] = ..., sched_deny: _Optional[_Union[SchedDeny, _Mapping]] = ..., task_status: _Optional[_Union[TaskStatus, _Mapping]] = ..., task_status_ack: _Optional[_Union[TaskStatusAck, _Mapping]] = ..., task_status_query: _Optional[_Union[TaskStatusQuery, _Mapping]] = ..., task_kill: _Optional[_Union[TaskKill, _Mapping]] = ..., claim_end: _Optional[_Union[ClaimEnd, _Mapping]] = ..., system_status_query: _Optional[_Union[SystemStatusQuery, _Mapping]] = ..., task_revoke: _Optional[_Union[TaskRevoke, _Mapping]] = ..., task_request: _Optional[_Union[TaskRequest, _Mapping]] = ..., task_accept: _Optional[_Union[TaskAccept, _Mapping]] = ..., task_deny: _Optional[_Union[TaskDeny, _Mapping]] = ..., leave: _Optional[_Union[Leave, _Mapping]] = ..., handover: _Optional[_Union[Handover, _Mapping]] = ..., handover_done: _Optional[_Union[HandoverDone, _Mapping]] = ..., sums_settled: _Optional[_Union[SumsSettled, _Mapping]] = ..., sibling_request: _Optional[_Union[SiblingRequest, _Mapping]] = ..., sibling_assignment: _Optional[_Union[SiblingAssignment, _Mapping]] = ..., cycle_probe: _Optional[_Union[CycleProbe, _Mapping]] = ..., usage_report: _Optional[_Union[UsageReport, _Mapping]] = ..., usage_report_ack: _Optional[_Union[UsageReportAck, _Mapping]] = ...) -> None: ...

class ControlBatch(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[ControlMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[ControlMessage, _Mapping]]] = ...) -> None: ...

class BytesWantedQuery(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BytesWanted(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: bytes
    def __init__(self, token: _Optional[bytes] = ...) -> None: ...
