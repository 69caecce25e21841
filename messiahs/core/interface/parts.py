"""The parts of a policy that answer the queries of the core, each a small Protocol (MESSIAHS 2, 5).

A part is a function `(query, state) -> (answer, state)`. Queries and states are values. The state is the memory of the
part between two queries: the module keeps it, traces include it, and after a restart a part begins with `initial`.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from messiahs.core.interface.policies import (
    Accepted,
    AcceptQuery,
    Allocation,
    AllocationQuery,
    Asking,
    CalendarTime,
    JoinQuery,
    Limits,
    MigrationQuery,
    Randomness,
    RankQuery,
    Refused,
    RunningQuery,
    RunningRule,
    SourceQuery,
    TaskOrderQuery,
    Timeouts,
    UpdateQuery,
)
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.series import Kept
from messiahs.core.vectors.vectors import Vector

PartState = tuple[tuple[Value, ...], ...]
"""The memory of a part: rows of integers and strings."""

_Answer_co = TypeVar("_Answer_co", covariant=True)
_Query_contra = TypeVar("_Query_contra", contravariant=True)


class PartKind(StrEnum):
    """The decision of a part, by the block of a policy file to which it belongs."""

    UPDATE = "advertise"
    ACCEPTANCE = "accept"
    LOCATION = "rank candidates"
    SOURCES = "rank neighbors"
    SELECTION = "rank tasks"
    MIGRATION = "migrate"
    ALLOCATION = "allocate"
    ADMISSION = "join"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Generic[_Answer_co]):
    """A part gave no answer, for the reason `why`; `instead` is the substitute."""

    instead: _Answer_co
    why: str


class Part(Protocol[_Query_contra, _Answer_co]):
    """One decision of a policy."""

    @property
    def text(self) -> str:
        """The part by its name and parameters; when a policy is replaced, parts with equal texts keep their state."""

    @property
    def initial(self) -> PartState:
        """The state with which the part begins."""

    def decide(
        self, query: _Query_contra, state: PartState, randomness: Randomness, /
    ) -> tuple[_Answer_co | Failed[_Answer_co], PartState]:
        """Return the answer to a query, and the state for the next one."""


class Acceptance(Part[AcceptQuery, Accepted | Refused], Protocol):
    """Judges tasks for which places are requested."""

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Return every rule that refuses the tasks with the values found, for the owner alone; empty without one."""

    @property
    def reads_usage(self) -> bool:
        """Whether a limit counts the slot time of a day: then queries have it."""


class Location(Part[RankQuery, tuple[SystemId, ...]], Protocol):
    """Orders the candidates that could hold a task, the best first; others are left out."""

    def why_ranked(self, query: RankQuery, /) -> Mapping[SystemId, str]:
        """Return the values by which candidates have their places, for local users alone, as far as it can say.

        It draws nothing and changes no state.
        """


class Selection(Part[TaskOrderQuery, tuple[int, ...]], Protocol):
    """Returns the positions of all tasks in the order of service; equal ones keep their order."""

    @property
    def reads_memory(self) -> bool:
        """Whether the order depends on the memory that tasks use, which is then measured."""

    @property
    def keeps_arrival(self) -> bool:
        """Whether tasks are served in order of arrival: then none ranks above another, and the part is not called."""


class Migration(Part[MigrationQuery, tuple[int, ...]], Protocol):
    """Returns the positions of the running tasks that are worth moving, in the order in which they leave."""

    @property
    def reads_memory(self) -> bool:
        """Whether the order depends on the memory that tasks use, which is then measured."""


class Transfer(Protocol):
    """When tasks are requested from others, and which tasks may be offered to others: rules without a state."""

    @property
    def asks(self) -> tuple[Asking, ...]:
        """The rules by which tasks are requested."""

    @property
    def keep_at_least(self) -> int:
        """The number of waiting tasks that are never offered, and likewise of running ones."""

    @property
    def offers_running(self) -> bool:
        """Whether running tasks may be offered too, which requires rules that select them."""

    @property
    def reads_memory(self) -> bool:
        """Whether an `offer` rule depends on the memory that a task uses, which is then measured."""

    @property
    def reads_waiting(self) -> bool:
        """Whether an `offer` rule depends on waiting tasks that rank above a running one."""

    def offers(self, query: RunningQuery, /) -> bool:
        """Return whether a task may be offered."""


