"""What the core asks a policy, and what it may answer, as values; who answers stands in parts.py.

Mechanism stays apart from policy: the core asks, a policy answers, and neither knows the other's inside.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from messiahs.core.interface.messages import DenyCode, StatusVector
from messiahs.core.interface.predicates import Predicate
from messiahs.core.model.descriptions import SDV, TDV, Description
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.indexed import IndexedVector

START = Instant(0)
"""When a question is asked for which the time does not matter; a module's own questions say `at` which instant."""


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
    view: IndexedVector
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
    subtree: IndexedVector
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
    at: Instant = START


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
    subtree: IndexedVector
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrderQuery:
    """Tasks to be put in order: of each its TDV and what is known of it."""

    tasks: tuple[Description, ...]
    here: Description
    now: CalendarTime
    at: Instant = START


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnChange:
    """What the own machine was last said to be, and what it is now; None: it has no machine."""

    before: SDV | None
    after: SDV | None
    keys: tuple[str, ...]
    at: Instant = START


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardChange:
    """What a neighbor said before, and what it says now; that may be the same."""

    neighbor: SystemId
    before: StatusVector
    after: StatusVector
    keys: tuple[str, ...]
    at: Instant = START


UpdateQuery = OwnChange | HeardChange
"""Something that neighbors hear at the end of the period at the latest: is it worth telling at once?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSource:
    """A neighbor behind which `waiting` tasks wait, or tasks run that may go (`lets_go`)."""

    system: SystemId
    relation: Relation
    waiting: int
    lets_go: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceQuery:
    """The neighbors that may be asked for tasks, in the order of the topology."""

    sources: tuple[TaskSource, ...]
    at: Instant = START


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationQuery:
    """Tasks that run here, that somebody asks for and that the `offer` rules let go; at most `wanted` of them go."""

    tasks: tuple[RunningQuery, ...]
    wanted: int
    at: Instant = START


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationQuery:
    """A request for `wanted` places, each for a task that asks for so many slots; `here` is what the machine has."""

    tdv: TDV
    asker: Asker
    slots: int
    wanted: int
    here: Description
    at: Instant = START


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """How many slots each task of a request gets (at least 1), and how many places are granted at most.

    What does not fit is not granted, whatever is said here.
    """

    slots: int
    places: int
