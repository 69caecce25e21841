"""The stored form of the core's rows: a number for the table, a key that sorts, and a body.

A body is one format number, a checksum (CRC-32 of kind, key and row) and the row in MessagePack, with field names, so
that a release can add fields that have a default. The checksum is verified before a row is used: without it, two of
five flipped bits would be read as another row. Format 1 had none, and can still be read. A key is the system's name
with its length, then the numbers of the id with the highest byte first: the rows of a submission are adjacent, in the
order of their numbers.
"""

import zlib
from functools import cache
from typing import Final

import msgspec

from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.ledger_rows import ClaimBookRow, ConsumerRow, NeighborAccountRow, UsageRow
from messiahs.core.interface.lending import LendRow
from messiahs.core.interface.membership_rows import DrainRow, HandoverRow, MemberRow, RemovedRow, ShutOffRow
from messiahs.core.interface.notifications import NotificationRow
from messiahs.core.interface.retention_rows import ForgettingRow
from messiahs.core.interface.rows import (
    AttemptRow,
    CountersRow,
    GrantedClaimRow,
    HeldClaimRow,
    HiddenSubmissionRow,
    PassedClaimRow,
    RememberedRow,
    Row,
    RowId,
    RowKey,
    RowKind,
    SubmissionRow,
    TaskRow,
    key_of,
)
from messiahs.core.model.ids import AttemptId, ClaimId, TaskId
from messiahs.errors import UnusableStateError

FORMAT: Final = 2
_WITHOUT_CHECKSUM: Final = 1
_CHECKSUM_BYTES: Final = 4

_NUMBER_BYTES: Final = 8
_LENGTH_BYTES: Final = 2


def encode_row(row: Row) -> tuple[int, bytes, bytes]:
    """Return kind, key and body under which a row is stored."""
    kind, key = encode_key(key_of(row))
    content = _encoder().encode(row)
    return kind, key, bytes((FORMAT,)) + _checksum(kind, key, content) + content


def encode_key(key: RowKey) -> tuple[int, bytes]:
    """Return kind and key of a row; keys of one kind and system sort by epoch, then by their numbers."""
    kind, row_id = key
    return int(kind), _id_bytes(row_id)


def decode_row(kind: int, key: bytes, body: bytes, /) -> Row:
    """Return the row of a stored body.

    Raises `UnusableStateError`, with a remedy, for a row of a newer release or a damaged one.
    """
    content = _checked_content(kind, key, body)
    try:
        decoder = _decoder(RowKind(kind))
    except ValueError as error:
        raise UnusableStateError(
            f"a stored row is of kind {kind}, which is unknown to this release: "
            "run the release that wrote this state, or restore the state directory from a backup"
        ) from error
    try:
        return decoder.decode(content)
    # Text that is not UTF-8 is a ValueError.
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise _damaged(kind, str(error)) from error


def check_row(kind: int, key: bytes, body: bytes, /) -> None:
    """Raise as `decode_row` does if the checksum of a row is wrong."""
    _checked_content(kind, key, body)


def checksum(name: bytes, content: bytes) -> bytes:
    """Return the CRC-32 of a name and a content."""
    return zlib.crc32(content, zlib.crc32(name)).to_bytes(_CHECKSUM_BYTES, "big")


def _checksum(kind: int, key: bytes, content: bytes) -> bytes:
    # All rows are verified at every start: calling `checksum` would copy the key.
    return zlib.crc32(content, zlib.crc32(key, kind)).to_bytes(_CHECKSUM_BYTES, "big")


def _checked_content(kind: int, key: bytes, body: bytes) -> bytes:
    found = body[0] if body else None
    if found == FORMAT:
        content = body[1 + _CHECKSUM_BYTES :]
        if _checksum(kind, key, content) != body[1 : 1 + _CHECKSUM_BYTES]:
            raise _damaged(kind, "its checksum is wrong")
        return content
    if found == _WITHOUT_CHECKSUM:
        return body[1:]
    if found is not None and found > FORMAT:
        raise UnusableStateError(
            f"a stored row has format {found}, and this release reads up to {FORMAT}: "
            "a newer release wrote this state, so run that release (or one after it)"
        )
    raise _damaged(kind, "no known format number in front")


