"""Integer arithmetic of policy files: `+ - * /`, over numbers or over the intervals of a class of machines.

A result beyond 64 bits, even an intermediate one, has no value, like an attribute that is unset, and neither has a
quotient whose divisor is 0. Division rounds down. What leaves the host has no arithmetic.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import Final, cast

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Unit, Value
from messiahs.core.vectors.columns import ClassSet, Column, Packed, chosen, column_of, packed
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.runtime.readings import Facts, Reading, Span

Range = tuple[int, int]
Spans = Sequence[Span]
Calculation = Callable[[Spans], Span | None]
"""Returns the numbers that a result may have, of those of the operands; None if it certainly has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An expression over the spans of `readings`, in their order.

    `unit` is the unit of its value; None fits any unit, as for a plain number, a product or a quotient. `key` is a text
    that is equal for equal amounts, and `text` the expression as written, on one line.
    """

    readings: tuple[Reading, ...]
    unit: Unit | None
    key: str
    text: str = field(compare=False)
    operations: int = field(compare=False)
    calculate: Calculation = field(compare=False, repr=False)

    def value_in(self, facts: Facts) -> int | None:
        """Return its value; None if it has none."""
        spans: list[Span] = []
        for reading in self.readings:
            value = reading.value_in(facts)
            if not isinstance(value, int):
                return None
            spans.append((value, value, True))
        result = self.calculate(spans)
        return None if result is None else result[0]

    def ranges_in(self, facts: Facts, scope: str, vector: IndexedVector, classes: ClassSet, /) -> list[Range]:
        """Return its range in each of some classes of a vector, which take the place of `scope`.

        Classes in which it may have no value are left out.
        """
        columns: list[Iterable[Span | None]] = []
        for reading in self.readings:
            if reading.scope == scope:
                columns.append([each and (*each, True) for each in reading.amounts_in(vector)])
                continue
            value = reading.value_in(facts)
            columns.append(repeat((value, value, True) if isinstance(value, int) else None))
        # A constant column is infinite: the classes end the iteration.
        spans = [self.calculate(cast("Spans", row)) for row in chosen(_rows(columns), classes) if None not in row]
        return [(span[0], span[1]) for span in spans if span is not None and span[2]]

    def column_over(self, facts: Facts, scope: str, vector: IndexedVector, /) -> Column | None:
        """Return its range in each class, which takes the place of `scope`; None if a fact that it reads has no value.

        It is unclear in a class of which a machine may have no value.
        """
        columns: list[Iterable[Span | None]] = []
        for reading in self.readings:
            if not reading.is_told_by(facts, scope):
                columns.append(reading.spans_in(vector))
                continue
            value = reading.value_in(facts)
            if not isinstance(value, int):
                return None
            columns.append(repeat((value, value, True)))
        width = len(vector.vector.classes)
        ends: dict[Value, Packed] = {}
        unclear = 0
        for place, row in enumerate(islice(_rows(columns), width)):
            span = None if None in row else self.calculate(cast("Spans", row))
            if span is not None and span[2]:
                for end, both in ((span[0], packed(1 << place, 0, width)), (span[1], packed(0, 1 << place, width))):
                    ends[end] = ends.get(end, 0) | both
            elif span is not None:
                unclear |= 1 << place
        return column_of(ends, unclear=unclear, width=width)

    def __str__(self) -> str:
        return self.text


Operand = Reading | Amount
"""What a variable of a condition stands for."""


def attributes_of(operands: Iterable[Operand], /) -> tuple[Reading, ...]:
    """Return all attributes that operands read, each once, in their order."""
    readings = [reading for each in operands for reading in (each.readings if isinstance(each, Amount) else (each,))]
    return tuple(dict.fromkeys(readings))


def constant(value: int) -> Calculation:
    """Return a calculation whose result is always `value`."""
    return lambda _: (value, value, True)


def chained(first: Calculation, steps: Sequence[tuple[str, Calculation]], /) -> Calculation:
    """Return a calculation that applies operators, of `+ - * /`, from left to right."""
    operations = [(_OPERATIONS[operator], operand) for operator, operand in steps]

    def calculate(spans: Spans) -> Span | None:
        result = first(spans)
        for operation, operand in operations:
            other = operand(spans)
            if result is None or other is None:
                return None
            result = operation(result, other)
            if result is not None and (result[0] < INTEGER_LOWEST or result[1] > INTEGER_HIGHEST):
                result = _within_64_bits(result)
        return result

    return calculate


def _rows(columns: Sequence[Iterable[Span | None]]) -> Iterator[tuple[Span | None, ...]]:
    return zip(*columns, strict=False) if columns else repeat(())


def _sum(one: Span, other: Span) -> Span:
    return (one[0] + other[0], one[1] + other[1], one[2] and other[2])


def _difference(one: Span, other: Span) -> Span:
    return (one[0] - other[1], one[1] - other[0], one[2] and other[2])


def _product(one: Span, other: Span) -> Span:
    (low, high, is_sure), (other_low, other_high, is_other_sure) = one, other
    corners = (low * other_low, low * other_high, high * other_low, high * other_high)
    return (min(corners), max(corners), is_sure and is_other_sure)


def _quotient(one: Span, other: Span) -> Span | None:
    low, high, is_sure = other
    # On each side of 0, a quotient is greatest and least at the ends.
    sides = [(low, min(high, -1)), (max(low, 1), high)]
    divisors = [end for start, stop in sides if start <= stop for end in (start, stop)]
    if not divisors:
        return None
    corners = [a // b for a in one[:2] for b in divisors]
    return (min(corners), max(corners), is_sure and one[2] and not low <= 0 <= high)


def _within_64_bits(span: Span) -> Span | None:
    low, high, _ = span
    if low > INTEGER_HIGHEST or high < INTEGER_LOWEST:
        return None
    return (max(low, INTEGER_LOWEST), min(high, INTEGER_HIGHEST), False)


_OPERATIONS: Final[dict[str, Callable[[Span, Span], Span | None]]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
}


def nothing(spans: Spans) -> Span | None:
    """Return None: a calculation without a value."""
    del spans
    return None
