"""Parts of policies: as their authors declare them, and as policies name them, with parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from messiahs.core.interface.parts import Failed, PartKind, PartState
from messiahs.core.interface.policies import Randomness, RankQuery
from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Kind, Unit, Value
from messiahs.core.model.descriptions import is_valid_value
from messiahs.core.model.ids import SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter: an integer in a unit, from `low` to `high`, or a string, one of `choices` if there are any.

    A parameter without a default must be given.
    """

    name: str
    meaning: str
    kind: Kind = Kind.INTEGER
    unit: Unit = Unit.NONE
    default: Value | None = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def lowest(self) -> int:
        """The lowest integer that it may have."""
        return INTEGER_LOWEST if self.low is None else self.low

    @property
    def highest(self) -> int:
        """The highest integer that it may have."""
        return INTEGER_HIGHEST if self.high is None else self.high

    def may_be(self, value: object, /) -> bool:
        """Whether it may have a value, which may be any object."""
        if type(value) is str:
            return self.kind is Kind.STRING and is_valid_value(value) and (not self.choices or value in self.choices)
        return self.kind is Kind.INTEGER and type(value) is int and self.lowest <= value <= self.highest


class Decider(Protocol):
    """The implementation of a part: one decision, with the queries and answers of its kind.

    It is an immutable value. The same query, state and random bits give the same answer on every machine.
    """

    @property
    def initial(self) -> PartState:
        """The initial state; `()` for a part without a state."""

    def decide(self, query: Any, state: PartState, randomness: Randomness, /) -> tuple[Any, PartState]:  # noqa: ANN401 - by kind
        """Return the answer to a query, and the next state."""


@runtime_checkable
class ExplainsOrder(Protocol):
    """A part that orders candidates, and says by which values."""

    def why_ranked(self, query: RankQuery, /) -> Mapping[SystemId, str]:
        """Return the values by which candidates have their places; it draws nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPart:
    """A part that policies may name; `make` takes its parameters by name.

    With `reads_memory` the memory of tasks is measured for it. With `keeps_arrival` it never reorders tasks.
    `distribution` and `version` identify the package that provides it; built-in parts have none.
    """

    kind: PartKind
    name: str
    meaning: str
    make: Callable[..., Decider] = field(compare=False)
    parameters: tuple[Parameter, ...] = ()
    reads_memory: bool = False
    keeps_arrival: bool = False
    distribution: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPart:
    """A declared part with its parameters; `text` is its name in a policy file."""

    declared: DeclaredPart
    text: str
    decider: Decider

    @property
    def initial(self) -> PartState:
        """The initial state."""
        return self.decider.initial

    @property
    def reads_memory(self) -> bool:
        """Whether it needs the memory that tasks use."""
        return self.declared.reads_memory

    @property
    def keeps_arrival(self) -> bool:
        """Whether it never reorders tasks."""
        return self.declared.keeps_arrival

    def decide(
        self,
        query: Any,  # noqa: ANN401 - by kind
        state: PartState,
        randomness: Randomness,
        /,
    ) -> tuple[Any | Failed[Any], PartState]:
        """Return the answer to a query, and the next state."""
        return self.decider.decide(query, state, randomness)

    def why_ranked(self, query: RankQuery, /) -> Mapping[SystemId, str]:
        """Return the values by which candidates have their places, as far as a part that orders them says so."""
        return self.decider.why_ranked(query) if isinstance(self.decider, ExplainsOrder) else {}


def plain(declared: DeclaredPart, /) -> NamedPart:
    """Return a part that has no parameters."""
    return NamedPart(declared=declared, text=f"{declared.name}()", decider=declared.make())
