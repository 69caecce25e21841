"""Integer arithmetic of policy files: `+ - * /`, over numbers or over the intervals of a class of machines.

An amount is a range, whose ends are equal for exact facts. A result beyond 64 bits, even an intermediate one, has no
value, like an attribute that is unset. Division is by literals and rounds down.
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

    `unit` is the unit of its value; None fits any unit, as for a plain number, a product or a quotient.
    """

    readings: tuple[Reading, ...]
    unit: Unit | None
    calculate: Calculation = field(compare=False, repr=False)

    def value_in(self, facts: Facts) -> int | None:
        """Return its value; None if it has none."""
        ranges: list[Range] = []
        for reading in self.readings:
            value = reading.value_in(facts)
            if not isinstance(value, int):
                return None
            ranges.append((value, value))
        result = self.calculate(ranges)
        return None if result is None else result[0]

    def ranges_in(self, facts: Facts, scope: str, vector: IndexedVector, classes: ClassSet, /) -> list[Range]:
        """Return its range in each of some classes of a vector, which take the place of `scope`.

        Classes in which it may have no value are left out.
        """
        columns: list[Iterable[Range | None]] = []
        for reading in self.readings:
            value = None if reading.scope == scope else reading.value_in(facts)
            known = (value, value) if isinstance(value, int) else None
            columns.append(reading.amounts_in(vector) if reading.scope == scope else repeat(known))
        rows: Iterable[tuple[Range | None, ...]] = zip(*columns, strict=False) if columns else repeat(())
        # A constant column is infinite: the classes end the iteration.
        ranges = [self.calculate(cast("Ranges", row)) for row in chosen(rows, classes) if None not in row]
        return [ends for ends in ranges if ends is not None]


def constant(value: int) -> Calculation:
    """Return a calculation whose result is always `value`."""
    return lambda _: (value, value)


def combined(operator: str, left: Calculation, right: Calculation, /) -> Calculation:
    """Return `left operator right`, with one of `+ - * /`; a divisor is not 0."""

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
    """Return None: a calculation without a value."""
    del ranges
    return None
