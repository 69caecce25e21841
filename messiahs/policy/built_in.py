"""The parts that policies may name without an installation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from messiahs.core.interface.parts import PartKind
from messiahs.policy.allocation import AS_ASKED
from messiahs.policy.location import MOST_WAITING, ROUND_ROBIN, WEIGHTED_FREE_SLOTS
from messiahs.policy.migration import LEAST_RUN
from messiahs.policy.parts import DeclaredPart
from messiahs.policy.selection import ARRIVAL
from messiahs.policy.update import KEY_CHANGES

BUILT_IN: Final = (
    KEY_CHANGES,
    WEIGHTED_FREE_SLOTS,
    ROUND_ROBIN,
    MOST_WAITING,
    ARRIVAL,
    LEAST_RUN,
    AS_ASKED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The installed parts, and, by name, the reason why others cannot be used."""

    parts: tuple[DeclaredPart, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Catalogue:
    """The parts that a policy may name: the built-in ones, and those from `find`, which is called on first use."""

    find: Callable[[], Found] = Found

    @cached_property
    def found(self) -> Found:
        """The installed parts."""
        return self.find()

    def of_kind(self, kind: PartKind) -> dict[str, DeclaredPart]:
        """Return the parts of a kind by name."""
        return {part.name: part for part in self._parts if part.kind is kind}

    def kinds_of(self, name: str) -> tuple[PartKind, ...]:
        """Return the kinds of the parts with a name."""
        return tuple(part.kind for part in self._parts if part.name == name)

    @property
    def _parts(self) -> tuple[DeclaredPart, ...]:
        return (*BUILT_IN, *self.found.parts)
