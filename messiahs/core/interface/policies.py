"""What the core needs from the other rooms and from its host, as Protocols; the host hands them in.

Mechanism stays apart from policy: the core asks, a policy answers, and neither knows the other's inside.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.predicates import Predicate
from messiahs.core.model.descriptions import SDV, TDV, Description
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.core.vectors.vectors import Vector


class Randomness(Protocol):
    """The one source of random numbers."""

    def bits(self, count: int, /) -> int:
        """Give a random integer of `count` bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one task of a shape takes, and what it requires of its machine."""

    slots: int
    mem_bytes: int
    disk_bytes: int
    requirement: Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A system that could be asked for places; `has_lost` says that tasks were lost there lately.

    `age_ns` is the age of the oldest part of its view.
    """

    system: SystemId
    relation: Relation
    view: Vector
    age_ns: int = 0
    has_lost: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """The policy has nothing against the tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The policy is against the tasks; with `is_final` for whoever could be asked through this module too."""

    code: DenyCode
    rule: str = ""
    text: str = ""
    is_final: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks for places: a neighbor, or with relation self a local user.

    `balance` is the processor time given to it less what it gave, in seconds; None where nobody counts it.
    """

    system: SystemId
    relation: Relation
    balance: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarTime:
    """An instant as an owner sees it: minutes of the local day, weekday from 1 (Monday), day of the month."""

    clock: int
    weekday: int
    day: int


Calendar = Callable[[Instant], CalendarTime]
"""Reads an instant as local time; the host knows the time zone, the core does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A live claim that was granted through this module into its subtree, and the slots that it takes."""

    tdv: TDV
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptQuery:
    """What a policy judges a request by.

    `here` is the own machine, None if the system has none; then what is asked of it holds if one class of
    `subtree`, the module's own U, could satisfy it. `wanted_slots` is what one more task takes.
    """

    tdv: TDV
    asker: Asker
    here: SDV | None
    subtree: Vector
    now: CalendarTime
    placed: tuple[Placed, ...] = ()
    wanted_slots: int = 1
    module: Description = field(default_factory=dict)
    """What the module knows of itself, with a machine or without: `tasks`, `waiting`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankQuery:
    """What a policy orders candidates by; `module` is what the module knows of itself, with a machine or without."""

    candidates: tuple[Candidate, ...]
    need: Need
    tdv: TDV
    here: SDV | None
    now: CalendarTime
    module: Description = field(default_factory=dict)


class Act(StrEnum):
    """What an owner may do to a task that runs on the owner's machine, the severest first."""

    KILL = "kill"
    VACATE = "vacate"
    MOVE = "move"
    SUSPEND = "suspend"
    RESUME = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery:
    """What a policy judges a task by that runs or waits here: its TDV and what is known of it, the machine, the time.

    What is not known is missing.
    """

    task: Description
    here: Description
    now: CalendarTime


class RunningRule(Protocol):
    """One rule about tasks that run here; `protecting.decide` counts its durations, all in nanoseconds."""

    @property
    def act(self) -> Act:
        """What is to be done."""

    @property
    def for_ns(self) -> int:
        """How long it must have been due without break."""

    @property
    def grace_ns(self) -> int | None:
        """How long a task has to end by itself, or its origin to find another place; None: nothing is said of it."""

    @property
    def then(self) -> Act:
        """What is to be done when the grace is over."""

    @property
    def rule(self) -> str:
        """The rule as it was written, on one line."""

    @property
    def text(self) -> str:
        """What others are told of the reason; it may be empty."""

    @property
    def reads_memory(self) -> bool:
        """Say whether it asks for the memory that the task uses, which is then measured."""

    @property
    def reads_waiting(self) -> bool:
        """Say whether it asks for the tasks that wait: then it may make room for one of them."""

    def is_due(self, query: RunningQuery, /) -> bool:
        """Say whether it wants its act now, whatever its `for` says; False for a task that it is not about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HereQuery:
    """What a policy judges the own system by.

    What is asked of `here` and is not known there holds, if the system has no machine, if one class of `subtree`, the
    module's own U, could satisfy it.
    """

    here: Description
    has_machine: bool
    subtree: Vector
    now: CalendarTime


class Asking(Protocol):
    """One rule by which a module asks others for tasks (MESSIAHS 5.3.2: receiver-initiated load balancing)."""

    @property
    def every_ns(self) -> int:
        """How often it is considered."""

    @property
    def wanting(self) -> str:
        """A predicate of the paper's language over the TDVs of the tasks that are wanted; the empty one wants all."""

    def is_wanted(self, query: HereQuery, /) -> bool:
        """Say whether to ask now."""


