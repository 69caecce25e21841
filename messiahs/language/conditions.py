"""A predicate of a policy file, ready to be judged over facts; what is undefined makes all of it false (MESSIAHS 5.4).

It is the paper's predicate over readings: defaults, `has`, `like` and scopes are settled when the variables are filled
in, so evaluation itself is the same as that of a task filter.
"""

from dataclasses import dataclass, field

from messiahs.core.attributes import Value
from messiahs.core.vectors import MachineClass
from messiahs.language.class_truth import ClassTruth, Span, Spans, class_truth_of
from messiahs.language.readings import Facts, Impossible, Reading
from messiahs.language.syntax import Expression
from messiahs.language.truth import Truth, truth_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """An expression whose variables are the keys of `readings`; `text` is how it was written, on one line."""

    text: str
    readings: tuple[Reading, ...]
    truth: Truth = field(compare=False, repr=False)
    class_truth: ClassTruth = field(compare=False, repr=False)

    def reads(self, scope: str) -> bool:
        """Say whether anything of a scope is used."""
        return any(reading.scope == scope for reading in self.readings)

    def holds(self, facts: Facts) -> bool:
        """Say whether it is true; False if a reading has no value."""
        values: dict[str, Value] = {}
        for reading in self.readings:
            value = reading.value_in(facts)
            if value is None:
                return False
            values[reading.key] = value
        return self.truth(values)

    def could(self, facts: Facts, scope: str, machine_class: MachineClass, /) -> bool:
        """Say whether it may be true for some machine of a class, which stands for one scope."""
        spans = self._spans(facts, scope, machine_class)
        return spans is not None and self.class_truth(spans) is not False

    def surely(self, facts: Facts, scope: str, machine_class: MachineClass, /) -> bool:
        """Say whether it is true for every machine of a class, which stands for one scope."""
        spans = self._spans(facts, scope, machine_class)
        return spans is not None and None not in spans.values() and self.class_truth(spans) is True

    def unset_in(self, facts: Facts) -> tuple[Reading, ...]:
        """Give the readings without a value, in order of scope and name."""
        unset = [reading for reading in self.readings if reading.value_in(facts) is None]
        return tuple(sorted(unset, key=lambda reading: (reading.scope, reading.name)))

    def _spans(self, facts: Facts, scope: str, machine_class: MachineClass, /) -> Spans | None:
        spans: dict[str, Span] = {}
        for reading in self.readings:
            if reading.scope == scope:
                span = reading.span_in(machine_class)
                if isinstance(span, Impossible):
                    return None
                spans[reading.key] = span
            else:
                value = reading.value_in(facts)
                if value is None:
                    return None
                spans[reading.key] = (value, value)
        return spans


def condition_of(expression: Expression, readings: tuple[Reading, ...], *, text: str) -> Condition:
    """Make an expression over the keys of readings ready to be judged."""
    return Condition(text=text, readings=readings, truth=truth_of(expression), class_truth=class_truth_of(expression))
