"""Operands of comparisons in a policy file, and the checks that two of them can be compared (amounts.py reads sums)."""

from dataclasses import dataclass

from lark import Token, Tree

from messiahs.core.model.attributes import Attribute, Kind, Unit, Value
from messiahs.language.compiler.reader import Scene
from messiahs.language.predicate.syntax import COMPARATORS, SPELLINGS, Order, Variable
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.readings import Group, Reading
from messiahs.language.syntax.literals import (
    DIMENSIONS,
    MEANINGS,
    Literal,
    check_dimension,
    check_dimensions,
    check_range,
    check_unit,
    in_unit,
    read_literal,
)
from messiahs.language.syntax.parsing import first_token, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, Notebook


@dataclass(frozen=True, slots=True)
class Filled:
    """A variable as an operand; without an attribute if it is unknown."""

    token: Token
    scope: str
    attribute: Attribute | None
    default: Literal | None


@dataclass(frozen=True, slots=True)
class Computed:
    """A sum, a product or a quotient as an operand; `token` is all its words."""

    token: Token
    amount: Amount


WrittenOperand = Filled | Literal | Computed


def read_filled(tree: Tree[Token], scene: Scene) -> Filled | None:
    """Return a variable with its default; None, with a problem, if its name has no meaning here."""
    (token,) = tokens_in_tree(tree, "VARIABLE")
    defaults = [read_literal(first_token(part)) for part in trees_in(tree)]
    known = scene.reader.vocabulary.look_up(token, scene.view, scene.reader.notebook)
    if known is None:
        return None
    default = defaults[0] if defaults else None
    if default is not None and known.attribute is not None:
        default = in_unit(default, known.attribute.unit)
        check_dimension(default, token, known.attribute, notebook=scene.reader.notebook)
    return Filled(token, known.scope, known.attribute, default)


def reading_of(operand: Filled, kind: Kind, *, pattern: str | Group | None = None) -> Reading:
    """Return the reading of a variable."""
    default = operand.default.value if operand.default is not None else None
    return Reading(
        scope=operand.scope,
        name=name_in(operand.token),
        kind=kind,
        default=default,
        pattern=pattern,
        unit=operand.attribute.unit if operand.attribute is not None else Unit.NONE,
    )


def filled_in(operand: WrittenOperand, kind: Kind, scene: Scene, /) -> Variable | Value:
    """Return an operand of the expression, and record what its variable stands for."""
    if isinstance(operand, Literal):
        return operand.value
    read = operand.amount if isinstance(operand, Computed) else reading_of(operand, kind)
    scene.operands[read.key] = read
    return Variable(read.key)


def kinds_of(operand: WrittenOperand) -> tuple[Kind, ...]:
    """Return the types that an operand may have."""
    match operand:
        case Literal():
            return (operand.kind,)
        case Computed():
            return (Kind.INTEGER,)
        case Filled():
            return tuple(Kind) if operand.attribute is None else (operand.attribute.kind,)


def check_operand(operand: WrittenOperand, kind: Kind, scene: Scene, /, *, comparator: Token | None = None) -> None:
    """Note an operand of another type than is compared here, and an attribute compared as both types."""
    notebook = scene.reader.notebook
    other = Kind.STRING if kind is Kind.INTEGER else Kind.INTEGER
    hint = f"write {SPELLINGS[other, COMPARATORS[comparator][1]]} to compare {other}s" if comparator else ""
    article = "a string" if other is Kind.STRING else "an integer"
    what = f"`{comparator}` compares {kind}s" if comparator else f"{kind}s are expected here"
    if not isinstance(operand, Filled):
        if kind not in kinds_of(operand):
            notebook.error(operand.token, Code.TYPE, f"{what}, and this is {article}", hint=hint)
        return
    if operand.default is not None and operand.default.kind is not kind:
        notebook.error(operand.default.token, Code.TYPE, f"{what}, and this is {article}", hint=hint)
    earlier = scene.kinds.setdefault((operand.scope, name_in(operand.token)), kind)
    if operand.attribute is not None and operand.attribute.kind is kind:
        return
    if earlier is not kind:
        message = f"{operand.token} is compared both as a string and as an integer, which is never true"
        notebook.error(operand.token, Code.TWO_TYPES, message)
    elif operand.attribute is not None:
        notebook.error(operand.token, Code.TYPE, f"{what}, and {operand.token} is {article}", hint=hint)


def in_units_of_each_other(left: WrittenOperand, right: WrittenOperand, /) -> tuple[WrittenOperand, WrittenOperand]:
    """Return the sides of a comparison, with a literal in the unit of the other side."""
    return (
        in_unit(left, unit_of(right)) if isinstance(left, Literal) else left,
        in_unit(right, unit_of(left)) if isinstance(right, Literal) else right,
    )


def check_pair(left: WrittenOperand, right: WrittenOperand, order: Order, /, *, notebook: Notebook) -> None:
    """Note dimensions and ranges that do not match."""
    match left, right:
        case (Filled(token, _, Attribute() as attribute), Literal() as literal) | (
            Literal() as literal,
            Filled(token, _, Attribute() as attribute),
        ):
            check_dimension(literal, token, attribute, notebook=notebook)
            check_range(literal, attribute, order=order, notebook=notebook)
        case Filled(token, _, Attribute() as attribute), Filled(other, _, Attribute() as other_attribute):
            check_dimensions((token, attribute), (other, other_attribute), notebook=notebook)
        case (Computed(), _) | (_, Computed()):
            _check_units(left, right, notebook=notebook)
        case _:
            pass


def _check_units(left: WrittenOperand, right: WrittenOperand, *, notebook: Notebook) -> None:
    """Note that an amount is compared with another dimension; a product or a quotient fits any."""
    for literal, other in ((left, right), (right, left)):
        if isinstance(literal, Literal):
            unit = unit_of(other)
            if unit is not None and literal.kind is Kind.INTEGER:
                check_unit(literal, other.token, unit, notebook=notebook)
            return
    units = unit_of(left), unit_of(right)
    if units[0] is None or units[1] is None or units[0] is units[1]:
        return
    message = f"{DIMENSIONS[units[0]]} compared with a {DIMENSIONS[units[1]]}"
    label = f"this is {MEANINGS[units[1]]}, the other side {MEANINGS[units[0]]}"
    notebook.error(right.token, Code.DIMENSION, message, label=label)


def unit_of(operand: WrittenOperand) -> Unit | None:
    """Return the unit of an operand; None fits any other."""
    match operand:
        case Computed():
            return operand.amount.unit
        case Filled():
            is_number = operand.attribute is not None and operand.attribute.kind is Kind.INTEGER
            return operand.attribute.unit if operand.attribute is not None and is_number else None
        case Literal():
            return operand.unit


def name_in(token: Token) -> str:
    """Return the name of a variable without its scope."""
    return token[1:].rpartition(".")[2]
