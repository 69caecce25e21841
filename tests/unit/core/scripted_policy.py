"""A policy whose answers a test can change."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.parts import Migration, Part, PartState, Selection, Transfer
from messiahs.core.interface.policies import (
    Accepted,
    AcceptQuery,
    Allocation,
    AllocationQuery,
    CalendarTime,
    Limits,
    Randomness,
    RankQuery,
    Refused,
    RunningRule,
    SourceQuery,
    Timeouts,
    UpdateQuery,
)
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.series import Kept
from messiahs.core.vectors.vectors import EMPTY, Vector
from messiahs.policy.admission import AdmitNobody
from messiahs.policy.location import WeightedFreeSlots
from messiahs.policy.open_policy import OpenPolicy

OPEN = OpenPolicy()


@dataclass(slots=True)
class ScriptedPolicy:
    """The open policy, but for verdicts that a test can change (mutable)."""

    verdict: Accepted | Refused = field(default_factory=Accepted)
    timeouts: Timeouts = field(default_factory=Timeouts)
    limits: Limits = field(default_factory=Limits)
    order: tuple[SystemId, ...] = ()
    histories: tuple[Kept, ...] = ()
    keys: tuple[str, ...] = OPEN.keys
    limit_slots: int | None = None
    """At most so many slots are accepted at once; None is any number."""
    running: tuple[RunningRule, ...] = ()
    silent_to: tuple[SystemId, ...] = ()
    names: Mapping[SystemId, str] = field(default_factory=dict)
    """What neighbors see in place of names from here."""
    why: str = ""
    update: Part[UpdateQuery, bool] = OPEN.update
    sources: Part[SourceQuery, tuple[SystemId, ...]] = OPEN.sources
    selection: Selection = OPEN.selection
    transfer: Transfer = OPEN.transfer
    migration: Migration = OPEN.migration
    allocation: Part[AllocationQuery, Allocation] = OPEN.allocation
    admission: AdmitNobody = OPEN.admission

    @property
    def acceptance(self) -> "ScriptedAcceptance":
        """Return what the test wants."""
        return ScriptedAcceptance(self)

    @property
    def location(self) -> "ScriptedLocation":
        """Order as the test wants, or as the open policy does."""
        return ScriptedLocation(self)

    @property
    def disclosure(self) -> "ScriptedDisclosure":
        """Tell everything, but for those that the test names."""
        return ScriptedDisclosure(self)


@dataclass(frozen=True, slots=True)
class ScriptedAcceptance:
    """Says what the test wants said."""

    script: ScriptedPolicy
    text: str = "scripted"
    initial: PartState = ()

    def decide(
        self, query: AcceptQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[Accepted | Refused, PartState]:
        """Return what the test wants."""
        del randomness
        limit = self.script.limit_slots
        if limit is not None and query.wanted_slots > limit:
            return Refused(code=DenyCode.LIMIT_REACHED, is_final=False), state
        return self.script.verdict, state

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Return what the test wants."""
        del query
        return self.script.why

    @property
    def reads_usage(self) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, slots=True)
class ScriptedLocation:
    """Orders as the test wants, or as the open policy does."""

    script: ScriptedPolicy
    text: str = "scripted"
    initial: PartState = ()

    def decide(
        self, query: RankQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[tuple[SystemId, ...], PartState]:
        """Order candidates."""
        able, _ = WeightedFreeSlots().decide(query, state, randomness)
        order = self.script.order
        return (tuple(sorted(able, key=order.index)) if order else able), state

    def why_ranked(self, query: RankQuery, /) -> dict[SystemId, str]:
        """Return the place that the test wants."""
        order = self.script.order
        return {each.system: f"place {order.index(each.system)}" for each in query.candidates if each.system in order}


@dataclass(frozen=True, slots=True)
class ScriptedDisclosure:
    """Tells everything, but for those that the test names."""

    script: ScriptedPolicy

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Return all measured attributes."""
        del now
        return measured

    def pass_on(self, vector: Vector, /) -> Vector:
        """Pass on everything."""
        return vector

    def reveal(self, vector: Vector, neighbor: Neighbor, /) -> Vector:
        """Reveal, but for those that the test names."""
        return vector if self.reveals_to(neighbor) else EMPTY

    def reveals_to(self, neighbor: Neighbor, /) -> bool:
        """Reveal, but for those that the test names."""
        return neighbor.system not in self.script.silent_to

    def shows(self, attribute: str, neighbor: Neighbor, /) -> bool:
        """Show every attribute, but for those to whom nothing is revealed."""
        del attribute
        return self.reveals_to(neighbor)

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Tell those apart that the test names."""
        return self.reveals_to(neighbor)

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Hide the names that the test wants hidden."""
        return self.script.names.get(neighbor.system, "")

    def reveals_demand_to(self, neighbor: Neighbor, /, *, is_apart: bool) -> bool:
        """Reveal it within the site, but for those that the test names."""
        return not is_apart and self.reveals_to(neighbor)

    def reveals_costs_to(self, neighbor: Neighbor, /, *, is_apart: bool) -> bool:
        """Reveal them within the site, but for those that the test names."""
        return not is_apart and self.reveals_to(neighbor)

    def least_shown_to(self, neighbor: Neighbor, /) -> int:
        """Hide no small counts."""
        del neighbor
        return 0
