"""Durations in a policy file, each with a minimum and a maximum."""

from typing import Final

from lark import Token

from messiahs.core.model.attributes import Unit
from messiahs.core.model.instants import HOUR, MILLISECOND, SECOND
from messiahs.language.syntax.literals import quantity_of
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.quantities import shown

LONGEST_NS: Final = 366 * 24 * HOUR
"""A longer duration means never, which is expressed by omitting the rule."""


def read_duration_ns(
    token: Token,
    notebook: Notebook,
    /,
    *,
    example: str,
    least_ns: int = 0,
    too_short: str = "a duration is not negative",
    most_ns: int = LONGEST_NS,
) -> int | None:
    """Return the nanoseconds of a number; None, with a problem, if it is not a duration or out of range."""
    quantity = quantity_of(token)
    if quantity.unit is not Unit.SECONDS:
        notebook.error(token, Code.DIMENSION, f"`{token}` is not a duration", hint=f"write {example}")
        return None
    duration_ns = quantity.steps * MILLISECOND
    if duration_ns < least_ns:
        notebook.error(token, Code.RANGE, too_short)
        return None
    if duration_ns > most_ns:
        most = shown(most_ns // SECOND, Unit.SECONDS)
        notebook.error(token, Code.RANGE, f"`{token}` is too long", hint=f"it is at most {most}")
        return None
    return duration_ns
