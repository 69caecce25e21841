"""The stored form of the core's rows: a number for the table, a key that sorts, and a body.

A body is one format number and then the row in MessagePack, by names of fields, so that a release can add fields that
have a default. A key is the system's name with its length, then the numbers of the id with the highest byte first:
rows of one submission lie side by side, in the order of their numbers.
"""

from functools import cache
from typing import Final

import msgspec

from messiahs.core.ids import AttemptId, ClaimId, TaskId
from messiahs.core.rows import (
    AttemptRow,
    CountersRow,
    GrantedClaimRow,
    HeldClaimRow,
    PassedClaimRow,
    Row,
    RowId,
    RowKey,
    RowKind,
    SubmissionRow,
    TaskRow,
    key_of,
)
from messiahs.errors import UnusableStateError

FORMAT: Final = 1

_NUMBER_BYTES: Final = 8
_LENGTH_BYTES: Final = 2


def encode_row(row: Row) -> tuple[int, bytes, bytes]:
    """Give kind, key and body under which a row is stored."""
    kind, key = encode_key(key_of(row))
    return kind, key, bytes((FORMAT,)) + _encoder().encode(row)


def encode_key(key: RowKey) -> tuple[int, bytes]:
    """Give kind and key of a row; keys of one kind and system sort by epoch, then as their numbers do."""
    kind, row_id = key
    return int(kind), _id_bytes(row_id)


def decode_row(kind: int, body: bytes) -> Row:
    """Give the row of a stored body.

    An `UnusableStateError` says that a newer release wrote it, or that it is damaged, and what to do then.
    """
    if body[:1] > bytes((FORMAT,)):
        raise UnusableStateError(
            f"a stored row has format {body[0]}, and this release reads up to {FORMAT}: "
            "a newer release wrote this state, so run that release (or one after it)"
        )
    try:
        decoder = _decoder(RowKind(kind))
    except ValueError as error:
        raise UnusableStateError(
            f"a stored row is of kind {kind}, which this release does not know: "
            "run the release that wrote this state, or restore the state directory from a backup"
        ) from error
    try:
        if body[:1] != bytes((FORMAT,)):
            raise msgspec.DecodeError("no known format number in front")
        return decoder.decode(body[1:])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnusableStateError(
            f"a stored row of kind {RowKind(kind).name.lower()} is damaged ({error}): "
            "restore the state directory from a backup, or move it away to start anew"
        ) from error


def member_range(task: TaskId) -> tuple[bytes, bytes]:
    """Give `low` and `high` so that all of a submission has keys with low <= key < high, and nothing else does.

    Among rows of tasks and submissions these are the submission and its members; among attempts, those of all of its
    tasks. The `member` of `task` does not matter.
    """
    prefix = _owner_bytes(task.system, task.epoch) + _number_bytes(task.number)
    return prefix, prefix + b"\xff" * (2 * _NUMBER_BYTES + 1)


def _id_bytes(row_id: RowId) -> bytes:
    match row_id:
        case None:
            return b""
        case AttemptId():
            return _id_bytes(row_id.task) + _number_bytes(row_id.number)
        case TaskId():
            owner = _owner_bytes(row_id.system, row_id.epoch)
            return owner + _number_bytes(row_id.number) + _number_bytes(row_id.member)
        case ClaimId():
            return _owner_bytes(row_id.executor, row_id.epoch) + _number_bytes(row_id.number)


def _owner_bytes(system: str, epoch: int) -> bytes:
    name = system.encode()
    return len(name).to_bytes(_LENGTH_BYTES, "big") + name + _number_bytes(epoch)


def _number_bytes(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


@cache
def _encoder() -> msgspec.msgpack.Encoder:
    return msgspec.msgpack.Encoder()


@cache
def _decoder(kind: RowKind) -> msgspec.msgpack.Decoder[Row]:
    """Give the decoder of one table; it is made when it is first needed, because that takes milliseconds."""
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
