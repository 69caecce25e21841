"""The queries of the core to a policy, and the possible answers, as values; parts.py has the parts that answer.

Mechanism stays apart from policy: the core asks, a policy answers, and neither depends on the other's implementation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from messiahs.core.interface.limits import ASKS, HOPS
from messiahs.core.interface.messages import DenyCode, StatusVector
from messiahs.core.interface.predicates import Predicate
from messiahs.core.model.counted import Uses
from messiahs.core.model.descriptions import SDV, TDV, Description, Pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, Instant
from messiahs.core.model.link_costs import UNKNOWN_COSTS, LinkCosts
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.indexed import IndexedVector

START = Instant(0)
"""The instant of queries for which the time does not matter; a module's own queries set `at`."""


class Randomness(Protocol):
    """The one source of random numbers."""

    def bits(self, count: int, /) -> int:
        """Return a random integer of `count` bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The resources that one task of a shape takes, and its requirement for the machine."""

    slots: int
    mem_bytes: int
    disk_bytes: int
    requirement: Predicate
    uses: Uses = ()
    """Counted things that it takes, on a machine that counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A system that could be asked for places; `has_lost`: tasks were lost there recently, or such tasks denied.

    `age_ns` is the age of the oldest part of its view. `balance` and `history` are as those of an `Asker`. `costs` are
    those of the path to the nearest machines behind it.
    """

    system: SystemId
    relation: Relation
    view: IndexedVector
    age_ns: int = 0
    has_lost: bool = False
    balance: int | None = None
    history: Pairs = ()
    costs: LinkCosts = UNKNOWN_COSTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The policy accepts the tasks; on the own machine they run as the local `account`. Empty: as tasks usually do.

    They reach the `network` at most there, which is one of `NETWORKS`; empty: the one that the machine gives.
    """

    account: str = ""
    network: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The policy refuses the tasks; with `is_final` also for all systems that could be asked through this module."""

    code: DenyCode
    rule: str = ""
    text: str = ""
    is_final: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The requester of places: a neighbor, or with relation self a local user.

    `balance` is the processor time given to it, less the time it gave, in seconds; None where that is not counted.
    `history` has what this module knows of the past of its attributes, as far as the policy keeps it, and `costs` what
    it has measured of the link with it.
    """

    system: SystemId
    relation: Relation
    balance: int | None = None
    history: Pairs = ()
    costs: LinkCosts = UNKNOWN_COSTS


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarTime:
    """An instant in local time: minutes of the day, and the date in days since 1970-01-01."""

    clock: int
    date: int


Calendar = Callable[[Instant], CalendarTime]
"""Converts an instant to local time; the host knows the time zone, the core does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A live claim that was granted through this module into its subtree, and the slots that it takes."""

    tdv: TDV
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Slot time used today (UTC) on the own machine and those of children, by one user behind the neighbor `sink`.

    It is in nanoseconds. `sink` is the own system for own users. Without a user: by further users of the day together.
    """

    sink: SystemId
    origin: SystemId
    user: str
    account: str
    used_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptQuery:
    """The facts on which a policy judges a request.

    `here` is the own machine, None if the system has none; a condition on it then holds if one class of `subtree`, the
    module's own U, could satisfy it. `wanted_slots` is what one more task takes. `used` is empty unless the part reads
    it.
    """

    tdv: TDV
    asker: Asker
    here: SDV | None
    subtree: IndexedVector
    now: CalendarTime
    placed: tuple[Placed, ...] = ()
    used: tuple[Used, ...] = ()
    wanted_slots: int = 1
    module: Description = field(default_factory=dict)
    """Facts of the module itself, with or without a machine: `tasks`, `waiting`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankQuery:
    """The facts on which a policy ranks candidates; `module` has those of the module, with or without a machine."""

    candidates: tuple[Candidate, ...]
    need: Need
    tdv: TDV
    here: SDV | None
    now: CalendarTime
    module: Description = field(default_factory=dict)
    at: Instant = START


class Act(StrEnum):
    """The acts of an owner on a task that runs on the owner's machine, the most severe first."""

    KILL = "kill"
    VACATE = "vacate"
    MOVE = "move"
    SUSPEND = "suspend"
    RESUME = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery:
    """The facts on which a policy judges a task that runs or waits here: the task with its TDV, the machine, the time.

    Unknown facts are absent.
    """

    task: Description
    here: Description
    now: CalendarTime


