"""Integer arithmetic of policy files: `+ - * /`, over numbers or over what a class of machines may say.

An amount is the least and the greatest value that it may have, equal for exact facts. What leaves 64 bits on its
way has no value, as what reads an attribute without one. Division is by literals and rounds down.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import cast

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Unit
from messiahs.core.vectors.columns import ClassSet, chosen
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.runtime.readings import Facts, Reading

Range = tuple[int, int]
Ranges = Sequence[Range]
Calculation = Callable[[Ranges], Range | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An expression over the ranges of `readings`, in their order.

    `unit` is that of its value; None goes with any, as a plain number, a product or a quotient does.
    """

    readings: tuple[Reading, ...]
    unit: Unit | None
    calculate: Calculation = field(compare=False, repr=False)

    def value_in(self, facts: Facts) -> int | None:
        """Give its value; None if it has none."""
        ranges: list[Range] = []
        for reading in self.readings:
            value = reading.value_in(facts)
            if not isinstance(value, int):
                return None
            ranges.append((value, value))
        result = self.calculate(ranges)
        return None if result is None else result[0]

    def ranges_in(self, facts: Facts, scope: str, vector: IndexedVector, classes: ClassSet, /) -> list[Range]:
        """Give its least and greatest value in some classes of a vector, each of which stands for one scope.

        Classes in which it may have no value are left out.
        """
        columns: list[Iterable[Range | None]] = []
        for reading in self.readings:
            value = None if reading.scope == scope else reading.value_in(facts)
            known = (value, value) if isinstance(value, int) else None
            columns.append(reading.amounts_in(vector) if reading.scope == scope else repeat(known))
        rows: Iterable[tuple[Range | None, ...]] = zip(*columns, strict=False) if columns else repeat(())
        # What is constant is repeated without end: the classes end it.
        ranges = [self.calculate(cast("Ranges", row)) for row in chosen(rows, classes) if None not in row]
        return [ends for ends in ranges if ends is not None]


def constant(value: int) -> Calculation:
    """Give what is always one number."""
    return lambda _: (value, value)


def combined(operator: str, left: Calculation, right: Calculation, /) -> Calculation:
    """Give `left operator right`, with one of `+ - * /`; a divisor is not 0."""

    def calculate(ranges: Ranges) -> Range | None:
        one, other = left(ranges), right(ranges)
        if one is None or other is None:
            return None
        low, high = _combine(operator, one, other)
        return (low, high) if low >= INTEGER_LOWEST and high <= INTEGER_HIGHEST else None

    return calculate


def _combine(operator: str, one: Range, other: Range) -> Range:
    match operator:
        case "+":
            return (one[0] + other[0], one[1] + other[1])
        case "-":
            return (one[0] - other[1], one[1] - other[0])
        case "*":
            corners = [a * b for a in one for b in other]
        case _:
            corners = [a // b for a in one for b in other]
    return (min(corners), max(corners))


def nothing(ranges: Ranges) -> Range | None:
    """Calculate what never has a value."""
    del ranges
    return None
