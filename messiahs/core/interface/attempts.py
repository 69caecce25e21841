"""What a back end reports about attempts (MESSIAHS 5.3.3). Starters load this module, so it imports no other events."""

from dataclasses import dataclass

from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.task_files import Output
from messiahs.core.model.usage import Containment, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted:
    """The executor back end spawned an attempt."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """An attempt has ended, and none of its processes runs any more.

    Either it exited (`exit_code`), or a signal ended it (`signal`), or neither is set and `cause` is the reason why it
    never ran or was ended.
    """

    attempt: AttemptId
    exit_code: int | None = None
    signal: int | None = None
    cause: Cause = Cause.NONE
    text: str = ""
    ran_ns: int = 0
    usage: Usage | None = None
    containment: Containment | None = None
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptsMeasured:
    """The back end measured the memory used by attempts, in bytes; attempts that have ended meanwhile are omitted."""

    memory: tuple[tuple[AttemptId, int], ...]
