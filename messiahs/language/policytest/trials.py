"""The content of a `*.policytest` file: trials, whose steps state something, let time pass, or expect something.

Every `start` is an offset in the file, in characters from 0.
"""

from dataclasses import dataclass
from datetime import datetime

from messiahs.core.interface.policies import Act
from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import Duration
from messiahs.language.runtime.compiled_policy import CompiledPolicy

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


@dataclass(frozen=True, slots=True)
class ExpectAccept:
    """The task is accepted from the peer."""


@dataclass(frozen=True, slots=True)
class ExpectRefuse:
    """The task is refused: because a limit is reached, or with the given text, if any.

    The actual text may continue with `;` and the attributes that the task does not state.
    """

    text: str | None = None
    by_limit: bool = False


@dataclass(frozen=True, slots=True)
class ExpectSend:
    """The own machine advertises these values."""

    wanted: Wanted


@dataclass(frozen=True, slots=True)
class ExpectRank:
    """Exactly these candidates are asked, in this order; or the named tasks get places in this order."""

    names: tuple[str, ...]
    of_tasks: bool = False


@dataclass(frozen=True, slots=True)
class ExpectActs:
    """Exactly these acts were done to the task, in this order, since its start or the last such expectation."""

    acts: tuple[Act, ...]


@dataclass(frozen=True, slots=True)
class ExpectReveal:
    """The peer receives these values for the machines below: each value in a class, None in no class; or nothing."""

    wanted: Wanted
    name: str | None = None
    is_nothing: bool = False


@dataclass(frozen=True, slots=True)
class ExpectOffer:
    """The rules offer the task to systems that ask for tasks, or keep it."""

    is_offered: bool


@dataclass(frozen=True, slots=True)
class ExpectAsk:
    """Other systems are asked for tasks, or not."""

    is_asking: bool


@dataclass(frozen=True, slots=True)
class ExpectEntry:
    """The peer is admitted in the role that it wants, or not."""

    is_admitted: bool


Expectation = (
    ExpectAccept
    | ExpectRefuse
    | ExpectSend
    | ExpectRank
    | ExpectActs
    | ExpectReveal
    | ExpectOffer
    | ExpectAsk
    | ExpectEntry
)
Statement = SetClock | Wait | State | Place | Below | Rival | NamedTask | Members


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement of a trial; `text` is on one line."""

    start: int
    text: str
    what: Statement | Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A test of a policy, including the statements before it that apply to every test."""

    name: str
    start: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFile:
    """The tested policy, its name in the file, and the trials in order."""

    policy_name: str
    policy: CompiledPolicy
    trials: tuple[Trial, ...]
