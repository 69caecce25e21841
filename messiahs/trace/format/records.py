"""One step of a module: its event, the values drawn from ports, and the resulting actions (MESSIAHS 6.1)."""

from dataclasses import dataclass
from functools import cache

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import Event
from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.instants import Instant
from messiahs.core.recovery import Remains
from messiahs.core.state.module import ModuleState
from messiahs.trace.format.kinds import Kinds, kinds_in


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomBits:
    """A draw of `count` bits; `number` has the highest byte first."""

    count: int
    number: bytes


Drawn = RandomBits | CalendarTime
"""Values from ports that are not functions of the input of a step: random bits, and the local time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One step at an instant: the start of a module, an event, or (None) a timeout that fired.

    `drawn` is in the order of the draws. If the core raised an exception, `raised` is its text and there are no
    actions.
    """

    at: Instant
    subject: Remains | Event | None
    drawn: tuple[Drawn, ...]
    actions: tuple[Action, ...]
    raised: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of all frames of a segment."""

    state: ModuleState
    record: Record


@cache
def contents() -> Kinds:
    """Return every type that may occur in a trace."""
    return kinds_in(Contents)