class RunningRule(Protocol):
    """One rule about tasks that run here; `rule_timing.decide` counts its durations, all in nanoseconds."""

    @property
    def act(self) -> Act:
        """The act that the rule requires."""

    @property
    def for_ns(self) -> int:
        """How long the rule must have been due without a break."""

    @property
    def grace_ns(self) -> int | None:
        """Time for a task to end by itself, or for its origin to find another place; None: the rule sets none."""

    @property
    def then(self) -> Act:
        """The act that follows when the grace has expired."""

    @property
    def rule(self) -> str:
        """The source of the rule, on one line."""

    @property
    def text(self) -> str:
        """The reason sent to other systems; it may be empty."""

    @property
    def reads_memory(self) -> bool:
        """Whether the rule depends on the memory that the task uses, which is then measured."""

    @property
    def reads_waiting(self) -> bool:
        """Whether the rule depends on waiting tasks, so that it may make room for one of them."""

    def is_due(self, query: RunningQuery, /) -> bool:
        """Return whether the rule applies to a task now, regardless of its `for`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HereQuery:
    """The facts on which a policy judges the own system.

    On a system without a machine, a condition on unknown facts of `here` holds if one class of `subtree`, the module's
    own U, could satisfy it.
    """

    here: Description
    has_machine: bool
    subtree: IndexedVector
    now: CalendarTime


class Asking(Protocol):
    """One rule by which a module requests tasks from others (MESSIAHS 5.3.2: receiver-initiated load balancing)."""

    @property
    def every_ns(self) -> int:
        """The interval of its evaluation."""

    @property
    def wanting(self) -> str:
        """A predicate of the paper's language over the TDVs of the requested tasks; the empty one matches all."""

    def is_wanted(self, query: HereQuery, /) -> bool:
        """Return whether to request tasks now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrderQuery:
    """Tasks to be ordered: the TDV and the known facts of each."""

    tasks: tuple[Description, ...]
    here: Description
    now: CalendarTime
    at: Instant = START


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinQuery:
    """A system that requests to become a neighbor: its name, its relation, and the present number of such neighbors."""

    name: SystemId
    role: Relation
    members: int
    now: CalendarTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The durations that a policy sets, in nanoseconds."""

    update_period_ns: int = 2 * SECOND
    request_ns: int = 10 * SECOND
    lease_ns: int = 15 * MINUTE
    kill_grace_ns: int = 10 * SECOND
    status_ns: int = 5 * MINUTE
    """Silence of a claim after which its executor is queried."""
    input_ns: int | None = None
    """Silence of a neighbor after which its input timeout fires; None: three of the periods that it announced."""
    queries_silent: bool = True
    """Whether a neighbor is queried once at its input timeout, before it is declared down (MESSIAHS 6.1)."""
    poll_ns: int | None = None
    """Age of a neighbor's vector after which the neighbor is polled for a new one; None: it is never polled."""
    bar_ns: int = 60 * SECOND
    """How long a shape of which a task was revoked here gets no new places here."""
    half_life_ns: int = 7 * 24 * HOUR
    """Time after which processor time that was used counts half (core/ledger)."""
    retention_ns: int | None = 7 * 24 * HOUR
    """How long tasks of local users are kept after their end; None: forever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits that a policy sets; a module also holds requests that it passes on to `hops` and `asks`."""

    hops: int = HOPS
    """Modules on the path of a request."""
    asks: int = ASKS
    """Modules that may be asked for one request in total."""
    moves: int = 3
    """A task that has moved this often is not offered to other systems again."""
    usage_days: int = 400
    """Days of which the ledger keeps who used how much."""
    audit_days: int = 90
    """Days of which the audit log keeps the decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnChange:
    """The own machine as last described, and as it is now; None if it has no description."""

    before: SDV | None
    after: SDV | None
    keys: tuple[str, ...]
    at: Instant = START


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardChange:
    """The last vector of a neighbor and the new one, which may be equal."""

    neighbor: SystemId
    before: StatusVector
    after: StatusVector
    keys: tuple[str, ...]
    at: Instant = START


UpdateQuery = OwnChange | HeardChange
"""A change that is sent at the end of the period at the latest: should it be sent at once?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSource:
    """A neighbor behind which `waiting` tasks wait, or running tasks may move (`lets_go`)."""

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
    """Running tasks that match a task_request and the `offer` rules; at most `wanted` of them are offered."""

    tasks: tuple[RunningQuery, ...]
    wanted: int
    at: Instant = START


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationQuery:
    """A request for `wanted` places, each for a task of `slots` slots; `here` has the facts of the machine."""

    tdv: TDV
    asker: Asker
    slots: int
    wanted: int
    here: Description
    at: Instant = START


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """The slots of each task of a request (at least 1), and the most places that are granted.

    Places that do not fit are not granted in any case.
    """

    slots: int
    places: int
