"""The stored form of rows: keys that sort, bodies with a format number, and errors that say what to do."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import pytest

from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import AttemptStatus, Command, DenyCode, Reason, TaskState
from messiahs.core.interface.rows import (
    AttemptRow,
    CountersRow,
    GrantedClaimRow,
    HeldClaimRow,
    PassedClaimRow,
    Row,
    RowKind,
    TaskRow,
)
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.core.model.routes import Leg, Route
from messiahs.errors import StoreError, UnusableStateError
from messiahs.trace.format.rows import FORMAT, check_row, decode_row, encode_key, encode_row, member_range

BLAYS = SystemId("blays")
EPOCH = Epoch(2**64 - 1)
CLAIM = ClaimId(SystemId("leonardo"), Epoch(7), 5)
TASK = TaskId(BLAYS, EPOCH, 17, 3)
INNER = Reason(module=SystemId("xinu"), code=DenyCode.NO_CLASS)
FULL_TASK = TaskRow(
    id=TASK,
    state=TaskState.FINISHED,
    substate=None,
    attempt=2,
    claim=CLAIM,
    bound_at=Instant(5),
    result=AttemptStatus(attempt=AttemptId(TASK, 2), state=TaskState.FINISHED, exit_code=0),
    reasons=(Reason(module=BLAYS, code=DenyCode.NO_CAPACITY, text="full", hops=(INNER,)),),
    history=(HistoryEntry(at=Instant(1), event="bound", attempt=1, module="xinu"),),
)
GRANTED = GrantedClaimRow(
    id=CLAIM,
    origin=BLAYS,
    via=SystemId("xinu"),
    ticket=Ticket(b"\x00\xff" * 8),
    tdv=TDV((("cpus", 1), ("origin", "blays"), ("shift", -(2**63)), ("user", "ada"))),
    places=4,
    lease_ns=10,
    lease_until=Instant(2**62),
)
MAPPED = replace(GRANTED, account="physics", network="none")
ATTEMPT = AttemptRow(
    id=AttemptId(TASK, 1),
    claim=CLAIM,
    command=Command(argv=("echo", "é"), env=(("A", "b"),)),
    status=AttemptStatus(attempt=AttemptId(TASK, 1), state=TaskState.EXECUTING),
)


def task_key(task: TaskId) -> bytes:
    return encode_key((RowKind.TASK, task))[1]


@pytest.mark.parametrize("row", [CountersRow(submissions=3, claims=4), FULL_TASK, GRANTED, MAPPED, ATTEMPT])
def test_a_row_comes_back_as_it_was(row: Row) -> None:
    assert decode_row(*encode_row(row)) == row


def test_a_row_is_stored_under_the_key_that_forgets_it() -> None:
    assert encode_row(FULL_TASK)[:2] == encode_key((RowKind.TASK, TASK))


def test_decoded_ids_are_ids_and_not_plain_tuples() -> None:
    row = decode_row(*encode_row(ATTEMPT))
    assert isinstance(row, AttemptRow)
    assert str(row.id) == "blays.17.3#1"


def test_the_body_begins_with_the_format_number() -> None:
    assert encode_row(CountersRow())[2][0] == FORMAT


def test_keys_of_tasks_sort_as_their_numbers_do() -> None:
    tasks = [TaskId(BLAYS, EPOCH, number, member) for number in (1, 2, 9, 10, 256) for member in (0, 1, 255, 256)]
    assert sorted(tasks, key=task_key) == tasks


def test_a_name_that_is_a_prefix_of_another_is_outside_of_its_range() -> None:
    low, high = member_range(TaskId(SystemId("a"), Epoch(1), 1))
    assert not low <= task_key(TaskId(SystemId("aa"), Epoch(1), 1)) < high


def test_the_range_of_a_submission_holds_its_members_and_their_attempts() -> None:
    low, high = member_range(TaskId(BLAYS, EPOCH, 17))
    for member in (0, 1, 2**63):
        task = TaskId(BLAYS, EPOCH, 17, member)
        assert low <= task_key(task) < high
        assert low <= encode_key((RowKind.ATTEMPT, AttemptId(task, 2**63)))[1] < high


def test_the_range_of_a_submission_holds_nothing_else() -> None:
    low, high = member_range(TaskId(BLAYS, Epoch(4), 17))
    others = [
        TaskId(BLAYS, Epoch(4), 16, 2**63),
        TaskId(BLAYS, Epoch(4), 18),
        TaskId(BLAYS, Epoch(3), 17),
        TaskId(BLAYS, Epoch(5), 17),
        TaskId(SystemId("nyneve"), Epoch(4), 17),
    ]
    assert not [task for task in others if low <= task_key(task) < high]


def test_the_range_is_the_same_for_every_member() -> None:
    assert member_range(TASK) == member_range(TASK._replace(member=0))


def without_checksum(row: Row) -> tuple[int, bytes, bytes]:
    """Store a row as the release before did."""
    kind, key, body = encode_row(row)
    return kind, key, bytes((FORMAT - 1,)) + body[5:]


@pytest.mark.parametrize("row", [CountersRow(submissions=3, claims=4), FULL_TASK, GRANTED, ATTEMPT])
def test_a_row_of_the_release_before_is_read(row: Row) -> None:
    assert decode_row(*without_checksum(row)) == row


def test_claims_of_the_release_before_have_no_route_of_their_own() -> None:
    common = {"id": tuple(CLAIM), "tdv": {"pairs": []}, "ticket": bytes(16), "lease_ns": 5}
    held = {**common, "via": "xinu", "address": "leonardo:1", "requirement": "", "answered_at": 7}
    _, key = encode_key((RowKind.HELD_CLAIM, CLAIM))
    row = decode_row(RowKind.HELD_CLAIM, key, b"\x01" + msgspec.msgpack.encode(held))
    assert isinstance(row, HeldClaimRow)
    straight = Leg(system=CLAIM.executor, address="leonardo:1", ticket=Ticket(bytes(16)))
    assert (row.route, row.is_cut_off) == (Route(straight=straight, path=straight), False)
    passed = {"id": tuple(CLAIM), "tdv": {"pairs": []}, "toward_origin": "cs", "toward_executor": "xinu", "slots": 1}
    row = decode_row(RowKind.PASSED_CLAIM, key, b"\x01" + msgspec.msgpack.encode(passed))
    assert isinstance(row, PassedClaimRow)
    assert (row.route, row.ticket, row.dialers) == (None, None, ())


def test_a_claim_of_the_release_before_has_neither_account_nor_network() -> None:
    kind, key, body = encode_row(GRANTED)
    stored = msgspec.msgpack.decode(body[5:])
    del stored["account"], stored["network"]
    row = decode_row(kind, key, b"\x01" + msgspec.msgpack.encode(stored))
    assert row == GRANTED
    assert isinstance(row, GrantedClaimRow)
    assert (row.account, row.network) == ("", "")


def test_claims_come_back_with_their_routes() -> None:
    path = Leg(system=SystemId("xinu"), address="xinu:1", ticket=Ticket(b"x" * 16))
    straight = Leg(system=CLAIM.executor, address="leonardo:1", ticket=Ticket(b"l" * 16))
    passed = PassedClaimRow(
        id=CLAIM,
        toward_origin=BLAYS,
        toward_executor=SystemId("xinu"),
        tdv=GRANTED.tdv,
        slots=1,
        origin=BLAYS,
        ticket=Ticket(b"h" * 16),
        dialers=(b"d" * 16,),
        route=Route(straight=straight, path=path),
    )
    held = HeldClaimRow(
        id=CLAIM,
        via=path.system,
        address=straight.address,
        ticket=straight.ticket,
        lease_ns=5,
        tdv=GRANTED.tdv,
        requirement="",
        answered_at=Instant(1),
        path=path,
    )
    assert held.route == passed.route
    for row in (passed, held):
        assert decode_row(*encode_row(row)) == row


@pytest.mark.parametrize("row", [CountersRow(submissions=3, claims=4), FULL_TASK, GRANTED, ATTEMPT])
def test_every_flipped_bit_of_a_row_or_its_key_is_noticed(row: Row) -> None:
    kind, key, body = encode_row(row)
    for spoiled_body in flipped(body):
        with pytest.raises(UnusableStateError):
            decode_row(kind, key, spoiled_body)
    for spoiled_key in flipped(key):
        with pytest.raises(UnusableStateError, match="checksum"):
            check_row(kind, spoiled_key, body)


def flipped(content: bytes) -> Iterator[bytes]:
    for place in range(8 * len(content)):
        spoiled = bytearray(content)
        spoiled[place // 8] ^= 1 << place % 8
        yield bytes(spoiled)


def test_text_that_is_not_utf_8_is_reported_as_damage() -> None:
    kind, key, body = without_checksum(FULL_TASK)
    with pytest.raises(UnusableStateError, match="damaged"):
        decode_row(kind, key, body.replace(b"xinu", b"xin\xff"))


def test_a_row_of_a_newer_release_says_which_release_to_run() -> None:
    kind, key, body = encode_row(FULL_TASK)
    with pytest.raises(StoreError, match=rf"format {FORMAT + 1}.*run that release"):
        decode_row(kind, key, bytes((FORMAT + 1,)) + body[1:])


def test_a_kind_that_is_not_known_is_refused() -> None:
    _, key, body = without_checksum(FULL_TASK)
    with pytest.raises(StoreError, match="kind 99"):
        decode_row(99, key, body)


OLD = bytes((FORMAT - 1,))


@pytest.mark.parametrize("body", [b"", b"\x00", bytes((FORMAT,)), OLD, OLD + b"\xc1", OLD + bytes((0x80,))])
def test_a_damaged_row_says_what_to_do(body: bytes) -> None:
    with pytest.raises(StoreError, match=r"row of kind task is damaged .*restore"):
        decode_row(RowKind.TASK, task_key(TASK), body)


@pytest.mark.parametrize("encode", [encode_row, without_checksum])
def test_a_row_that_is_cut_off_anywhere_is_damaged(encode: Callable[[Row], tuple[int, bytes, bytes]]) -> None:
    kind, key, body = encode(FULL_TASK)
    for length in range(len(body)):
        with pytest.raises(StoreError):
            decode_row(kind, key, body[:length])


@pytest.mark.parametrize("encode", [encode_row, without_checksum])
def test_a_row_under_the_kind_of_another_is_damaged(encode: Callable[[Row], tuple[int, bytes, bytes]]) -> None:
    _, key, body = encode(FULL_TASK)
    with pytest.raises(StoreError, match="damaged"):
        decode_row(RowKind.ATTEMPT, key, body)


def test_reasons_nested_without_end_are_damage_and_not_a_crash() -> None:
    reason = bytes((0x83,)) + b"\xa6module\xa1a\xa4code\xa8no_class\xa4hops\x91"
    body = OLD + bytes((0x82,)) + b"\xa2id\x94\xa1a\x01\x01\x00\xa7reasons\x91" + reason * 100_000
    with pytest.raises(StoreError, match="damaged"):
        decode_row(RowKind.TASK, task_key(TASK), body)
