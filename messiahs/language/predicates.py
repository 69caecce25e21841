"""The predicate as the core sees it (MESSIAHS 5.4); use of an uninitialised field makes all of it false.

A variable is initialised if the description has it in the type of its comparators. Nothing excuses another one: not an
operator around it, nor that the result does not depend on it. So order and short-circuiting cannot be observed.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from messiahs.core.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Kind, Value
from messiahs.core.descriptions import Description
from messiahs.core.ports import BadPredicate, Predicate
from messiahs.core.vectors import MachineClass
from messiahs.errors import PredicateError
from messiahs.language.class_truth import ClassTruth, class_truth_of, spans_in
from messiahs.language.parsing import parse_expression
from messiahs.language.scanning import is_too_long
from messiahs.language.syntax import Expression, uses_of
from messiahs.language.truth import Truth, truth_of

# A hostile predicate takes some 300 KB once it is parsed.
_CACHED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPredicate:
    """A predicate ready to be judged; implements `core.ports.Predicate`.

    Everything in it follows from its text. A name in both `integers` and `strings` is compared as both types, which no
    value can satisfy.
    """

    text: str
    expression: Expression = field(compare=False, repr=False)
    integers: tuple[str, ...] = field(compare=False, repr=False)
    strings: tuple[str, ...] = field(compare=False, repr=False)
    truth: Truth = field(compare=False, repr=False)
    class_truth: ClassTruth = field(compare=False, repr=False)

    def holds(self, description: Description, /) -> bool:
        """Say whether the predicate is true; False if a variable has no value, or one of the wrong type."""
        for name in self.integers:
            value = description.get(name)
            if not isinstance(value, int) or not INTEGER_LOWEST <= value <= INTEGER_HIGHEST:
                return False
        for name in self.strings:
            if not isinstance(description.get(name), str):
                return False
        return self.truth(description)

    def unset_in(self, description: Description, /) -> tuple[str, ...]:
        """Name the variables without a value, each once, in order of name.

        A value of the wrong type is not among them, although it makes the predicate false as well.
        """
        names = sorted({*self.integers, *self.strings})
        return tuple(name for name in names if not _is_set(description.get(name)))

    def surely(self, machine_class: MachineClass, /) -> bool:
        """Say whether every machine of a class satisfies the predicate; False if one may lack a variable."""
        spans = spans_in(machine_class, integers=self.integers, strings=self.strings)
        return spans is not None and None not in spans.values() and self.class_truth(spans) is True

    def could(self, machine_class: MachineClass, /) -> bool:
        """Say whether some machine of a class may satisfy the predicate."""
        spans = spans_in(machine_class, integers=self.integers, strings=self.strings)
        return spans is not None and self.class_truth(spans) is not False


def parse_predicate(text: str) -> ParsedPredicate:
    """Give the predicate that a text says; the empty text is always true. Raises PredicateError."""
    expression = parse_expression(text)
    uses = uses_of(expression)
    return ParsedPredicate(
        text=text,
        expression=expression,
        integers=tuple(name for name, kind in uses if kind is Kind.INTEGER),
        strings=tuple(name for name, kind in uses if kind is Kind.STRING),
        truth=truth_of(expression),
        class_truth=class_truth_of(expression),
    )


def predicate_parser(text: str) -> Predicate | BadPredicate:
    """Give the predicate of a stranger's text, or say in one line why it is none; a `core.ports.PredicateParser`."""
    # What is too long is refused in no time, and is not worth a place in the cache.
    return _parsed.__wrapped__(text) if is_too_long(text) else _parsed(text)


@lru_cache(maxsize=_CACHED)
def _parsed(text: str) -> Predicate | BadPredicate:
    try:
        return parse_predicate(text)
    except PredicateError as error:
        advice = f" ({error.hint})" if error.hint else ""
        return BadPredicate(f"{error.line}:{error.column}: {error.message}{advice}")


def _is_set(value: Value | None) -> bool:
    # An integer of more than 64 bits cannot have been received: it counts as none.
    return isinstance(value, str) or (isinstance(value, int) and INTEGER_LOWEST <= value <= INTEGER_HIGHEST)
