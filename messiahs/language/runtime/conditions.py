"""A predicate of a policy file, ready to be judged over facts; what is undefined makes all of it false (MESSIAHS 5.4).

It is the paper's predicate over readings: defaults, `has`, `like` and scopes are settled when the variables are filled
in, so evaluation itself is the same as that of a task filter.
"""

from dataclasses import dataclass, field

from messiahs.core.model.attributes import Value
from messiahs.core.vectors.columns import NO_CLASS, Column, Judged, constant
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.predicate.class_truth import ClassTruth, class_truth_of
from messiahs.language.predicate.generated_code import Binding
from messiahs.language.predicate.syntax import Expression
from messiahs.language.runtime.readings import Facts, Reading
from messiahs.language.syntax.written import Written, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """An expression whose variables are the keys of `readings`.

    `text` is the rule in which it stands, on one line; `start` is where in the file it begins, counted from 0;
    `written` is how its owner wrote it, None in a file with errors.
    """

    text: str
    readings: tuple[Reading, ...]
    expression: Expression = field(compare=False, repr=False)
    binding: Binding = field(compare=False, repr=False)
    class_truth: ClassTruth = field(compare=False, repr=False)
    written: Written | None = field(default=None, compare=False, repr=False)
    start: int = field(default=0, compare=False, repr=False)

    @property
    def predicate(self) -> str:
        """The predicate as it was written, on one line; the rule in a file with errors."""
        return self.text if self.written is None else text_of(self.written)

    def reads(self, scope: str) -> bool:
        """Say whether anything of a scope is used."""
        return any(reading.scope == scope for reading in self.readings)

    def holds(self, facts: Facts) -> bool:
        """Say whether it is true; False if a reading has no value."""
        values: list[Value] = []
        for reading in self.readings:
            value = reading.value_in(facts)
            if value is None:
                return False
            values.append(value)
        return self.binding.truth()(tuple(values))

    def over(self, facts: Facts, scope: str, vector: IndexedVector, /) -> Judged:
        """Say of which classes it is surely true and of which it could be; each class stands for one scope.

        What the facts say of that scope holds for all of them.
        """
        columns: list[Column] = []
        for reading in self.readings:
            if reading.scope == scope and reading.name not in facts.get(scope, ()):
                columns.append(reading.column_in(vector))
                continue
            value = reading.value_in(facts)
            if value is None:
                return NO_CLASS
            columns.append(constant(value, len(vector.vector.classes)))
        surely, could = self.class_truth(columns)
        return surely & vector.every_class, could & vector.every_class

    def unset_in(self, facts: Facts) -> tuple[Reading, ...]:
        """Give the readings without a value, in order of scope and name."""
        unset = [reading for reading in self.readings if reading.value_in(facts) is None]
        return tuple(sorted(unset, key=lambda reading: (reading.scope, reading.name)))


def condition_of(
    expression: Expression,
    readings: tuple[Reading, ...],
    *,
    text: str,
    written: Written | None = None,
    start: int = 0,
) -> Condition:
    """Make an expression over the keys of readings ready to be judged."""
    places = {reading.key: place for place, reading in enumerate(readings)}
    binding, class_truth = Binding(expression, places), class_truth_of(expression, places)
    return Condition(
        text=text,
        readings=readings,
        expression=expression,
        binding=binding,
        class_truth=class_truth,
        written=written,
        start=start,
    )
