"""A module's neighbors: parents, children and siblings (MESSIAHS 5, 7.3)."""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.model.ids import SystemId


class Relation(StrEnum):
    """The relation of another system to this one (MESSIAHS 5)."""

    SELF = "self"
    CHILD = "child"
    SIBLING = "sibling"
    PARENT = "parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """A system with a direct link, and all of its relations to this module.

    One system may have several at once (a sibling may also be a child). Siblings share the *primary* parent
    (MESSIAHS 7.3, equation 16). The primary parent of a primary child is this module.
    """

    system: SystemId
    is_parent: bool = False
    is_primary_parent: bool = False
    is_child: bool = False
    is_primary_child: bool = False
    is_sibling: bool = False

    @property
    def relation(self) -> Relation:
        """The relation under which tasks are placed with it: child before parent before sibling."""
        if self.is_child:
            return Relation.CHILD
        return Relation.PARENT if self.is_parent else Relation.SIBLING
