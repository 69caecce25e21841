"""System and task description vectors of one machine and one task (MESSIAHS 5.1, 5.2).

What travels on the update channel, the description of *many* machines, is a `Vector` (see vectors.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from messiahs.core.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, STRING_LIMIT_BYTES, Value

Description = Mapping[str, Value]
"""What a predicate is judged over: attribute names without `$`."""

Pairs = tuple[tuple[str, Value], ...]


def sorted_pairs(description: Description) -> Pairs:
    """Give the pairs in order of name, so that equal descriptions are equal values."""
    return tuple(sorted(description.items()))


def is_valid_value(value: Value) -> bool:
    """Say whether a value is a signed 64-bit integer or a short enough string."""
    if isinstance(value, str):
        return len(value.encode()) <= STRING_LIMIT_BYTES
    return INTEGER_LOWEST <= value <= INTEGER_HIGHEST


@dataclass(frozen=True, slots=True)
class SDV:
    """What one machine says of itself; `pairs` are sorted by name."""

    pairs: Pairs

    def description(self) -> dict[str, Value]:
        """Give the pairs as a new dictionary."""
        return dict(self.pairs)


@dataclass(frozen=True, slots=True)
class TDV:
    """What one task needs; `pairs` are sorted by name and always hold `cpus`, `origin` and `user`.

    Those three are set because one unset variable makes a whole predicate false (MESSIAHS 5.4).
    """

    pairs: Pairs

    def description(self) -> dict[str, Value]:
        """Give the pairs as a new dictionary."""
        return dict(self.pairs)
