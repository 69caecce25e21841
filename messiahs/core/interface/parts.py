"""Who answers the questions of the core: the parts of a policy, each a small Protocol (MESSIAHS 2, 5).

A part is a function `(query, state) -> (answer, state)`. Queries and states are values. The state is what the part
remembers between two questions: the module keeps it, traces hold it, and after a restart a part begins with `initial`.
"""

from collections.abc import Hashable
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
from messiahs.core.vectors.vectors import Vector

PartState = tuple[tuple[Value, ...], ...]
"""What a part remembers: rows of integers and strings."""

_Answer_co = TypeVar("_Answer_co", covariant=True)
_Query_contra = TypeVar("_Query_contra", contravariant=True)


class PartKind(StrEnum):
    """What a part decides, as the block of a policy file that it belongs to."""

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
    """A part did not answer, for the reason `why`; `instead` holds in place of its answer."""

    instead: _Answer_co
    why: str


class Part(Protocol[_Query_contra, _Answer_co]):
    """One decision of a policy."""

    @property
    def text(self) -> str:
        """The part by its name and parameters; over a change of policy, parts with equal texts keep their state."""

    @property
    def initial(self) -> PartState:
        """The state with which it begins."""

    def decide(
        self, query: _Query_contra, state: PartState, randomness: Randomness, /
    ) -> tuple[_Answer_co | Failed[_Answer_co], PartState]:
        """Answer a question, and give the state for the next one."""


class Acceptance(Part[AcceptQuery, Accepted | Refused], Protocol):
    """Judges tasks that somebody wants placed."""

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Say every rule that is against the tasks and the values found, for the owner alone; empty if none is."""


class Selection(Part[TaskOrderQuery, tuple[int, ...]], Protocol):
    """Gives the positions of all tasks, that of the first to be served in front; equal ones stay in their order."""

    @property
    def reads_memory(self) -> bool:
        """Say whether the order depends on the memory that a task uses, which is then measured."""

    @property
    def keeps_arrival(self) -> bool:
        """Say whether it is first come, first served: then none is put before another, and nobody is asked."""


class Migration(Part[MigrationQuery, tuple[int, ...]], Protocol):
    """Gives the positions of the running tasks that are worth moving, that of the first to go in front."""

    @property
    def reads_memory(self) -> bool:
        """Say whether the order depends on the memory that a task uses, which is then measured."""


class Transfer(Protocol):
    """When others are asked for tasks, and which tasks may go to those that ask: rules without a state."""

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


class Disclosure(Protocol):
    """What others are told: rules without a state, since sums are kept for as long as nothing changes."""

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


class Policy(Protocol):
    """What an administrator decides (MESSIAHS 2: the policies define how a capability is used), part by part."""

    @property
    def timeouts(self) -> Timeouts:
        """The policy's durations."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes that classes may split on, sorted."""

    @property
    def running(self) -> tuple[RunningRule, ...]:
        """What may happen to tasks that run on the own machine, in the order of the file."""

    @property
    def update(self) -> Part[UpdateQuery, bool]:
        """Say whether a change is told before the period is over."""

    @property
    def acceptance(self) -> Acceptance:
        """Judge tasks."""

    @property
    def location(self) -> Part[RankQuery, tuple[SystemId, ...]]:
        """Order those candidates that could hold a task, the likeliest first; the others are left out."""

    @property
    def sources(self) -> Part[SourceQuery, tuple[SystemId, ...]]:
        """Order the neighbors that are asked for tasks; those that are left out are not asked."""

    @property
    def selection(self) -> Selection:
        """Order tasks that want places."""

    @property
    def transfer(self) -> Transfer:
        """Say when to ask for tasks, and which may go."""

    @property
    def migration(self) -> Migration:
        """Choose among running tasks that may go."""

    @property
    def allocation(self) -> Part[AllocationQuery, Allocation]:
        """Say how many slots a task gets, and how much of a request is granted."""

    @property
    def disclosure(self) -> Disclosure:
        """Say what others are told."""

    @property
    def admission(self) -> Part[JoinQuery, Accepted | Refused]:
        """Judge a system that wants to join."""


def part_texts(policy: Policy) -> dict[PartKind, str]:
    """Give the text of every part of a policy that may have a state."""
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
