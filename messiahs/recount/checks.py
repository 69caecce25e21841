"""One check of one equation at one place, and what it found."""

from dataclasses import dataclass
from enum import StrEnum


class What(StrEnum):
    """How a sum deviates from its equation."""

    TWICE = "twice"
    """Machines are counted that were summed up elsewhere already, or that nobody reported."""
    LOST = "lost"
    """Machines are in no class that was sent."""
    OUTSIDE = "outside"
    """Machines are counted, and no class holds them."""
    ALTERED = "altered"
    """What was received is not what was sent."""
    OUTDATED = "outdated"
    """A sum was computed from other vectors than those that were received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A deviation at a module; `machines` are the systems whose machines are concerned, as far as that is known."""

    what: What
    count: int
    machines: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """What was checked: an equation at a module, for a neighbor (the module itself: for itself), and of which kind."""

    module: str
    neighbor: str
    equation: int
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check with its result; without deviations, the equation holds."""

    place: Place
    deviations: tuple[Deviation, ...] = ()
