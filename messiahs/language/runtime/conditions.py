"""A compiled predicate of a policy file; an undefined attribute makes all of it false (MESSIAHS 5.4).

It is the paper's predicate over operands: defaults, `has`, `like`, scopes and arithmetic are resolved when the
variables are filled in, so it is evaluated like a task filter.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from messiahs.core.model.attributes import Value
from messiahs.core.vectors.columns import NO_CLASS, Column, Judged
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.predicate.class_truth import ClassTruth, class_truth_of
from messiahs.language.predicate.generated_code import Binding
from messiahs.language.predicate.syntax import Expression
from messiahs.language.runtime.amounts import Operand, attributes_of
from messiahs.language.runtime.readings import HERE, Facts, Reading
from messiahs.language.syntax.written import Written, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """An expression whose variables are the keys of `operands`: attributes, and amounts that are computed of them.

    `readings` are all attributes, also those in amounts. `text` is its rule on one line, `start` the offset of the rule
    in the file, in characters from 0, and `written` its written form, None in a file with errors.
    """

    text: str
    operands: tuple[Operand, ...]
    readings: tuple[Reading, ...]
    expression: Expression = field(compare=False, repr=False)
    binding: Binding = field(compare=False, repr=False)
    class_truth: ClassTruth = field(compare=False, repr=False)
    written: Written | None = field(default=None, compare=False, repr=False)
    start: int = field(default=0, compare=False, repr=False)

    @property
    def predicate(self) -> str:
        """The predicate as written, on one line; the whole rule in a file with errors."""
        return self.text if self.written is None else text_of(self.written)

    def reads(self, scope: str) -> bool:
        """Return whether it reads an attribute of a scope."""
        return any(reading.scope == scope for reading in self.readings)

    def holds(self, facts: Facts) -> bool:
        """Return whether it is true; False if an operand has no value."""
        values: list[Value] = []
        for operand in self.operands:
            value = operand.value_in(facts)
            if value is None:
                return False
            values.append(value)
        return self.binding.truth()(tuple(values))

    def over(self, facts: Facts, scope: str, vector: IndexedVector, /) -> Judged:
        """Return the classes of which it is certainly and possibly true; a class takes the place of `scope`.

        Facts about that scope apply to all classes.
        """
        columns: list[Column] = []
        for operand in self.operands:
            column = operand.column_over(facts, scope, vector)
            if column is None:
                return NO_CLASS
            columns.append(column)
        surely, could = self.class_truth(columns)
        return surely & vector.every_class, could & vector.every_class

    def unset_in(self, facts: Facts) -> tuple[Reading, ...]:
        """Return the readings without a value, in order of scope and name."""
        unset = [reading for reading in self.readings if reading.value_in(facts) is None]
        return tuple(sorted(unset, key=lambda reading: (reading.scope, reading.name)))


@runtime_checkable
class Conditional(Protocol):
    """A compiled part of a policy that decides by conditions."""

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield every condition with its rule; if a rule has several, with the part of the rule around it."""
        ...


def condition_of(
    expression: Expression,
    operands: tuple[Operand, ...],
    *,
    text: str,
    written: Written | None = None,
    start: int = 0,
) -> Condition:
    """Compile an expression over the keys of operands."""
    places = {operand.key: place for place, operand in enumerate(operands)}
    binding, class_truth = Binding(expression, places), class_truth_of(expression, places)
    return Condition(
        text=text,
        operands=operands,
        readings=attributes_of(operands),
        expression=expression,
        binding=binding,
        class_truth=class_truth,
        written=written,
        start=start,
    )


def holds_here(condition: Condition, facts: Facts, *, has_machine: bool, subtree: IndexedVector) -> bool:
    """Return whether a condition on the own system is true; without a machine, of a class of its subtree.

    Facts about the system itself are not looked up in the classes.
    """
    if has_machine or not condition.reads(HERE):
        return condition.holds(facts)
    _, could = condition.over(facts, HERE, subtree)
    return could != 0
