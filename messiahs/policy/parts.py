"""Parts of policies as their authors declare them, and as policies name them: by name and parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from messiahs.core.interface.parts import Failed, PartKind, PartState
from messiahs.core.interface.policies import Randomness
from messiahs.core.model.attributes import Kind, Unit, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter: an integer in a unit, from `low` to `high`, or a string, one of `choices` if there are any.

    Without a default it must be given.
    """

    name: str
    meaning: str
    kind: Kind = Kind.INTEGER
    unit: Unit = Unit.NONE
    default: Value | None = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()


class Decider(Protocol):
    """What a part's author writes: one decision, whose queries and answers are those of the part's kind.

    It is a value without a mutable inside. The same query, state and random bits give the same answer everywhere.
    """

    @property
    def initial(self) -> PartState:
        """The state with which it begins; `()` for a part that remembers nothing."""

    def decide(self, query: Any, state: PartState, randomness: Randomness, /) -> tuple[Any, PartState]:  # noqa: ANN401 - by kind
        """Answer a question, and give the state for the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPart:
    """A part that policies may name: `make` takes its parameters by their names.

    With `reads_memory` the memory that tasks use is measured for it. One that `keeps_arrival` puts no task before
    another. `distribution` and `version` say from where it was installed; the built-in ones have none.
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
    """A declared part with its parameters; `text` is how a policy file names it."""

    declared: DeclaredPart
    text: str
    decider: Decider

    @property
    def initial(self) -> PartState:
        """The state with which it begins."""
        return self.decider.initial

    @property
    def reads_memory(self) -> bool:
        """Say whether it asks for the memory that tasks use."""
        return self.declared.reads_memory

    @property
    def keeps_arrival(self) -> bool:
        """Say whether it puts no task before another."""
        return self.declared.keeps_arrival

    def decide(
        self,
        query: Any,  # noqa: ANN401 - by kind
        state: PartState,
        randomness: Randomness,
        /,
    ) -> tuple[Any | Failed[Any], PartState]:
        """Answer a question, and give the state for the next one."""
        return self.decider.decide(query, state, randomness)


def plain(declared: DeclaredPart, /) -> NamedPart:
    """Give a part that has no parameters."""
    return NamedPart(declared=declared, text=f"{declared.name}()", decider=declared.make())
