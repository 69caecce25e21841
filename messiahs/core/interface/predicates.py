"""The paper's predicates (MESSIAHS 5.4), as a Protocol that the language implements and the host supplies."""

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
    """A predicate of the paper's language (MESSIAHS 5.4), evaluated over one description or many classes at once.

    It is evaluated far more often than names and types change. So everything that depends on these is prepared in
    advance, by `bound_to` for descriptions and by a vector for its classes; only values remain to be compared.
    """

    @property
    def text(self) -> str:
        """The source text of the predicate."""

    def holds(self, description: Description, /) -> bool:
        """Return whether the predicate is true; False if any of its variables is unset."""

    def bound_to(self, layout: Layout, /) -> Truth:
        """Return `holds` for descriptions of one layout, as a function of their values."""

    def over(self, classes: Classes, /) -> Judged:
        """Return the classes for which it is true of every machine, and those for which it may be true of some."""

    def cost(self, classes: Classes, /) -> int:
        """Return the cost of `over`: one for each comparison, and one for each value of another attribute."""

    def unset_in(self, description: Description, /) -> tuple[str, ...]:
        """Return the variables that the description does not set, each once, in order of name."""

    def mistyped_in(self, description: Description, /) -> tuple[str, ...]:
        """Return the variables whose value in a description has another type than their comparators, by name."""

    def false_term_in(self, description: Description, /) -> str:
        """Return the first of the terms joined by `and` that is not true; empty if all are."""

    def text_of(self, name: str, /) -> str:
        """Return the string that a variable must equal by one of the terms joined by `and`; empty if there is none."""


@dataclass(frozen=True, slots=True)
class BadPredicate:
    """A text that is not a predicate; `text` is the reason."""

    text: str


PredicateParser = Callable[[str], Predicate | BadPredicate]
"""Never raises; the empty text is the predicate that is always true."""