def _damaged(kind: int, text: str) -> UnusableStateError:
    name = {int(each): each.name.lower() for each in RowKind}.get(kind, str(kind))
    return UnusableStateError(
        f"a stored row of kind {name} is damaged ({text}): "
        "restore the state directory from a backup, or move it away to start anew"
    )


def member_range(task: TaskId) -> tuple[bytes, bytes]:
    """Return `low` and `high` such that exactly the keys of one submission have low <= key < high.

    Among rows of tasks and submissions these are the submission and its members; among attempts, those of all of its
    tasks. The `member` of `task` is ignored.
    """
    prefix = _issuer_key(task.system, task.epoch) + _number_bytes(task.number)
    return prefix, prefix + b"\xff" * (2 * _NUMBER_BYTES + 1)


def _id_bytes(row_id: RowId) -> bytes:
    match row_id:
        case None:
            return b""
        case str():
            return row_id.encode()
        case int():
            return _number_bytes(row_id)
        case AttemptId():
            return _id_bytes(row_id.task) + _number_bytes(row_id.number)
        case TaskId():
            owner = _issuer_key(row_id.system, row_id.epoch)
            return owner + _number_bytes(row_id.number) + _number_bytes(row_id.member)
        case ClaimId():
            return _issuer_key(row_id.executor, row_id.epoch) + _number_bytes(row_id.number)


def _issuer_key(system: str, epoch: int) -> bytes:
    name = system.encode()
    return len(name).to_bytes(_LENGTH_BYTES, "big") + name + _number_bytes(epoch)


def _number_bytes(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


@cache
def _encoder() -> msgspec.msgpack.Encoder:
    return msgspec.msgpack.Encoder()


@cache
def _decoder(kind: RowKind) -> msgspec.msgpack.Decoder[Row]:
    """Return the decoder of one table; created on first use, because that takes milliseconds."""
    match kind:
        case RowKind.COUNTERS:
            return msgspec.msgpack.Decoder(CountersRow)
        case RowKind.SUBMISSION:
            return msgspec.msgpack.Decoder(SubmissionRow)
        case RowKind.TASK:
            return msgspec.msgpack.Decoder(TaskRow)
        case RowKind.HELD_CLAIM:
            return msgspec.msgpack.Decoder(HeldClaimRow)
        case RowKind.GRANTED_CLAIM:
            return msgspec.msgpack.Decoder(GrantedClaimRow)
        case RowKind.PASSED_CLAIM:
            return msgspec.msgpack.Decoder(PassedClaimRow)
        case RowKind.ATTEMPT:
            return msgspec.msgpack.Decoder(AttemptRow)
        case RowKind.REMEMBERED:
            return msgspec.msgpack.Decoder(RememberedRow)
        case RowKind.HIDDEN_SUBMISSION:
            return msgspec.msgpack.Decoder(HiddenSubmissionRow)
        case RowKind.SHUT_OFF:
            return msgspec.msgpack.Decoder(ShutOffRow)
        case RowKind.MEMBER:
            return msgspec.msgpack.Decoder(MemberRow)
        case RowKind.REMOVED:
            return msgspec.msgpack.Decoder(RemovedRow)
        case RowKind.DRAIN:
            return msgspec.msgpack.Decoder(DrainRow)
        case RowKind.LENDING:
            return msgspec.msgpack.Decoder(LendRow)
        case RowKind.HANDOVER:
            return msgspec.msgpack.Decoder(HandoverRow)
        case RowKind.OWN_BOOK | RowKind.OTHERS_BOOK:
            return msgspec.msgpack.Decoder(ClaimBookRow)
        case RowKind.USAGE:
            return msgspec.msgpack.Decoder(UsageRow)
        case RowKind.CONSUMER:
            return msgspec.msgpack.Decoder(ConsumerRow)
        case RowKind.NEIGHBOR_ACCOUNT:
            return msgspec.msgpack.Decoder(NeighborAccountRow)
        case RowKind.FORGETTING:
            return msgspec.msgpack.Decoder(ForgettingRow)
        case RowKind.NOTIFICATION | RowKind.NOTIFIED:
            return msgspec.msgpack.Decoder(NotificationRow)
        case RowKind.OPEN_AUDIT | RowKind.AUDIT:
            return msgspec.msgpack.Decoder(AuditRow)
