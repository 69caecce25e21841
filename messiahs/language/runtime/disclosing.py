"""What a policy file lets others know: what the own machine says, what is passed on, and who is told what (7.1)."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.attributes import KEY_ATTRIBUTES, MACHINE_ATTRIBUTES, Unit, Value
from messiahs.core.model.descriptions import SDV, is_valid_value, sorted_pairs
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.redaction import without
from messiahs.core.vectors.vectors import Vector
from messiahs.language.runtime.accept_rules import calendar_facts
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, NOW, Facts
from messiahs.language.runtime.reveal_rules import Revealing


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
class CompiledDisclosure:
    """The blocks `advertise`, `combine` and `reveal`."""

    advertising: Advertising = field(default_factory=Advertising)
    combining: Combining = field(default_factory=Combining)
    revealing: Revealing = field(default_factory=Revealing)

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes that classes may split on, sorted."""
        return self.combining.keys

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
