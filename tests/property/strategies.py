"""Any valid value of the core, for laws that hold for all of them.

Vectors come in their canonical order and within the limits of the wire; texts are shorter than those are cut to.
"""

from dataclasses import replace

from hypothesis import strategies as st

from messiahs.core.interface.hello import Hello
from messiahs.core.interface.ledger_messages import ClaimUsage, UsageReport, UsageReportAck
from messiahs.core.interface.membership_messages import (
    AssignedSibling,
    CycleProbe,
    Handover,
    HandoverDone,
    Leave,
    SiblingAssignment,
    SiblingRequest,
    SumsSettled,
)
from messiahs.core.interface.messages import (
    AttemptStatus,
    BoundTask,
    ClaimEnd,
    Command,
    ControlMessage,
    DenyCode,
    Reason,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    Substate,
    SystemStatusQuery,
    TaskAccept,
    TaskDeny,
    TaskKill,
    TaskRequest,
    TaskRevoke,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.model.attributes import (
    INTEGER_HIGHEST,
    INTEGER_LOWEST,
    MACHINE_ATTRIBUTES,
    TASK_ATTRIBUTES,
    Kind,
    Value,
)
from messiahs.core.model.counted import COUNTED_NAME, HIGHEST_NUMBER, KINDS, Counted
from messiahs.core.model.demand import DemandClass, DemandKey, DemandSize, summed
from messiahs.core.model.descriptions import TDV, is_valid_value, sorted_pairs
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, MessageId, SearchId, SystemId, TaskId, Ticket
from messiahs.core.model.link_costs import HIGHEST_THROUGHPUT, LONGEST_ROUND_TRIP_NS, NO_PROBE, LinkCosts, Probe
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.model.routes import SpliceEnd
from messiahs.core.model.task_files import InputFile, Output
from messiahs.core.model.terminals import LONGEST, TerminalSize
from messiahs.core.model.texts import printable
from messiahs.core.model.trust import Trust
from messiahs.core.model.usage import Containment, Usage
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import VARIOUS, ClassValue, Interval, MachineClass, Vector, sort_key
from messiahs.wire.limits import USAGE_END

LOWER = "abcdefghijklmnopqrstuvwxyz0123456789"
EXTENSIONS = ("gpu", "_site", "Rack9", "x" * 64)

system_ids = st.builds(SystemId, st.text(LOWER + ".-", min_size=1, max_size=20) | st.just("a" * 255))
epochs = st.builds(Epoch, st.integers(0, 2**64 - 1))
counters = st.integers(0, 5) | st.integers(0, 2**63 - 1)
positions = st.integers(0, 5) | st.integers(0, 2**32 - 1)
amounts = st.integers(0, 5) | st.integers(0, 2**40 - 1)
positive_amounts = st.integers(1, 5) | st.integers(1, 2**40 - 1)
durations_ns = counters
message_ids = st.builds(MessageId, counters)
search_ids = st.builds(SearchId, st.binary(min_size=16, max_size=16))
tickets = st.builds(Ticket, st.binary(min_size=16, max_size=16))
task_ids = st.builds(TaskId, system_ids, epochs, counters, positions)
attempt_ids = st.builds(AttemptId, task_ids, positions)
claim_ids = st.builds(ClaimId, system_ids, epochs, counters)
unicode_texts = st.text(st.characters(codec="utf-8"), max_size=16)
lines = unicode_texts.map(printable)
integers = st.integers(-9, 9) | st.integers(INTEGER_LOWEST, INTEGER_HIGHEST)
strings = unicode_texts.filter(is_valid_value)
values: st.SearchStrategy[Value] = integers | strings


def _value_of(kind: Kind) -> st.SearchStrategy[Value]:
    return integers if kind is Kind.INTEGER else strings


tdvs = st.builds(
    lambda said: TDV(sorted_pairs(said)),
    st.fixed_dictionaries(
        {name: _value_of(TASK_ATTRIBUTES[name].kind) for name in ("cpus", "origin", "user")},
        optional={
            **{
                name: _value_of(attribute.kind)
                for name, attribute in TASK_ATTRIBUTES.items()
                if name not in {"cpus", "origin", "user"}
            },
            **dict.fromkeys(EXTENSIONS, values),
        },
    ),
)

_buckets = st.integers(bucket_of(INTEGER_LOWEST), bucket_of(INTEGER_HIGHEST))
intervals = st.tuples(_buckets, _buckets).map(lambda ends: Interval(min(ends), max(ends)))
class_values: st.SearchStrategy[ClassValue] = intervals | strings | st.just(VARIOUS)


_names = st.sampled_from((*MACHINE_ATTRIBUTES, *EXTENSIONS))
machine_classes = st.builds(
    lambda count, said, lacking: MachineClass(
        count=count,
        attributes=tuple((name, said[name]) for name in sorted(said)),
        some_lack=tuple(name for name in sorted(said) if name in lacking),
    ),
    positive_amounts,
    st.dictionaries(_names, class_values, max_size=6),
    st.frozensets(_names, max_size=3),
)
vectors = st.lists(machine_classes, max_size=6).map(lambda classes: Vector(tuple(sorted(classes, key=sort_key))))
demands = st.lists(
    st.builds(
        DemandClass,
        st.builds(
            DemandKey,
            st.sampled_from(("cpus", "mem", "gpus", "free", "requirement", "policy", "other")),
            st.booleans(),
            counters,
            st.sampled_from(("", "x86_64", "arm")),
            st.sampled_from(("", "Linux")),
        ),
        st.builds(DemandSize, amounts, amounts, amounts, amounts),
    ),
    max_size=20,
).map(summed)
status_vectors = st.builds(
    StatusVector,
    kind=st.sampled_from(VectorKind),
    vector=vectors,
    period_ns=durations_ns,
    age_ns=durations_ns,
    hears=st.lists(system_ids, max_size=3).map(tuple),
    waiting=amounts,
    makes_room=st.booleans(),
    lets_go=st.booleans(),
    missing=st.lists(st.builds(MissingLink, module=system_ids, neighbor=system_ids, text=lines), max_size=3).map(tuple),
    counted=st.none() | st.booleans(),
    demand=demands,
    probe=st.builds(Probe, stamp=st.integers(1, 2**63 - 1), echo=durations_ns, held_ns=durations_ns)
    | st.just(NO_PROBE),
    behind=st.builds(
        LinkCosts,
        round_trip_ns=st.none() | st.integers(1, LONGEST_ROUND_TRIP_NS),
        throughput=st.none() | st.integers(1, HIGHEST_THROUGHPUT),
    ),
)

reasons = st.recursive(
    st.builds(Reason, module=system_ids, code=st.sampled_from(DenyCode), rule=lines, text=lines),
    lambda inner: st.builds(
        Reason, module=system_ids, code=st.sampled_from(DenyCode), hops=st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=6,
)
hellos = st.builds(
    Hello,
    system=system_ids,
    epoch=epochs,
    wire_versions=st.lists(st.integers(0, 2**32 - 1), max_size=4).map(tuple),
    release=lines,
    former=st.lists(epochs, max_size=3).map(tuple),
)
digests = st.binary(min_size=16, max_size=16)
trusts = st.builds(
    Trust,
    roots=st.lists(digests, max_size=3).map(tuple),
    vouchers=st.lists(digests, max_size=3).map(tuple),
    trusts_relays=st.booleans(),
)
splice_ends = st.builds(SpliceEnd, system=system_ids, ticket=tickets)
addresses = st.sampled_from(("", "localhost:1", "[::1]:65535"))
sched_requests = st.builds(
    SchedRequest,
    id=message_ids,
    search=search_ids,
    origin=system_ids,
    tdv=tdvs,
    requirement=unicode_texts,
    count=positive_amounts,
    hops_left=amounts,
    asks_left=amounts,
    remaining_ns=durations_ns,
    answers=st.none() | search_ids,
    trust=trusts,
    avoids=st.lists(digests, max_size=3).map(tuple),
    dialers=st.lists(digests, max_size=3).map(tuple),
    near=st.none() | claim_ids,
    lease_ns=durations_ns,
)
task_requests = st.builds(
    TaskRequest,
    id=message_ids,
    search=search_ids,
    requester=system_ids,
    wanting=unicode_texts,
    count=positive_amounts,
    hops_left=amounts,
    asks_left=amounts,
    remaining_ns=durations_ns,
    trust=trusts,
)
task_accepts = st.builds(TaskAccept, request=message_ids, count=positive_amounts, asks_left=amounts)
sched_accepts = st.builds(
    SchedAccept,
    request=message_ids,
    claim=claim_ids,
    address=addresses,
    ticket=tickets,
    places=positive_amounts,
    window=amounts,
    lease_ns=durations_ns,
    asks_left=amounts,
    server=st.none() | system_ids,
    hop_address=st.none() | addresses,
    hop_ticket=st.none() | tickets,
    trust=trusts,
    place=st.just(b"") | digests,
    is_foreign=st.booleans(),
).flatmap(
    lambda accept: st.builds(
        replace, st.just(accept), splice=st.none() if accept.hop_ticket is None else st.none() | splice_ends
    )
)
sched_denies = st.builds(
    SchedDeny, request=message_ids, reasons=st.lists(reasons, max_size=3).map(tuple), asks_left=amounts
)
task_denies = st.builds(
    TaskDeny, request=message_ids, reasons=st.lists(reasons, max_size=3).map(tuple), asks_left=amounts
)
_targets = st.sampled_from((".", "a/b", "nöthing", "./x//y", "x" * 4_096))
_output_names = st.sampled_from(("work/a b/c.txt", "work/\xa0"))
outputs = st.one_of(
    st.builds(
        Output,
        name=st.sampled_from(("stdout", "stderr", "work/a b/c.txt", "work/\xa0")),
        size_bytes=counters,
        is_executable=st.booleans(),
    ),
    st.builds(Output, name=_output_names, size_bytes=st.just(0), link_target=_targets),
    st.builds(Output, name=_output_names, size_bytes=st.just(0), is_folder=st.just(value=True)),
)
_used = st.none() | st.integers(0, USAGE_END - 1)
counted = st.builds(
    Counted,
    name=st.from_regex(COUNTED_NAME, fullmatch=True),
    numbers=st.lists(st.integers(0, HIGHEST_NUMBER), max_size=5, unique=True).map(tuple),
)
usages = st.builds(
    Usage, cpu_ns=_used, peak_memory_bytes=_used, written_bytes=_used, read_bytes=_used, suspended_ns=_used
)
attempt_statuses = st.builds(
    AttemptStatus,
    attempt=attempt_ids,
    state=st.sampled_from(TaskState),
    substate=st.none() | st.sampled_from(Substate),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    cause=st.sampled_from(("", "time_limit", "lost")),
    text=lines,
    ran_ns=durations_ns,
    usage=st.none() | usages,
    containment=st.none()
    | st.builds(
        Containment, isolation=st.sampled_from(("process", "sandbox")), lacks=st.sampled_from(("", "no cgroups"))
    ),
    assigned=st.lists(counted, max_size=KINDS).map(tuple),
    outputs=st.lists(outputs, max_size=2).map(tuple),
).filter(lambda one: one.state is not TaskState.FINISHED or one.exit_code is not None or one.signal is not None)
_attempts = st.lists(attempt_ids, max_size=3).map(tuple)
task_statuses = st.builds(
    TaskStatus,
    claim=claim_ids,
    attempts=st.lists(attempt_statuses, max_size=3).map(tuple),
    window=amounts,
    renewal=counters,
)
task_status_acks = st.builds(
    TaskStatusAck,
    claim=claim_ids,
    taken=_attempts,
    unbound=_attempts,
    renewal=counters,
    moving=_attempts,
    lease_ns=durations_ns,
)
control_messages: st.SearchStrategy[ControlMessage] = st.one_of(
    hellos,
    sched_requests,
    sched_accepts,
    sched_denies,
    task_requests,
    task_accepts,
    task_denies,
    task_statuses,
    task_status_acks,
    st.builds(TaskStatusQuery, claim=claim_ids, attempts=_attempts),
    st.builds(TaskKill, claim=claim_ids, attempts=_attempts, is_move=st.booleans()),
    st.builds(
        TaskRevoke,
        claim=claim_ids,
        attempts=_attempts,
        text=lines,
        answers=st.none() | search_ids,
        toward=st.none() | system_ids,
    ),
    st.builds(ClaimEnd, claim=claim_ids, is_forgotten=st.booleans()),
    st.just(SystemStatusQuery()),
    st.builds(Leave, text=lines, is_done=st.booleans(), is_sibling=st.booleans()),
    st.builds(Handover, number=st.integers(0, 2**63 - 1)),
    st.builds(HandoverDone, number=st.integers(0, 2**63 - 1)),
    st.builds(
        UsageReport,
        usages=st.lists(
            st.builds(
                ClaimUsage,
                claim=claim_ids,
                processor_ns=st.integers(0, 2**63 - 1),
                used_ns=st.integers(0, 2**63 - 1),
                is_final=st.booleans(),
            ),
            max_size=3,
        ).map(tuple),
    ),
    st.builds(UsageReportAck, claims=st.lists(claim_ids, max_size=3).map(tuple)),
    st.builds(CycleProbe, number=st.integers(0, 2**63 - 1), hops_left=st.integers(0, 32)),
    st.builds(
        SiblingRequest,
        address=addresses,
        siblings=st.lists(system_ids, max_size=3).map(tuple),
        assigned=st.lists(system_ids, max_size=3).map(tuple),
        most=st.integers(0, 256),
        refused=st.lists(system_ids, max_size=3).map(tuple),
    ),
    st.builds(
        SiblingAssignment,
        siblings=st.lists(
            st.builds(
                AssignedSibling,
                system=system_ids,
                address=addresses,
                roots=st.lists(st.binary(min_size=16, max_size=16), max_size=2).map(tuple),
            ),
            max_size=3,
        ).map(tuple),
        withdrawn=st.lists(system_ids, max_size=3).map(tuple),
    ),
    st.builds(SumsSettled, marks=st.lists(st.integers(0, 2**63 - 1), max_size=5).map(tuple)),
)

arguments = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
_variable_names = arguments.map(lambda text: text.replace("=", "") or "A")
hashes = st.binary(min_size=32, max_size=32)
_paths = st.sampled_from(("data", "a b/ü.txt", "a b/c", ".hidden", "x" * 255, "/".join(["deep"] * 800)))
_inputs = st.lists(
    st.one_of(
        st.builds(InputFile, name=_paths, sha256=hashes, size_bytes=counters, is_executable=st.booleans()),
        st.builds(InputFile, name=_paths, sha256=st.just(b""), size_bytes=st.just(0), link_target=_targets),
        st.builds(InputFile, name=_paths, sha256=st.just(b""), size_bytes=st.just(0), is_folder=st.just(value=True)),
    ),
    max_size=3,
    unique_by=lambda one: one.name,
)
commands = st.builds(
    Command,
    argv=st.lists(arguments, max_size=3).map(lambda rest: ("true", *rest)),
    env=st.lists(st.tuples(_variable_names, arguments), max_size=3).map(tuple),
    inputs=_inputs.map(tuple),
    outputs=st.lists(_paths, max_size=3).map(tuple),
    takes_stdin=st.booleans(),
    terminal=st.none() | st.builds(TerminalSize, rows=st.integers(1, LONGEST), columns=st.integers(1, LONGEST)),
)
task_transfers = st.builds(
    TaskTransfer,
    claim=claim_ids,
    ticket=tickets,
    tasks=st.lists(st.builds(BoundTask, attempt=attempt_ids, command=commands), max_size=3).map(tuple),
)
