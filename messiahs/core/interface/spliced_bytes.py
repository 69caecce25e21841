"""What a module knows about bytes that pass through it, or are on their way to it."""

from dataclasses import dataclass

from messiahs.core.model.ids import ClaimId, SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesSpliced:
    """Bytes passed here, which this module cannot read, in connections of a claim between its two neighbors.

    `connections` of them are new since the last such event; `forth_bytes` went toward the executor, `back_bytes`
    toward the origin.
    """

    toward_origin: SystemId
    toward_executor: SystemId
    connections: int
    forth_bytes: int
    back_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputsMoving:
    """Large inputs of a claim's tasks are being sent or received; the tasks follow them."""

    claim: ClaimId


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSent:
    """All files of a stream to `to` were stored there: `size_bytes` in `duration_ns`, for tasks of a claim."""

    claim: ClaimId
    to: SystemId
    size_bytes: int
    duration_ns: int
