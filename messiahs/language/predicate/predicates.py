"""The predicate as the core sees it (MESSIAHS 5.4); an uninitialised field makes all of it false.

A variable is initialised if the description has it in the type of its comparators. A variable that is not makes the
predicate false whatever the operators around it, and even if the result does not depend on it. So order and
short-circuiting cannot be observed.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from messiahs.core.interface.predicates import BadPredicate, Predicate, Truth
from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Kind, Value
from messiahs.core.model.descriptions import Description, Layout, layout_of
from messiahs.core.vectors.columns import NO_CLASS, Classes, Column, Judged
from messiahs.errors import PredicateError
from messiahs.language.predicate.class_truth import ClassTruth, class_truth_of
from messiahs.language.predicate.cost import NOTHING, Cost, cost_of
from messiahs.language.predicate.formatting import format_predicate
from messiahs.language.predicate.generated_code import Binding
from messiahs.language.predicate.limits import is_too_long
from messiahs.language.predicate.parsing import parse_expression
from messiahs.language.predicate.syntax import (
    Chain,
    Comparison,
    Connective,
    Expression,
    Order,
    Variable,
    kind_of,
    uses_of,
)

# A hostile predicate takes some 300 KB after parsing.
_CACHED = 256
_CACHED_BINDINGS = 64
"""A module evaluates only its own machine as a row, so a predicate normally has one layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPredicate:
    """A parsed predicate; implements `core.ports.Predicate`.

    All fields follow from the text. A name in both `integers` and `strings` is compared as both types, which no value
    can satisfy.
    """

    text: str
    expression: Expression = field(compare=False, repr=False)
    integers: tuple[str, ...] = field(compare=False, repr=False)
    strings: tuple[str, ...] = field(compare=False, repr=False)
    class_truth: ClassTruth = field(compare=False, repr=False)
    looks: Cost = field(compare=False, repr=False)

    def holds(self, description: Description, /) -> bool:
        """Return whether the predicate is true; False if a variable has no value, or one of the wrong type."""
        return self.bound_to(layout_of(description))(tuple(description.values()))

    def bound_to(self, layout: Layout, /) -> Truth:
        """Return `holds` for descriptions of one layout, as a function of their values."""
        binding = _binding(self, layout)
        return binding.truth() if binding is not None else _never

    def over(self, classes: Classes, /) -> Judged:
        """Return the classes of which it is certainly true, for every machine, and possibly true, for at least one.

        It is not certain where a machine may lack a variable.
        """
        surely, could = self.class_truth(self._columns(classes))
        every_class = classes.every_class
        return surely & every_class, could & every_class

    def cost(self, classes: Classes, /) -> int:
        """Return the maximum number of steps of `over`: one per comparison, and per value of a second variable."""
        return self.looks.over(self._columns(classes) if self.looks.walked else ())

    def unset_in(self, description: Description, /) -> tuple[str, ...]:
        """Return the variables without a value, each once, in order of name.

        A value of the wrong type is not among them, although it makes the predicate false as well.
        """
        names = sorted({*self.integers, *self.strings})
        return tuple(name for name in names if not _is_set(description.get(name)))

    def mistyped_in(self, description: Description, /) -> tuple[str, ...]:
        """Return the variables whose value has another type than one of their comparators, each once, in order of name.

        They make the predicate false, as those without a value do.
        """
        uses = {(name, Kind.INTEGER) for name in self.integers} | {(name, Kind.STRING) for name in self.strings}
        wrong = {name for name, kind in uses if name in description and kind_of(description[name]) is not kind}
        return tuple(sorted(wrong))

    def false_term_in(self, description: Description, /) -> str:
        """Return the first of the terms joined by `and` that is not true, as `policy format` would write it."""
        predicates = (_predicate_of(format_predicate(term), term) for term in self._terms())
        return next((each.text for each in predicates if not each.holds(description)), "")

    def text_of(self, name: str, /) -> str:
        """Return the string that a variable must equal by one of the terms joined by `and`; empty if there is none."""
        if name not in self.strings:
            return ""
        for term in self._terms():
            if isinstance(term, Comparison) and term.order is Order.EQUAL:
                match term.left, term.right:
                    case (Variable(variable), str() as text) | (str() as text, Variable(variable)) if variable == name:
                        return text
                    case _:
                        continue
        return ""

    def _terms(self) -> tuple[Expression, ...]:
        if isinstance(self.expression, Chain) and self.expression.connective is Connective.AND:
            return self.expression.terms
        return (self.expression,)

    def _columns(self, classes: Classes) -> list[Column]:
        columns = classes.columns(Kind.INTEGER, *self.integers)
        if self.strings:
            columns += classes.columns(Kind.STRING, *self.strings)
        return columns


def parse_predicate(text: str) -> ParsedPredicate:
    """Parse a predicate; the empty text is always true. Raises PredicateError."""
    return _predicate_of(text, parse_expression(text))


def _predicate_of(text: str, expression: Expression) -> ParsedPredicate:
    uses = uses_of(expression)
    integers = tuple(name for name, kind in uses if kind is Kind.INTEGER)
    strings = tuple(name for name, kind in uses if kind is Kind.STRING)
    is_possible = not set(integers) & set(strings)
    places = {name: place for place, name in enumerate((*integers, *strings))}
    return ParsedPredicate(
        text=text,
        expression=expression,
        integers=integers,
        strings=strings,
        class_truth=class_truth_of(expression, places) if is_possible else _nowhere,
        looks=cost_of(expression, places) if is_possible else NOTHING,
    )


def predicate_parser(text: str) -> Predicate | BadPredicate:
    """Parse a stranger's predicate, or return a one-line error; a `core.ports.PredicateParser`."""
    # A text that is too long is refused quickly, and not worth a place in the cache.
    return _parsed.__wrapped__(text) if is_too_long(text) else _parsed(text)


@lru_cache(maxsize=_CACHED)
def _parsed(text: str) -> Predicate | BadPredicate:
    try:
        return parse_predicate(text)
    except PredicateError as error:
        advice = f" ({error.hint})" if error.hint else ""
        return BadPredicate(f"{error.line}:{error.column}: {error.message}{advice}")


@lru_cache(maxsize=_CACHED_BINDINGS)
def _binding(predicate: ParsedPredicate, layout: Layout) -> Binding | None:
    """Bind a predicate to a layout; None if a variable is missing in it, or has another type."""
    uses = [(name, Kind.INTEGER) for name in predicate.integers] + [(name, Kind.STRING) for name in predicate.strings]
    places = {pair: place for place, pair in enumerate(layout)}
    if not places.keys() >= set(uses):
        return None
    return Binding(predicate.expression, {name: places[name, kind] for name, kind in uses})


def _never(_: object) -> bool:
    return False


def _nowhere(_: object) -> Judged:
    return NO_CLASS


def _is_set(value: Value | None) -> bool:
    # An integer of more than 64 bits cannot have been received: it counts as unset.
    return isinstance(value, str) or (isinstance(value, int) and INTEGER_LOWEST <= value <= INTEGER_HIGHEST)