class Disclosure(Protocol):
    """The facts revealed to others: rules without a state, since sums are kept as long as nothing changes."""

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Return the description of the own machine for others."""

    def pass_on(self, vector: Vector, /) -> Vector:
        """Return the part of a primary child's vector that is passed on."""

    def reveal(self, vector: Vector, neighbor: Neighbor, /) -> Vector:
        """Return a vector as a neighbor may see it: with fewer or coarser facts, never more."""

    def reveals_to(self, neighbor: Neighbor, /) -> bool:
        """Return whether anything is revealed to a neighbor."""

    def shows(self, attribute: str, neighbor: Neighbor, /) -> bool:
        """Return whether a neighbor may see an attribute of machines behind this module."""

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Return a value that is equal for neighbors for which `reveal` gives equal results."""

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Return the name that a neighbor sees in place of this system and those behind it; empty: none."""

    def reveals_demand_to(self, neighbor: Neighbor, /, *, is_apart: bool) -> bool:
        """Return whether a neighbor gets the unmet demand; `is_apart`: it is of another site, or beyond this border."""

    def reveals_costs_to(self, neighbor: Neighbor, /, *, is_apart: bool) -> bool:
        """Return whether a neighbor gets the communication costs of links behind this module."""

    def least_shown_to(self, neighbor: Neighbor, /) -> int:
        """Return the smallest number of tasks or machines in a class that a neighbor is shown; 0: no minimum."""


class Policy(Protocol):
    """The decisions of an administrator (MESSIAHS 2: policies define how a capability is used), part by part."""

    @property
    def timeouts(self) -> Timeouts:
        """The policy's durations."""

    @property
    def limits(self) -> Limits:
        """The policy's limits on requests and moves."""

    @property
    def histories(self) -> tuple[Kept, ...]:
        """The attributes of which a history is kept, of the own machine and of each neighbor."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes on which classes may be split, sorted."""

    @property
    def running(self) -> tuple[RunningRule, ...]:
        """The rules about tasks that run on the own machine, in the order of the file."""

    @property
    def update(self) -> Part[UpdateQuery, bool]:
        """The part that decides whether a change is sent before the period ends."""

    @property
    def acceptance(self) -> Acceptance:
        """The part that judges tasks."""

    @property
    def location(self) -> Location:
        """The part that orders the candidates that could hold a task, the best first; others are left out."""

    @property
    def sources(self) -> Part[SourceQuery, tuple[SystemId, ...]]:
        """The part that orders the neighbors that are asked for tasks; those left out are not asked."""

    @property
    def selection(self) -> Selection:
        """The part that orders waiting tasks."""

    @property
    def transfer(self) -> Transfer:
        """The rules for requesting and offering tasks."""

    @property
    def migration(self) -> Migration:
        """The part that chooses among running tasks that may be offered."""

    @property
    def allocation(self) -> Part[AllocationQuery, Allocation]:
        """The part that sets the slots of a task, and the places granted of a request."""

    @property
    def disclosure(self) -> Disclosure:
        """The rules for revealing facts to others."""

    @property
    def admission(self) -> Part[JoinQuery, Accepted | Refused]:
        """The part that judges a system that requests to join."""


def part_texts(policy: Policy) -> dict[PartKind, str]:
    """Return the text of every part of a policy that may have a state."""
    return {
        PartKind.UPDATE: policy.update.text,
        PartKind.ACCEPTANCE: policy.acceptance.text,
        PartKind.LOCATION: policy.location.text,
        PartKind.SOURCES: policy.sources.text,
        PartKind.SELECTION: policy.selection.text,
        PartKind.MIGRATION: policy.migration.text,
        PartKind.ALLOCATION: policy.allocation.text,
        PartKind.ADMISSION: policy.admission.text,
    }
