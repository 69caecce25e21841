"""From the tree of an amount in a policy file to what calculates it."""

from lark import Token, Tree

from messiahs.core.attributes import Kind, Unit
from messiahs.language.blocks.predicates import Reader, read_variable
from messiahs.language.blocks.vocabulary import View
from messiahs.language.rules.amounts import Amount, Calculation, combined, constant, nothing
from messiahs.language.rules.readings import Reading
from messiahs.language.text.literals import quantity_of, read_literal
from messiahs.language.text.parsing import first_token, tokens_in_tree, trees_in
from messiahs.language.text.problems import Code


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
                return nothing
            readings.setdefault(reading.key, reading)
            place = list(readings).index(reading.key)
            return lambda ranges: ranges[place]
        case _:
            return _joined(tree, view, reader, readings=readings)


def _constant(token: Token, reader: Reader) -> Calculation:
    value = read_literal(token, reader.notebook).value
    assert isinstance(value, int)
    return constant(value)


def _joined(tree: Tree[Token], view: View, reader: Reader, *, readings: dict[str, Reading]) -> Calculation:
    parts = trees_in(tree)
    result = _calculation(parts[0], view, reader, readings=readings)
    for operator, part in zip(tokens_in_tree(tree, "ADD", "MUL"), parts[1:], strict=True):
        if operator == "/" and not _is_divisor(operator, part, reader):
            return nothing
        result = combined(operator, result, _calculation(part, view, reader, readings=readings))
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
