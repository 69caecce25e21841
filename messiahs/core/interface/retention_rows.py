"""What is stored about tasks that are being forgotten, because they ended long ago."""

from dataclasses import dataclass

from messiahs.core.model.ids import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingRow:
    """A large array whose submission is forgotten already, and whose members are being forgotten."""

    id: TaskId
    members: int
