"""Integer arithmetic of policy files: `+ - * /`, over numbers or over what a class of machines may say.

An amount is the least and the greatest value that it may have, equal for exact facts. What leaves 64 bits on its
way has no value, as what reads an attribute without one. Division is by literals and rounds down.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import cast

from lark import Token, Tree

from messiahs.core.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Kind, Unit
from messiahs.core.columns import ClassSet, chosen
from messiahs.core.vectors import Vector
from messiahs.language.policy_literals import quantity_of, read_literal
from messiahs.language.policy_parsing import first_token, tokens_in_tree, trees_in
from messiahs.language.policy_predicates import Reader, read_variable
from messiahs.language.policy_problems import Code
from messiahs.language.readings import Facts, Reading
from messiahs.language.vocabulary import View

Range = tuple[int, int]
Ranges = Sequence[Range]
Calculation = Callable[[Ranges], Range | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An expression over the ranges of `readings`, in their order."""

    readings: tuple[Reading, ...]
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

    def ranges_in(self, facts: Facts, scope: str, vector: Vector, classes: ClassSet, /) -> list[Range]:
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


def read_amount(tree: Tree[Token], view: View, reader: Reader, /) -> Amount:
    """Give the amount that an expression says; what it is after a problem is of no use."""
    readings: dict[str, Reading] = {}
    calculate = _calculation(tree, view, reader, readings=readings)
    return Amount(readings=tuple(readings.values()), calculate=calculate)


def _calculation(tree: Tree[Token], view: View, reader: Reader, *, readings: dict[str, Reading]) -> Calculation:
    match tree.data:
        case "quantity":
            return _constant(first_token(tree), reader)
        case "variable":
            reading = read_variable(tree, view, reader, kind=Kind.INTEGER)
            if reading is None:
                return _nothing
            readings.setdefault(reading.key, reading)
            place = list(readings).index(reading.key)
            return lambda ranges: ranges[place]
        case _:
            return _joined(tree, view, reader, readings=readings)


def _constant(token: Token, reader: Reader) -> Calculation:
    value = read_literal(token, reader.notebook).value
    assert isinstance(value, int)
    return lambda _: (value, value)


def _joined(tree: Tree[Token], view: View, reader: Reader, *, readings: dict[str, Reading]) -> Calculation:
    parts = trees_in(tree)
    result = _calculation(parts[0], view, reader, readings=readings)
    for operator, part in zip(tokens_in_tree(tree, "ADD", "MUL"), parts[1:], strict=True):
        if operator == "/" and not _is_divisor(operator, part, reader):
            return _nothing
        result = _step(operator, result, _calculation(part, view, reader, readings=readings))
    return result


def _is_divisor(operator: Token, part: Tree[Token], reader: Reader) -> bool:
    if part.data != "quantity":
        reader.notebook.error(operator, Code.MEANING, "division is by literals only")
        return False
    quantity = quantity_of(first_token(part))
    if quantity.steps == 0 or quantity.unit is not Unit.NONE:
        reader.notebook.error(first_token(part), Code.MEANING, "division is by a plain number, and not by 0")
        return False
    return True


def _step(operator: Token, left: Calculation, right: Calculation) -> Calculation:
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


def _nothing(ranges: Ranges) -> Range | None:
    del ranges
    return None
