"""What one transaction of the module's database writes."""

from dataclasses import dataclass

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.rows import RowKey, RowKind, key_of
from messiahs.core.model.ids import TaskId
from messiahs.trace.format.rows import encode_key


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepOutput:
    """A small output of a task to store beside its rows, replacing that of an earlier attempt."""

    task: TaskId
    name: str
    body: bytes


Write = Store | Forget | KeepOutput


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
