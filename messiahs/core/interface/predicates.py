"""Predicates of the paper (MESSIAHS 5.4), as a Protocol that the language implements and the host hands in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import Description, Layout
from messiahs.core.vectors.columns import Classes, Judged

Values = tuple[Value, ...]
"""The values of a description, in the order of its layout."""

Truth = Callable[[Values], bool]


class Predicate(Protocol):
    """A predicate of the paper's language (MESSIAHS 5.4): judges one description, or many classes at once.

    It is judged far more often than names and types change. So what depends on these is settled before, by `bound_to`
    for descriptions and by a vector for its classes; what is left is to compare values.
    """

    @property
    def text(self) -> str:
        """The predicate as it was written."""

    def holds(self, description: Description, /) -> bool:
        """Say whether it is true; False if any of its variables is not set."""

    def bound_to(self, layout: Layout, /) -> Truth:
        """Give what `holds` says of descriptions of one layout, as a function of their values."""

    def over(self, classes: Classes, /) -> Judged:
        """Say of which classes it is true for every machine that they may stand for, and of which for some machine."""

    def cost(self, classes: Classes, /) -> int:
        """Give how many looks `over` takes: one for each comparison, and for each value of another attribute."""

    def unset_in(self, description: Description, /) -> tuple[str, ...]:
        """Name the variables that the description does not set, each once, in order of name."""


@dataclass(frozen=True, slots=True)
class BadPredicate:
    """A text that is no predicate, and why."""

    text: str


PredicateParser = Callable[[str], Predicate | BadPredicate]
"""Never raises; the empty text is the predicate that is always true."""
