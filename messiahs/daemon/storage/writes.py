"""What one transaction of the module's database writes."""

from collections.abc import Iterable
from dataclasses import dataclass

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.rows import RowKey, RowKind, SubmissionRow, key_of
from messiahs.core.model.ids import TaskId
from messiahs.trace.format.rows import encode_key, encode_row


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepOutput:
    """A small output of a task to store beside its rows, replacing that of an earlier attempt."""

    task: TaskId
    name: str
    body: bytes


Write = Store | Forget | KeepOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedWrites:
    """The final state of each row: within a transaction, nobody can read an earlier one."""

    stored: list[tuple[int, bytes, bytes]]
    forgotten: list[tuple[int, bytes, bytes]]
    """Kind, first and last key: members of an array that follow each other are one range.

    Finding the place of a key is slow beside rows of large arrays, which SQLite reads whole to compare their keys.
    """
    outputs: list[tuple[bytes, str, bytes]]
    submissions: list[tuple[SubmissionRow, int]]
    """Those among `stored`, with their stored sizes in bytes."""
    forgotten_submissions: list[TaskId]


def encoded_writes(writes: Iterable[Write]) -> EncodedWrites:
    """Encode what a transaction writes."""
    final = {place_of(write): write for write in writes}.values()
    rows = [(write.row, encode_row(write.row)) for write in final if isinstance(write, Store)]
    keys = [write.key for write in final if isinstance(write, Forget)]
    return EncodedWrites(
        stored=[encoded for _, encoded in rows],
        forgotten=_ranges(keys),
        outputs=[(*output_key(write), write.body) for write in final if isinstance(write, KeepOutput)],
        submissions=[(row, len(body)) for row, (_, _, body) in rows if isinstance(row, SubmissionRow)],
        forgotten_submissions=[task for kind, task in keys if kind is RowKind.SUBMISSION and isinstance(task, TaskId)],
    )


def _ranges(keys: Iterable[RowKey]) -> list[tuple[int, bytes, bytes]]:
    ranges: list[tuple[RowKey, RowKey]] = []
    for key in keys:
        if ranges and key == _next_member(ranges[-1][1]):
            ranges[-1] = (ranges[-1][0], key)
        else:
            ranges.append((key, key))
    return [(*encode_key(first), encode_key(last)[1]) for first, last in ranges]


def _next_member(key: RowKey) -> RowKey | None:
    """Return the key between which and this one there is none; None if this is not the key of a task."""
    kind, row_id = key
    if kind is not RowKind.TASK or not isinstance(row_id, TaskId):
        return None
    return kind, row_id._replace(member=row_id.member + 1)


def place_of(write: Write) -> RowKey | tuple[bytes, str]:
    """Return what a write replaces."""
    match write:
        case Store():
            return key_of(write.row)
        case Forget():
            return write.key
        case KeepOutput():
            return output_key(write)


def output_key(output: KeepOutput) -> tuple[bytes, str]:
    """Return the key under which an output is stored."""
    _, task = encode_key((RowKind.TASK, output.task))
    return task, output.name
