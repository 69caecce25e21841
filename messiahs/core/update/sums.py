"""The three sums that a module sends: to its parents, its children and its siblings (MESSIAHS 7.2, 7.3).

With the primary parent, every machine is counted at most once in each of them (theorems 1 and 2, corollary 5). Vectors
from a parent never enter those for parents and siblings. A non-primary parent or child is viewed and never summed.

A parent sends a child more than equation 20: D, together with the U of those primary children that the child does not
hear itself (`vector_for` in outgoing.py gives the reason).

`own` is the vector of the own machine, `EMPTY` for a system that has none. `views` holds the last vector of each
neighbor and kind; a missing one counts as empty. The results are coalesced and not compacted.
"""

from collections.abc import Collection, Mapping

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.views import viewed_kind
from messiahs.core.vectors.vectors import EMPTY, Vector, coalesce

VectorKey = tuple[SystemId, VectorKind]
"""A neighbor, and a kind of vector from it."""

Views = Mapping[VectorKey, Vector]


def vector_for_parents(own: Vector, neighbors: Collection[Neighbor], *, views: Views, keys: tuple[str, ...]) -> Vector:
    """Return U (equation 19): the own machine and the vectors of the primary children."""
    return coalesce((own, *_those(views, in_up(neighbors))), keys=keys)


def vector_for_siblings(own: Vector, neighbors: Collection[Neighbor], *, views: Views, keys: tuple[str, ...]) -> Vector:
    """Return S, which is U (equation 21)."""
    return vector_for_parents(own, neighbors, views=views, keys=keys)


def vector_for_children(own: Vector, neighbors: Collection[Neighbor], *, views: Views, keys: tuple[str, ...]) -> Vector:
    """Return D (equation 20): the own machine, and the vectors of the primary parent and of the siblings."""
    return coalesce((own, *_those(views, in_down(neighbors))), keys=keys)


def view_of(neighbor: Neighbor, views: Views) -> Vector:
    """Return the view by which tasks are placed with a neighbor (equation 22); empty before its first vector.

    A sibling that is also a child or parent sends both vectors: its S enters sums, and the view is the child's U or the
    parent's D, because a task may go further there. All parents and children have views, including those that are not
    primary, as stated by the prose of MESSIAHS 7.3, but not by equation 22.
    """
    return views.get((neighbor.system, viewed_kind(neighbor)), EMPTY)


def in_up(neighbors: Collection[Neighbor]) -> tuple[VectorKey, ...]:
    """Return the vectors that U adds to the own machine."""
    return tuple((each.system, VectorKind.FOR_PARENTS) for each in neighbors if each.is_primary_child)


def in_down(neighbors: Collection[Neighbor]) -> tuple[VectorKey, ...]:
    """Return the vectors that D adds to the own machine."""
    parents = tuple((each.system, VectorKind.FOR_CHILDREN) for each in neighbors if each.is_primary_parent)
    return parents + tuple((each.system, VectorKind.FOR_SIBLINGS) for each in neighbors if each.is_sibling)


def _those(views: Views, keys: tuple[VectorKey, ...]) -> tuple[Vector, ...]:
    return tuple(views.get(key, EMPTY) for key in keys)
