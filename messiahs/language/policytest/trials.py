"""What a `*.policytest` file says: trials, each of steps that state something, let time pass, or expect something.

Every `start` is where in the file that stands, counted in characters from 0.
"""

from dataclasses import dataclass
from datetime import datetime

from messiahs.core.interface.policies import Act
from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import Duration
from messiahs.language.runtime.compiled_policy import CompiledPolicy

Values = tuple[tuple[str, Value], ...]
"""Names, written without `$`, and what is said of them."""

Wanted = tuple[tuple[str, Value | None], ...]
"""Names and what must be said of them; None: nothing."""


@dataclass(frozen=True, slots=True)
class SetClock:
    """From here on it is this local time."""

    moment: datetime


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes, and what was stated stays so."""

    duration_ns: Duration


@dataclass(frozen=True, slots=True)
class State:
    """Something is stated of one scope, beside what was stated of it before; `forgotten` is not stated any more."""

    scope: str
    values: Values
    forgotten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Live claims hold so many slots more for tasks that state this."""

    slots: int
    values: Values


@dataclass(frozen=True, slots=True)
class Below:
    """The own system and those below it have so many machines more that say this."""

    count: int
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A system could be asked: what is known of the link with it, and classes of its machines."""

    name: str
    link: Values
    machines: tuple[Below, ...]


@dataclass(frozen=True, slots=True)
class NamedTask:
    """A task that wants a place before or after others."""

    name: str
    values: Values


@dataclass(frozen=True, slots=True)
class Members:
    """There are so many neighbors already in the role in which the peer would join."""

    count: int


@dataclass(frozen=True, slots=True)
class ExpectAccept:
    """The task is accepted from the peer."""


@dataclass(frozen=True, slots=True)
class ExpectRefuse:
    """The task is refused, because a limit is reached, or with this text if one is given.

    Behind the text and a `;` may stand what the task does not state: that is told beside every reason.
    """

    text: str | None = None
    by_limit: bool = False


@dataclass(frozen=True, slots=True)
class ExpectSend:
    """The own machine says this of itself to others."""

    wanted: Wanted


@dataclass(frozen=True, slots=True)
class ExpectRank:
    """The candidates are asked in this order, and no others; or the named tasks get places in this order."""

    names: tuple[str, ...]
    of_tasks: bool = False


@dataclass(frozen=True, slots=True)
class ExpectActs:
    """Since the task began, or since acts were expected last, exactly these were done to it, in this order."""

    acts: tuple[Act, ...]


@dataclass(frozen=True, slots=True)
class ExpectReveal:
    """The peer is told this of the machines below: each value by a class, None by no class; or nothing at all."""

    wanted: Wanted
    name: str | None = None
    is_nothing: bool = False


@dataclass(frozen=True, slots=True)
class ExpectOffer:
    """The rules let the task go to whoever asks for it, or they keep it."""

    is_offered: bool


@dataclass(frozen=True, slots=True)
class ExpectAsk:
    """Others are asked for tasks, or not."""

    is_asking: bool


@dataclass(frozen=True, slots=True)
class ExpectEntry:
    """The peer may become what it would be, or not."""

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
    """One statement of a trial, as it was written on one line."""

    start: int
    text: str
    what: Statement | Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A test of a policy, with what the file states before it for every test."""

    name: str
    start: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFile:
    """The policy that is tried, by the name that the file gives for it, and the trials in their order."""

    policy_name: str
    policy: CompiledPolicy
    trials: tuple[Trial, ...]
