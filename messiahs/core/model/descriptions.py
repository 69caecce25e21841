"""System and task description vectors of one machine and one task (MESSIAHS 5.1, 5.2).

A description of *many* machines, as sent on the update channel, is a `Vector` (see vectors.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, STRING_LIMIT_BYTES, Kind, Value
from messiahs.core.model.texts import has_control

Description = Mapping[str, Value]
"""The values over which a predicate is evaluated; attribute names are written without `$`."""

Layout = tuple[tuple[str, Kind | None], ...]
"""The names of a description in order, each with the type of its value; None for an integer beyond 64 bits."""

Pairs = tuple[tuple[str, Value], ...]

INPUT_SIZE: Final = "input_size"


def sorted_pairs(description: Description) -> Pairs:
    """Return the pairs in order of name, so that equal descriptions are equal values."""
    return tuple(sorted(description.items()))


def layout_of(description: Description) -> Layout:
    """Return the layout of a description: it stays the same when only values change."""
    return tuple([(name, _kind_of(value)) for name, value in description.items()])


def _kind_of(value: Value) -> Kind | None:
    if isinstance(value, str):
        return Kind.STRING
    return Kind.INTEGER if INTEGER_LOWEST <= value <= INTEGER_HIGHEST else None


def is_valid_value(value: Value) -> bool:
    """Return whether a value is a signed 64-bit integer, or a short enough string without control characters."""
    if isinstance(value, str):
        return len(value.encode()) <= STRING_LIMIT_BYTES and not has_control(value)
    return INTEGER_LOWEST <= value <= INTEGER_HIGHEST


@dataclass(frozen=True, slots=True)
class SDV:
    """The description of one machine by itself; `pairs` are sorted by name."""

    pairs: Pairs

    def description(self) -> dict[str, Value]:
        """Return the pairs as a new dictionary."""
        return dict(self.pairs)


@dataclass(frozen=True, slots=True)
class TDV:
    """The needs of one task; `pairs` are sorted by name and always hold `cpus`, `origin` and `user`.

    Those three are always set because one unset variable makes a whole predicate false (MESSIAHS 5.4).
    """

    pairs: Pairs

    def description(self) -> dict[str, Value]:
        """Return the pairs as a new dictionary; without an input size, which small inputs do not state, it is 0."""
        return {INPUT_SIZE: 0, **dict(self.pairs)}
