"""Every row comes back from its stored form, and stored keys sort as ids do."""

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.ledger_rows import ClaimBookRow, ConsumerRow, NeighborAccountRow, Parties, UsageRow
from messiahs.core.interface.lending import LendRow
from messiahs.core.interface.membership_rows import (
    DrainRow,
    HandoverRow,
    MemberRow,
    RemovalCause,
    RemovedRow,
    ShutOffRow,
)
from messiahs.core.interface.messages import AttemptStatus, Command, DenyCode, Reason, Substate, TaskState
from messiahs.core.interface.notifications import Notification, NotificationRow
from messiahs.core.interface.retention_rows import ForgettingRow
from messiahs.core.interface.rows import (
    AttemptRow,
    CountersRow,
    GrantedClaimRow,
    HeldClaimRow,
    HiddenSubmissionRow,
    PassedClaimRow,
    Row,
    RowKind,
    SubmissionRow,
    TaskRow,
    key_of,
)
from messiahs.core.model.attributes import Value
from messiahs.core.model.decay import Decaying
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, Epoch, SystemId, TaskId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.routes import Leg, Route, Splice
from messiahs.core.model.task_files import Output
from messiahs.core.model.usage import Containment, Usage
from messiahs.trace.format.rows import decode_row, encode_key, encode_row

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
COUNT = st.integers(0, 2**63 - 1)
INSTANT = COUNT.map(Instant)
SYSTEM = st.from_regex(r"[a-z0-9-]{1,8}(\.[a-z0-9-]{1,4})?", fullmatch=True).map(SystemId)
EPOCH = st.integers(0, 2**64 - 1).map(Epoch)
TASK_ID = st.builds(TaskId, SYSTEM, EPOCH, COUNT, COUNT)
ATTEMPT_ID = st.builds(AttemptId, TASK_ID, COUNT)
CLAIM_ID = st.builds(ClaimId, SYSTEM, EPOCH, COUNT)
PARTIES = st.builds(Parties, source=SYSTEM, sink=SYSTEM, origin=SYSTEM, user=TEXT, account=TEXT)
DECAYING = st.builds(Decaying, amount=COUNT, at=INSTANT)
TICKET = st.binary(min_size=16, max_size=16).map(Ticket)
SPLICE = st.builds(Splice, hop=SYSTEM, address=TEXT, claim=CLAIM_ID, ticket=TICKET)
LEG = st.builds(Leg, system=SYSTEM, address=TEXT | SPLICE, ticket=TICKET)
VALUE: st.SearchStrategy[Value] = st.integers(-(2**63), 2**63 - 1) | TEXT
TDVS = st.dictionaries(TEXT, VALUE, max_size=4).map(lambda said: TDV(sorted_pairs(said)))
COMMAND = st.builds(
    Command,
    argv=st.lists(TEXT, max_size=3).map(tuple),
    env=st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple),
)
REASON = st.recursive(
    st.builds(Reason, module=SYSTEM, code=st.sampled_from(DenyCode), rule=TEXT, text=TEXT, hops=st.just(())),
    lambda inner: st.builds(
        Reason, module=SYSTEM, code=st.sampled_from(DenyCode), hops=st.lists(inner, max_size=2).map(tuple)
    ),
    max_leaves=4,
)
STATUS = st.builds(
    AttemptStatus,
    attempt=ATTEMPT_ID,
    state=st.sampled_from(TaskState),
    substate=st.none() | st.sampled_from(Substate),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    cause=TEXT,
    text=TEXT,
    ran_ns=COUNT,
    usage=st.none() | st.builds(Usage, cpu_ns=st.none() | COUNT, peak_memory_bytes=st.none() | COUNT),
    containment=st.none() | st.builds(Containment, isolation=TEXT, lacks=TEXT),
    outputs=st.lists(st.builds(Output, name=TEXT, size_bytes=COUNT), max_size=2).map(tuple),
)
HISTORY = st.builds(HistoryEntry, at=INSTANT, event=TEXT, attempt=COUNT, module=TEXT)
ROW: st.SearchStrategy[Row] = st.one_of(
    st.builds(CountersRow, submissions=COUNT, claims=COUNT),
    st.builds(
        SubmissionRow,
        id=TASK_ID,
        key=TEXT.map(ClientKey),
        tdv=TDVS,
        requirement=TEXT,
        command=COMMAND,
        members=COUNT,
        submitted_at=INSTANT,
        name=TEXT,
        retries=COUNT,
        waits=st.booleans(),
        deadline_at=st.none() | INSTANT,
    ),
    st.builds(
        TaskRow,
        id=TASK_ID,
        state=st.sampled_from(TaskState),
        substate=st.none() | st.sampled_from(Substate),
        attempt=COUNT,
        claim=st.none() | CLAIM_ID,
        bound_at=st.none() | INSTANT,
        started_at=st.none() | INSTANT,
        ended_at=st.none() | INSTANT,
        executed_on=TEXT,
        failures=COUNT,
        is_cancelled=st.booleans(),
        result=st.none() | STATUS,
        reasons=st.lists(REASON, max_size=2).map(tuple),
        history=st.lists(HISTORY, max_size=2).map(tuple),
    ),
    st.builds(
        HeldClaimRow,
        id=CLAIM_ID,
        via=SYSTEM,
        address=TEXT,
        ticket=TICKET,
        lease_ns=COUNT,
        tdv=TDVS,
        requirement=TEXT,
        answered_at=INSTANT,
    ),
    st.builds(
        GrantedClaimRow,
        id=CLAIM_ID,
        origin=SYSTEM,
        via=SYSTEM,
        ticket=TICKET,
        tdv=TDVS,
        places=COUNT,
        lease_ns=COUNT,
        lease_until=INSTANT,
    ),
    st.builds(
        PassedClaimRow,
        id=CLAIM_ID,
        toward_origin=SYSTEM,
        toward_executor=SYSTEM,
        tdv=TDVS,
        slots=COUNT,
        shown=st.none() | CLAIM_ID,
        hides_origin=st.booleans(),
        route=st.none() | st.builds(Route, straight=LEG, path=LEG),
        is_spliced=st.booleans(),
        is_anchored=st.booleans(),
    ),
    st.builds(HiddenSubmissionRow, id=TASK_ID, shown=TASK_ID, claims=st.lists(CLAIM_ID, max_size=3).map(tuple)),
    st.builds(AttemptRow, id=ATTEMPT_ID, claim=CLAIM_ID, command=COMMAND, status=STATUS, is_withheld=st.booleans()),
    st.builds(ShutOffRow, system=SYSTEM, since=INSTANT, text=TEXT),
    st.builds(
        MemberRow,
        neighbor=st.builds(Neighbor, system=SYSTEM, is_child=st.booleans()),
        since=INSTANT,
        address=TEXT,
        is_by_file=st.booleans(),
    ),
    st.builds(
        RemovedRow, system=SYSTEM, since=INSTANT, text=TEXT, is_ended=st.booleans(), cause=st.sampled_from(RemovalCause)
    ),
    st.builds(DrainRow, since=INSTANT, deadline=st.none() | INSTANT, text=TEXT),
    st.builds(LendRow, is_on=st.booleans(), since=INSTANT, until=st.none() | INSTANT, by=TEXT),
    st.builds(
        ClaimBookRow,
        id=CLAIM_ID,
        is_own=st.booleans(),
        parties=PARTIES,
        slots=COUNT,
        began_at=INSTANT,
        closed_at=st.none() | INSTANT,
        processor_ns=COUNT,
        used_ns=COUNT,
        shown=st.none() | CLAIM_ID,
    ),
    st.builds(ForgettingRow, id=TASK_ID, members=COUNT),
    st.builds(
        NotificationRow,
        id=TASK_ID,
        notification=st.builds(Notification, text=TEXT, uid=COUNT),
        user=TEXT,
        name=TEXT,
        state=st.sampled_from(TaskState),
        exit_code=st.none() | COUNT,
        submitted_at=INSTANT,
        ended_at=INSTANT,
        given_at=st.none() | INSTANT,
        problem=TEXT,
        output=TEXT,
    ),
    st.builds(UsageRow, number=COUNT, day=COUNT, parties=PARTIES, processor_ns=COUNT, used_ns=COUNT),
    st.builds(ConsumerRow, number=COUNT, sink=SYSTEM, origin=SYSTEM, user=TEXT, usage=DECAYING),
    st.builds(
        NeighborAccountRow,
        system=SYSTEM,
        since=INSTANT,
        usage=DECAYING,
        given_ns=COUNT,
        taken_ns=COUNT,
        given_used_ns=COUNT,
        taken_used_ns=COUNT,
    ),
    st.builds(
        HandoverRow,
        number=COUNT,
        old=st.none() | SYSTEM,
        new=SYSTEM,
        since=INSTANT,
        text=TEXT,
        is_done=st.booleans(),
        is_by_file=st.booleans(),
    ),
)


@given(ROW)
def test_a_row_survives_a_round_trip_under_its_key(row: Row) -> None:
    kind, key, body = encode_row(row)
    assert (kind, key) == encode_key(key_of(row))
    assert decode_row(kind, key, body) == row


@given(TASK_ID, st.lists(st.tuples(EPOCH, COUNT, COUNT), max_size=6))
def test_stored_keys_of_one_system_sort_as_the_ids_do(task: TaskId, numbers: list[tuple[Epoch, int, int]]) -> None:
    ids = [task, *(TaskId(task.system, *rest) for rest in numbers)]
    assert sorted(ids) == sorted(ids, key=lambda each: encode_key((RowKind.TASK, each))[1])


@given(TASK_ID, TASK_ID)
def test_two_ids_share_a_stored_key_only_if_they_are_the_same(one: TaskId, other: TaskId) -> None:
    same = encode_key((RowKind.TASK, one)) == encode_key((RowKind.TASK, other))
    assert same == (one == other)
