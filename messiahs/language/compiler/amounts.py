"""Compile the syntax tree of an amount in a policy file to a calculation.

Terms of a sum, and sides of a comparison, have the same unit. A number without a unit fits any other, and so does a
product or a quotient, so that different quantities can be weighed against each other. The difference of two dates, or
of two times of day, is a plain number.
"""

from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.model.attributes import Kind, Unit
from messiahs.language.compiler.constant_predicates import span_of
from messiahs.language.compiler.operands import check_operand, read_filled, reading_of
from messiahs.language.compiler.reader import Reader, Scene
from messiahs.language.compiler.vocabulary import View
from messiahs.language.runtime.amounts import Amount, Calculation, chained, constant, nothing
from messiahs.language.runtime.readings import Reading
from messiahs.language.syntax.literals import DIMENSIONS, read_literal
from messiahs.language.syntax.parsing import first_token, on_one_line, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code

_VERBS: Final = {"+": "added to", "-": "taken from"}
_POINTS: Final = frozenset({Unit.CLOCK, Unit.DATE})
"""Units of points in time, whose differences are plain numbers of minutes or days."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an expression; None as its unit fits any other, and `key` is equal for equal parts."""

    calculate: Calculation
    key: str
    unit: Unit | None = None
    operations: int = 0


def read_amount(tree: Tree[Token], view: View, reader: Reader, /) -> Amount:
    """Return the amount of an expression; meaningless after a problem."""
    return amount_in(tree, Scene(reader=reader, view=view))


def amount_in(tree: Tree[Token], scene: Scene, /) -> Amount:
    """Return the amount of an expression in a predicate; meaningless after a problem."""
    readings: dict[str, Reading] = {}
    part = _part(tree, scene, readings=readings)
    words = tuple(tree.scan_values(lambda value: isinstance(value, Token)))
    return Amount(
        readings=tuple(readings.values()),
        unit=part.unit,
        key=part.key,
        text=on_one_line(words),
        operations=part.operations,
        calculate=part.calculate,
    )


def _part(tree: Tree[Token], scene: Scene, *, readings: dict[str, Reading]) -> _Part:
    match tree.data:
        case "quantity":
            literal = read_literal(first_token(tree))
            assert isinstance(literal.value, int)
            unit = None if literal.unit is Unit.NONE else literal.unit
            return _Part(constant(literal.value), str(literal.value), unit)
        case "variable":
            return _variable(tree, scene, readings=readings)
        case _:
            return _joined(tree, scene, readings=readings)


def _variable(tree: Tree[Token], scene: Scene, *, readings: dict[str, Reading]) -> _Part:
    filled = read_filled(tree, scene)
    if filled is None:
        return _Part(nothing, "")
    check_operand(filled, Kind.INTEGER, scene)
    reading = reading_of(filled, Kind.INTEGER)
    readings.setdefault(reading.key, reading)
    place = list(readings).index(reading.key)
    is_number = filled.attribute is not None and filled.attribute.kind is Kind.INTEGER
    unit = filled.attribute.unit if filled.attribute is not None and is_number else None
    return _Part(lambda spans: spans[place], reading.key, unit)


def _joined(tree: Tree[Token], scene: Scene, *, readings: dict[str, Reading]) -> _Part:
    trees = trees_in(tree)
    first = _part(trees[0], scene, readings=readings)
    unit, key, operations = first.unit, first.key, first.operations
    steps: list[tuple[str, Calculation]] = []
    for operator, each in zip(tokens_in_tree(tree, "ADD", "MUL"), trees[1:], strict=True):
        other = _part(each, scene, readings=readings)
        if operator == "/" and other.key == "0":
            scene.reader.notebook.error(first_token(each), Code.MEANING, "a division by 0 has no value")
        unit = _sum_unit(operator, unit, other.unit, span_of(each), reader=scene.reader) if operator in _VERBS else None
        key = f"({key} {operator} {other.key})"
        operations += 1 + other.operations
        steps.append((str(operator), other.calculate))
    return _Part(chained(first.calculate, steps), key, unit, operations) if steps else first


def _sum_unit(operator: str, one: Unit | None, other: Unit | None, place: Token, /, *, reader: Reader) -> Unit | None:
    """Return the unit of a sum or a difference; None, with a problem, if the units of its sides differ."""
    if one is other:
        return None if operator == "-" and one in _POINTS else one
    if one is None or other is None:
        return other if one is None else one
    message = f"{DIMENSIONS[other]} {_VERBS[operator]} a {DIMENSIONS[one]}"
    hint = "to weigh them against each other, multiply or divide each: $willingness * 10 - $load / 100"
    reader.notebook.error(place, Code.DIMENSION, message, hint=hint)
    return None
