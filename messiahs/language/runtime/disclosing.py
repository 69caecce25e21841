"""What a policy file discloses: attributes advertised, passed on, and revealed to each neighbor (7.1)."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.attributes import KEY_ATTRIBUTES, MACHINE_ATTRIBUTES, Unit, Value
from messiahs.core.model.descriptions import SDV, is_valid_value, sorted_pairs
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.redaction import without
from messiahs.core.vectors.vectors import Vector
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, NOW, Facts, calendar_facts
from messiahs.language.runtime.reveal_rules import Revealing


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The value of one attribute: the first amount whose condition is true, else the last one.

    `start` is its offset in the file, in characters from 0.
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
    """Attributes that the own machine advertises besides the fixed ones."""

    sends_all: bool = False
    sent: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    in_history: frozenset[str] = frozenset()
    """Attributes of the machine's history, which are sent only if they are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combining:
    """Attributes in the vectors that this module computes; keys are always carried."""

    keys: tuple[str, ...] = KEY_ATTRIBUTES
    carried: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    drops_others: bool = False

    def drops(self, name: str) -> bool:
        """Return whether an attribute of children is dropped."""
        if name in self.keys or name in self.carried:
            return False
        return self.drops_others or name in self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledDisclosure:
    """The blocks `advertise`, `combine` and `reveal`."""

    advertising: Advertising = field(default_factory=Advertising)
    combining: Combining = field(default_factory=Combining)
    revealing: Revealing = field(default_factory=Revealing)

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes by which classes may be split, sorted."""
        return self.combining.keys

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield the condition of every choice of an attribute's value."""
        for setting in self.advertising.settings:
            for _, condition in setting.choices:
                yield f"set ${setting.name} when {condition.predicate}", condition

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Return the description of the own machine: fixed attributes, sent extensions, and attributes that are set.

        An attribute set to an amount without a value, or out of its range, is left out.
        """
        said, facts = measured.description(), self.facts_here(measured, now)
        advertised: dict[str, Value] = {name: value for name, value in said.items() if self._is_sent(name)}
        for setting in self.advertising.settings:
            chosen = next(
                (amount for amount, condition in setting.choices if condition.holds(facts)), setting.otherwise
            )
            value = chosen.value_in(facts)
            advertised.pop(setting.name, None)
            if value is not None and setting.low <= value <= setting.high and is_valid_value(value):
                advertised[setting.name] = value
        return SDV(sorted_pairs(advertised))

    def facts_here(self, measured: SDV, now: CalendarTime, /) -> Facts:
        """Return the facts over which `advertise` is evaluated."""
        return {HERE: measured.description(), NOW: calendar_facts(now)}

    def pass_on(self, vector: Vector, /) -> Vector:
        """Return the part of a primary child's vector that is passed on."""
        names = {name for each in vector.classes for name, _ in each.attributes}
        return without(vector, [name for name in names if self.combining.drops(name)], keys=self.keys)

    def reveal(self, vector: Vector, neighbor: Neighbor, /) -> Vector:
        """Return the part of a vector that a neighbor receives."""
        return self.revealing.to(neighbor).of(vector, keys=self.keys)

    def reveals_to(self, neighbor: Neighbor, /) -> bool:
        """Return whether a neighbor receives anything."""
        return not self.revealing.to(neighbor).is_nothing

    def shows(self, attribute: str, neighbor: Neighbor, /) -> bool:
        """Return whether a rule allows an attribute, and it is passed on from children to others than children."""
        is_passed_on = neighbor.is_child or not self.combining.drops(attribute)
        return is_passed_on and self.revealing.to(neighbor).shows(attribute)

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Return the rule that applies to a neighbor; equal values receive equal vectors."""
        return self.revealing.to(neighbor)

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Return the name that a neighbor sees in reasons."""
        return self.revealing.to(neighbor).name

    def reveals_demand_to(self, neighbor: Neighbor, /, *, is_apart: bool) -> bool:
        """Return whether a neighbor gets the unmet demand: as the rule says, else within the site."""
        rule = self.revealing.to(neighbor)
        return not rule.is_nothing and (not is_apart if rule.demand is None else rule.demand)

    def reveals_costs_to(self, neighbor: Neighbor, /, *, is_apart: bool) -> bool:
        """Return whether `$comm_cost` is shown; to a neighbor that is apart, whether the rule names it in `only`."""
        is_named = self.revealing.to(neighbor).only is not None
        return self.shows("comm_cost", neighbor) and (is_named or not is_apart)

    def least_shown_to(self, neighbor: Neighbor, /) -> int:
        """Return the least count of a class for a neighbor."""
        return self.revealing.to(neighbor).least_count

    def _is_sent(self, name: str) -> bool:
        sends_all = self.advertising.sends_all and name not in self.advertising.in_history
        return name in MACHINE_ATTRIBUTES or sends_all or name in self.advertising.sent
