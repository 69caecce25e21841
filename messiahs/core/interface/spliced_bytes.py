"""What a module that passes connections on knows about them."""

from dataclasses import dataclass

from messiahs.core.model.ids import SystemId


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
