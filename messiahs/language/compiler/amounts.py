"""Compile the syntax tree of an amount in a policy file to a calculation.

Terms of a sum, and sides of a comparison, have the same unit. A number without a unit fits any other, and so does a
product or a quotient, so that different quantities can be weighed against each other.
"""

from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.model.attributes import Kind, Unit
from messiahs.language.compiler.predicates import Reader, read_variable
from messiahs.language.compiler.vocabulary import View
from messiahs.language.runtime.amounts import Amount, Calculation, combined, constant, nothing
from messiahs.language.runtime.readings import Reading
from messiahs.language.syntax.literals import DIMENSIONS, quantity_of, read_literal
from messiahs.language.syntax.parsing import first_token, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code

_VERBS: Final = {"+": "added to", "-": "taken from"}


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an expression; None as its unit fits any other."""

    calculate: Calculation
    unit: Unit | None = None


def read_amount(tree: Tree[Token], view: View, reader: Reader, /) -> Amount:
    """Return the amount of an expression; meaningless after a problem."""
    readings: dict[str, Reading] = {}
    part = _part(tree, view, reader, readings=readings)
    return Amount(readings=tuple(readings.values()), unit=part.unit, calculate=part.calculate)


def _part(tree: Tree[Token], view: View, reader: Reader, *, readings: dict[str, Reading]) -> _Part:
    match tree.data:
        case "quantity":
            literal = read_literal(first_token(tree), reader.notebook)
            assert isinstance(literal.value, int)
            return _Part(constant(literal.value), None if literal.unit is Unit.NONE else literal.unit)
        case "variable":
            reading = read_variable(tree, view, reader, kind=Kind.INTEGER)
            if reading is None:
                return _Part(nothing)
            readings.setdefault(reading.key, reading)
            place = list(readings).index(reading.key)
            attribute = reader.vocabulary.find(reading.scope, reading.name)
            return _Part(lambda ranges: ranges[place], None if attribute is None else attribute.unit)
        case _:
            return _joined(tree, view, reader, readings=readings)


def _joined(tree: Tree[Token], view: View, reader: Reader, *, readings: dict[str, Reading]) -> _Part:
    parts = trees_in(tree)
    result = _part(parts[0], view, reader, readings=readings)
    for operator, part in zip(tokens_in_tree(tree, "ADD", "MUL"), parts[1:], strict=True):
        if operator == "/" and not _is_divisor(operator, part, reader):
            return _Part(nothing)
        other = _part(part, view, reader, readings=readings)
        unit = _sum_unit(operator, result, other, first_token(part), reader=reader) if operator in _VERBS else None
        result = _Part(combined(operator, result.calculate, other.calculate), unit)
    return result


def _sum_unit(operator: Token, one: _Part, other: _Part, place: Token, /, *, reader: Reader) -> Unit | None:
    """Return the unit of a sum or a difference; None, with a problem, if the units of its sides differ."""
    if one.unit is None or other.unit is None or one.unit is other.unit:
        return other.unit if one.unit is None else one.unit
    message = f"{DIMENSIONS[other.unit]} {_VERBS[operator]} a {DIMENSIONS[one.unit]}"
    hint = "to weigh them against each other, multiply or divide each: $willingness * 10 - $load / 100"
    reader.notebook.error(place, Code.DIMENSION, message, hint=hint)
    return None


def _is_divisor(operator: Token, part: Tree[Token], reader: Reader) -> bool:
    if part.data != "quantity":
        reader.notebook.error(operator, Code.MEANING, "division is by literals only")
        return False
    quantity = quantity_of(first_token(part))
    if quantity.steps == 0 or quantity.unit is not Unit.NONE:
        reader.notebook.error(first_token(part), Code.MEANING, "division is by a plain number, and not by 0")
        return False
    return True
