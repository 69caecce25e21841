"""The built-in policy of a module that was given none: accept everyone (MESSIAHS 5: task acceptance)."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from messiahs.core.interface.policies import (
    Accepted,
    AcceptQuery,
    CalendarTime,
    JoinQuery,
    Migrating,
    Randomness,
    RankQuery,
    Refused,
    RunningRule,
    TaskOrder,
    Timeouts,
)
from messiahs.core.model.attributes import KEY_ATTRIBUTES
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.vectors import Vector
from messiahs.policy.absent import NoMigrating, no_entry
from messiahs.policy.placement import by_free_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPolicy:
    """Refuses nobody, says everything to everybody, and drops nothing."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    keys: tuple[str, ...] = KEY_ATTRIBUTES
    change_share: int = 0
    running: tuple[RunningRule, ...] = ()
    migrating: Migrating = field(default_factory=NoMigrating)
    task_order: TaskOrder | None = None

    def accept(self, query: AcceptQuery, /) -> Accepted | Refused:
        """Accept."""
        del query
        return Accepted()

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Name no rule."""
        del query
        return ""

    def admits(self, query: JoinQuery, /) -> Accepted | Refused:
        """Let nobody join: whom a site trusts is never decided by nobody."""
        return no_entry(query)

    def rank(self, query: RankQuery, randomness: Randomness, /) -> tuple[SystemId, ...]:
        """Ask by free slots."""
        return by_free_slots(query.candidates, query.need, randomness)

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Say all that was measured."""
        del now
        return measured

    def pass_on(self, vector: Vector, /) -> Vector:
        """Pass on everything."""
        return vector

    def reveal(self, vector: Vector, neighbor: Neighbor, /) -> Vector:
        """Reveal everything."""
        del neighbor
        return vector

    def reveals_to(self, neighbor: Neighbor, /) -> bool:
        """Reveal."""
        del neighbor
        return True

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Treat all neighbors alike."""
        del neighbor
        return None

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Hide no name."""
        del neighbor
        return ""
