"""The statements of a `*.policytest` file as values: what a trial states, and how it lets time pass."""

from dataclasses import dataclass
from datetime import datetime

from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import Duration

Values = tuple[tuple[str, Value], ...]
"""Names, written without `$`, and their values."""

Wanted = tuple[tuple[str, Value | None], ...]
"""Names and their expected values; None: no value."""


@dataclass(frozen=True, slots=True)
class SetClock:
    """Set the local time."""

    moment: datetime


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass; statements remain in force."""

    duration_ns: Duration


@dataclass(frozen=True, slots=True)
class State:
    """Set attributes of one scope, in addition to earlier ones; those in `forgotten` become unset."""

    scope: str
    values: Values
    forgotten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Add live claims that hold `slots` slots for tasks with these attributes."""

    slots: int
    values: Values


@dataclass(frozen=True, slots=True)
class Use:
    """Add slot time used today by tasks with these attributes."""

    used_ns: Duration
    values: Values


@dataclass(frozen=True, slots=True)
class Below:
    """Add `count` machines with these attributes to the subtree of the own system."""

    count: int
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Add a candidate: attributes of its link, and classes of its machines."""

    name: str
    link: Values
    machines: tuple[Below, ...]


@dataclass(frozen=True, slots=True)
class NamedTask:
    """Add a task that competes with others for places."""

    name: str
    values: Values


@dataclass(frozen=True, slots=True)
class Members:
    """Set the number of neighbors that are already in the role in which the peer would join."""

    count: int


Statement = SetClock | Wait | State | Place | Use | Below | Rival | NamedTask | Members
