"""A module's neighbors: parents, children and siblings (MESSIAHS 5, 7.3)."""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.model.ids import SystemId


class Relation(StrEnum):
    """What a system is to the one that looks (MESSIAHS 5)."""

    SELF = "self"
    CHILD = "child"
    SIBLING = "sibling"
    PARENT = "parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """A system with a direct link, and everything that it is to this module.

    One system may be several things at once (a sibling that is also a child); siblings share the *primary* parent
    (MESSIAHS 7.3, equation 16). A primary child is one whose primary parent is this module.
    """

    system: SystemId
    is_parent: bool = False
    is_primary_parent: bool = False
    is_child: bool = False
    is_primary_child: bool = False
    is_sibling: bool = False

    @property
    def relation(self) -> Relation:
        """The relation under which tasks are placed with it: its view is the parent's or child's if it is one."""
        if self.is_child:
            return Relation.CHILD
        return Relation.PARENT if self.is_parent else Relation.SIBLING