class Migrating(Protocol):
    """What a policy asks of others, and what it lets go to those that ask."""

    @property
    def asks(self) -> tuple[Asking, ...]:
        """When others are asked for tasks."""

    @property
    def keep_at_least(self) -> int:
        """How many of the tasks that wait are never offered, and as many of those that run."""

    @property
    def offers_running(self) -> bool:
        """Say whether tasks that run may go too; only if the policy says which."""

    @property
    def reads_memory(self) -> bool:
        """Say whether a rule about what is offered asks for the memory that a task uses, which is then measured."""

    @property
    def reads_waiting(self) -> bool:
        """Say whether a rule about what is offered asks for the tasks that wait and rank above the one that runs."""

    def offers(self, query: RunningQuery, /) -> bool:
        """Say whether a task may go to whoever asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrderQuery:
    """Tasks to be put in order: of each its TDV and what is known of it."""

    tasks: tuple[Description, ...]
    here: Description
    now: CalendarTime


class TaskOrder(Protocol):
    """In which order tasks get places."""

    @property
    def reads_memory(self) -> bool:
        """Say whether the order depends on the memory that a task uses, which is then measured."""

    def order(self, query: TaskOrderQuery, randomness: Randomness, /) -> tuple[int, ...]:
        """Give the positions of all tasks, that of the first to be served in front; equal ones stay in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinQuery:
    """A system that wants to become a neighbor: its name, what it would be, and how many there are already."""

    name: SystemId
    role: Relation
    members: int
    now: CalendarTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The durations that a policy decides, in nanoseconds."""

    update_period_ns: int = 2 * SECOND
    request_ns: int = 10 * SECOND
    lease_ns: int = 15 * MINUTE
    kill_grace_ns: int = 10 * SECOND
    status_ns: int = 5 * MINUTE
    """How long nothing may be heard of a claim before its executor is asked."""
    input_ns: int | None = None
    """How long a neighbor may be silent; None: three of the periods that it announced."""


class Policy(Protocol):
    """What an administrator decides (MESSIAHS 2: the policies define how a capability is used)."""

    @property
    def timeouts(self) -> Timeouts:
        """The policy's durations."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes that classes may split on, sorted."""

    @property
    def change_share(self) -> int:
        """How large a change of any number is worth a new vector, in 1/100 %; 0: only keys in other buckets are."""

    @property
    def running(self) -> tuple[RunningRule, ...]:
        """What may happen to tasks that run on the own machine, in the order of the file."""

    @property
    def migrating(self) -> Migrating:
        """What is asked of others, and offered to them."""

    @property
    def task_order(self) -> TaskOrder | None:
        """In which order tasks get places; None: first come, first served."""

    def accept(self, query: AcceptQuery, /) -> Accepted | Refused:
        """Judge tasks that somebody wants placed."""

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Say every rule that is against the tasks and the values found, for the owner alone; empty if none is."""

    def admits(self, query: JoinQuery, /) -> Accepted | Refused:
        """Judge a system that wants to join; without a rule, none may."""

    def rank(self, query: RankQuery, randomness: Randomness, /) -> tuple[SystemId, ...]:
        """Order those candidates that could hold a task, the likeliest first; the others are left out."""

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Give what the own machine says of itself to others."""

    def pass_on(self, vector: Vector, /) -> Vector:
        """Give what is passed on of what a child of the primary tree sent."""

    def reveal(self, vector: Vector, neighbor: Neighbor, /) -> Vector:
        """Give what a neighbor is told of a vector: less or coarser, never more."""

    def reveals_to(self, neighbor: Neighbor, /) -> bool:
        """Say whether a neighbor is told anything at all."""

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Give a value that is equal for neighbors to which `reveal` tells the same of the same vector."""

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Give the name that a neighbor sees in reasons in place of this system's and those behind it; empty: none."""
