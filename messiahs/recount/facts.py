"""The facts of one module at one instant, as the module states them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Value = tuple[int, int] | str | None
"""An attribute of a class: lowest and highest number, a string, or None for strings that differ."""


class Kind(StrEnum):
    """The three kinds of vectors, by their receivers."""

    UP = "for_parents"
    DOWN = "for_children"
    SIDE = "for_siblings"


@dataclass(frozen=True, slots=True, order=True)
class Machines:
    """`count` machines with attributes in the same ranges; some of them lack the attributes in `some_lack`.

    `attributes` and `some_lack` are sorted by name.
    """

    count: int
    attributes: tuple[tuple[str, Value], ...] = ()
    some_lack: tuple[str, ...] = ()

    def holds(self, other: "Machines") -> bool:
        """Return whether every machine of another class may be one of this class.

        What this class does not say is no contradiction: attributes are withheld, and dropped where there are many.
        """
        inner = dict(other.attributes)
        for name, value in self.attributes:
            if (name not in inner or name in other.some_lack) and name not in self.some_lack:
                return False
            if name in inner and not _covers(value, inner[name]):
                return False
        return True


Vector = frozenset[tuple[Machines, int]]
"""A multiset of classes: each with the number of times that it occurs."""

NOTHING: Vector = frozenset()
Key = tuple[str, Kind]
"""A neighbor, and a kind of vector from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The last vector from a neighbor."""

    vector: Vector
    counted: bool | None
    """Whether the sender is counted by the receiver, as it says; None from a parent, or an earlier release."""
    hears: tuple[str, ...] = ()
    """Siblings whose vectors the sender counts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The last vector to a neighbor, and the vectors from which the module says that it computed it."""

    vector: Vector
    counted: bool | None
    own: Vector
    heard: Mapping[Key, Vector]
    is_withheld: bool = False
    """Whether it is empty by the module's policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """The relations of a neighbor to a module; a sibling or child may be a parent, too."""

    is_parent: bool = False
    is_primary_parent: bool = False
    is_child: bool = False
    is_primary_child: bool = False
    is_sibling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """A neighbor of a module, and the vectors exchanged with it."""

    name: str
    relations: Relations
    counted: Relations
    """The relations by which the module sums up now."""
    is_linked: bool = True
    is_leaving: bool = False
    received: Mapping[Kind, Received] = field(default_factory=dict)
    sent: Mapping[Kind, Sent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module; `own` is the vector of its own machine, which has no class if it has none."""

    name: str
    own: Vector
    counted_at: str | None
    """The parent by which the module says that it is counted."""
    is_in_place: bool
    """Whether it says that this is the primary parent of its topology; also without parents."""
    period_ns: int
    neighbors: Mapping[str, Neighbor]

    @property
    def has_machine(self) -> bool:
        """Whether the module has a machine of its own."""
        return bool(self.own)


Modules = Mapping[str, Module]
"""The modules that were read, by name."""


def size_of(vector: Vector) -> int:
    """Return the number of machines in a vector."""
    return sum(one.count * times for one, times in vector)


def _covers(outer: Value, inner: Value) -> bool:
    if outer is None:
        return True
    if isinstance(outer, str) or isinstance(inner, str) or inner is None:
        return outer == inner
    return outer[0] <= inner[0] and inner[1] <= outer[1]
