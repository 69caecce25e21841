"""Checks of a literal against an attribute: type, dimension and range."""

from dataclasses import dataclass
from typing import Final

from lark import Token

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Attribute, Kind, Unit, Value
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.predicate.syntax import Order
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.quantities import Quantity, read_quantity, shown

_MILLISECONDS: Final = 1000
DIMENSIONS: Final = {
    Unit.NONE: "plain number",
    Unit.BYTES: "size",
    Unit.SECONDS: "duration",
    Unit.MILLISECONDS: "duration in milliseconds",
    Unit.SHARE: "percentage",
    Unit.CLOCK: "time of day",
    Unit.DATE: "date",
}
MEANINGS: Final = {
    Unit.NONE: "a plain number",
    Unit.BYTES: "a size in bytes",
    Unit.SECONDS: "a duration in seconds",
    Unit.MILLISECONDS: "a duration in milliseconds",
    Unit.SHARE: "a percentage",
    Unit.CLOCK: "a time of day",
    Unit.DATE: "a date",
}
EXAMPLES: Final = {
    Unit.NONE: "it is written without a unit",
    Unit.BYTES: "sizes are written 8MB or 8MiB",
    Unit.SECONDS: "durations are written 90s, 15min or 2h",
    Unit.MILLISECONDS: "round trips are written 20ms or 2s",
    Unit.SHARE: "percentages are written 30% or 12.5%",
    Unit.CLOCK: "times of day are written 7:00 or 20:00",
    Unit.DATE: "dates are written 2026-12-24",
}


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written; `token` is its position."""

    value: Value
    unit: Unit
    token: Token

    @property
    def kind(self) -> Kind:
        """Its type."""
        return Kind.STRING if isinstance(self.value, str) else Kind.INTEGER


def quantity_of(token: Token) -> Quantity:
    """Return the quantity of a number that the scanner accepted."""
    quantity = read_quantity(token)
    assert isinstance(quantity, Quantity), "the scanner refuses other words"
    return quantity


def read_literal(token: Token) -> Literal:
    """Return the value of a literal; a duration is in seconds, or in milliseconds if they are not whole."""
    if token.type == "TEXT":
        return Literal(unescaped(token), Unit.NONE, token)
    quantity = quantity_of(token)
    if quantity.unit is not Unit.SECONDS:
        return Literal(quantity.steps, quantity.unit, token)
    if quantity.steps % _MILLISECONDS:
        return Literal(quantity.steps, Unit.MILLISECONDS, token)
    return Literal(quantity.steps // _MILLISECONDS, Unit.SECONDS, token)


def in_unit(literal: Literal, unit: Unit | None, /) -> Literal:
    """Return a literal as it is compared with a value in `unit`: a duration of whole seconds may be in milliseconds."""
    if unit is not Unit.MILLISECONDS or literal.unit is not Unit.SECONDS or isinstance(literal.value, str):
        return literal
    return Literal(literal.value * _MILLISECONDS, unit, literal.token)


def check_dimension(literal: Literal, variable: Token, attribute: Attribute, /, *, notebook: Notebook) -> None:
    """Note a literal whose dimension differs from its attribute's, and warn about a number without a unit."""
    if literal.kind is attribute.kind:
        check_unit(literal, variable, attribute.unit, notebook=notebook)


def check_unit(literal: Literal, other: str, unit: Unit, /, *, notebook: Notebook) -> None:
    """Note a literal whose dimension differs from that of the other side, and warn about a number without a unit."""
    if literal.unit is unit:
        return
    if literal.unit is Unit.NONE:
        if literal.value != 0:
            assert isinstance(literal.value, int)
            written = shown(literal.value, unit)
            message = f"{other} is {MEANINGS[unit]}: {literal.value} means {written}"
            notebook.warning(literal.token, Code.BARE_NUMBER, message, hint=f"write {written}")
        return
    if (unit, literal.unit) == (Unit.SECONDS, Unit.MILLISECONDS):
        message = f"`{literal.token}` is not a whole number of seconds"
        notebook.error(literal.token, Code.NUMBER, message, hint="ms is for `timeouts` and for round trips")
        return
    message = f"{DIMENSIONS[unit]} compared with a {DIMENSIONS[literal.unit]}"
    label = f"{DIMENSIONS[literal.unit]}; {other} is {MEANINGS[unit]}"
    notebook.error(literal.token, Code.DIMENSION, message, label=label, hint=EXAMPLES[unit])


def check_dimensions(left: tuple[Token, Attribute], right: tuple[Token, Attribute], *, notebook: Notebook) -> None:
    """Note a comparison of two attributes with different dimensions."""
    (left_token, left_attribute), (right_token, right_attribute) = left, right
    if left_attribute.unit is not right_attribute.unit and left_attribute.kind is right_attribute.kind:
        message = f"{DIMENSIONS[left_attribute.unit]} compared with a {DIMENSIONS[right_attribute.unit]}"
        label = f"{right_token} is {MEANINGS[right_attribute.unit]}, {left_token} is {MEANINGS[left_attribute.unit]}"
        notebook.error(right_token, Code.DIMENSION, message, label=label)


def check_range(literal: Literal, attribute: Attribute, *, order: Order | None, notebook: Notebook) -> None:
    """Note a literal outside of the attribute's range; a bound of an order may lie one step beyond it."""
    if isinstance(literal.value, str):
        if attribute.choices and order in {Order.EQUAL, Order.NOT_EQUAL} and literal.value not in attribute.choices:
            hint = f"${attribute.name} is one of {', '.join(attribute.choices)}"
            notebook.error(literal.token, Code.RANGE, f"`{literal.token}` is out of range", hint=hint)
        return
    if attribute.kind is Kind.STRING:
        return
    low, high = range_of(attribute)
    slack = 0 if order in {None, Order.EQUAL, Order.NOT_EQUAL} else 1
    if not low - slack <= literal.value <= high + slack:
        notebook.error(literal.token, Code.RANGE, f"`{literal.token}` is out of range", hint=bounds_text(attribute))


def range_of(attribute: Attribute) -> tuple[int, int]:
    """Return the lowest and the highest value of an attribute; sizes and shares are never negative."""
    # A duration may be negative: the balance with a neighbor is one.
    lowest = 0 if attribute.unit in {Unit.BYTES, Unit.SHARE, Unit.CLOCK} else INTEGER_LOWEST
    return (
        lowest if attribute.low is None else attribute.low,
        INTEGER_HIGHEST if attribute.high is None else attribute.high,
    )


def bounds_text(attribute: Attribute) -> str:
    """Return the text for the range of an integer attribute that has at least one bound."""
    low, high = range_of(attribute)
    least, greatest = shown(low, attribute.unit), shown(high, attribute.unit)
    if high == INTEGER_HIGHEST:
        return f"${attribute.name} is never below {least}"
    if low == INTEGER_LOWEST:
        return f"${attribute.name} is never above {greatest}"
    return f"${attribute.name} ranges from {least} to {greatest}"
