"""A policy file, ready to decide (MESSIAHS 5: acceptance, placement; 7.1: what vectors say of a machine)."""

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
    TaskOrder,
    Timeouts,
)
from messiahs.core.model.attributes import KEY_ATTRIBUTES, MACHINE_ATTRIBUTES, Attribute, Unit, Value
from messiahs.core.model.descriptions import SDV, is_valid_value, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.redaction import without
from messiahs.core.vectors.vectors import Vector
from messiahs.errors import Problem
from messiahs.language.runtime.accepting import AcceptRules, calendar_facts
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.explaining_accept import why_refused
from messiahs.language.runtime.joining import JoinRules
from messiahs.language.runtime.ranking import RankKey, WrittenOrder, order_by
from messiahs.language.runtime.readings import HERE, NOW, Facts
from messiahs.language.runtime.revealing import Revealing
from messiahs.language.runtime.running import CompiledRule
from messiahs.policy.absent import NoMigrating
from messiahs.policy.placement import by_free_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a machine says of one attribute: the first amount whose condition is true, and the last one otherwise.

    `start` is where in the file that stands, counted from 0.
    """

    name: str
    choices: tuple[tuple[Amount, Condition], ...]
    otherwise: Amount
    low: int
    high: int
    unit: Unit = Unit.NONE
    start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertising:
    """What the own machine says beside the fixed attributes."""

    sends_all: bool = False
    sent: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Combining:
    """What becomes of attributes in the vectors that this module computes; keys are carried whatever else is said."""

    keys: tuple[str, ...] = KEY_ATTRIBUTES
    carried: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    drops_others: bool = False

    def drops(self, name: str) -> bool:
        """Say whether what children said of an attribute is not passed on."""
        if name in self.keys or name in self.carried:
            return False
        return self.drops_others or name in self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a policy was compiled from: the text of a file, and the durations that it need not say."""

    file: str
    text: str
    timeouts: Timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicy:
    """Everything that a policy file decides; without a block, what its part is by default.

    `change_share` is how large a change of the own machine is worth a new vector, in 1/100 %; 0 is any.
    """

    name: str = ""
    timeouts: Timeouts = field(default_factory=Timeouts)
    change_share: int = 0
    advertising: Advertising = field(default_factory=Advertising)
    combining: Combining = field(default_factory=Combining)
    revealing: Revealing = field(default_factory=Revealing)
    accepting: AcceptRules = field(default_factory=AcceptRules)
    ranking: tuple[RankKey, ...] | None = None
    running: tuple[CompiledRule, ...] = ()
    declared: tuple[Attribute, ...] = ()
    lets: tuple[tuple[str, int], ...] = ()
    """The names of its `let`s, and where in the file what they stand for begins, counted from 0."""
    task_order: TaskOrder | None = None
    orders: tuple[WrittenOrder, ...] = ()
    migrating: Migrating = field(default_factory=NoMigrating)
    joining: JoinRules = field(default_factory=JoinRules)
    warnings: tuple[Problem, ...] = ()
    source: Source | None = field(default=None, compare=False, repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes that classes may split on, sorted."""
        return self.combining.keys

    def accept(self, query: AcceptQuery, /) -> Accepted | Refused:
        """Judge tasks that somebody wants placed."""
        return self.accepting.judge(query)

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Say every rule that is against the tasks and the values found, for the owner alone; empty if none is."""
        return why_refused(self.accepting, query)

    def admits(self, query: JoinQuery, /) -> Accepted | Refused:
        """Judge a system that wants to join."""
        return self.joining.judge(query)

    def rank(self, query: RankQuery, randomness: Randomness, /) -> tuple[SystemId, ...]:
        """Order those candidates that could hold a task, the one to ask first in front."""
        if self.ranking is None:
            return by_free_slots(query.candidates, query.need, randomness)
        return order_by(self.ranking, query, randomness)

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Give what the own machine says: the fixed attributes, the extensions that are sent, and what is set.

        What is set to an amount without a value, or out of its range, is not said.
        """
        said, facts = measured.description(), self.facts_here(measured, now)
        told: dict[str, Value] = {name: value for name, value in said.items() if self._is_sent(name)}
        for setting in self.advertising.settings:
            chosen = next(
                (amount for amount, condition in setting.choices if condition.holds(facts)), setting.otherwise
            )
            value = chosen.value_in(facts)
            told.pop(setting.name, None)
            if value is not None and setting.low <= value <= setting.high and is_valid_value(value):
                told[setting.name] = value
        return SDV(sorted_pairs(told))

    def facts_here(self, measured: SDV, now: CalendarTime, /) -> Facts:
        """Give what `advertise` decides by."""
        return {HERE: measured.description(), NOW: calendar_facts(now)}

    def pass_on(self, vector: Vector, /) -> Vector:
        """Give what is passed on of what a child of the primary tree sent."""
        names = {name for each in vector.classes for name, _ in each.attributes}
        return without(vector, [name for name in names if self.combining.drops(name)], keys=self.keys)

    def reveal(self, vector: Vector, neighbor: Neighbor, /) -> Vector:
        """Give what a neighbor is told of a vector."""
        return self.revealing.to(neighbor).of(vector, keys=self.keys)

    def reveals_to(self, neighbor: Neighbor, /) -> bool:
        """Say whether a neighbor is told anything."""
        return not self.revealing.to(neighbor).is_nothing

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Give the rule by which a neighbor is told."""
        return self.revealing.to(neighbor)

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Give the name that a neighbor sees in reasons."""
        return self.revealing.to(neighbor).name

    def _is_sent(self, name: str) -> bool:
        return name in MACHINE_ATTRIBUTES or self.advertising.sends_all or name in self.advertising.sent
