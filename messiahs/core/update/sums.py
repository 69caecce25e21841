"""The three sums that a module sends: to its parents, its children and its siblings (MESSIAHS 7.2, 7.3).

With the primary parent, every machine stands at most once in each of them (theorems 1 and 2, corollary 5). What comes
from a parent never goes into what parents and siblings get. A non-primary parent or child is viewed and never summed.

What a parent sends one child is more than equation 20: D, and beside it the U of those primary children that the child
does not hear itself (`vector_for` in outgoing.py, which says why).

`own` is the vector of the own machine, `EMPTY` for a system that has none. `views` holds what each neighbor sent last;
what was not heard counts as nothing. The results are coalesced and not compacted.
"""

from collections.abc import Collection, Mapping

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.vectors import EMPTY, Vector, coalesce

Heard = tuple[SystemId, VectorKind]
"""What one neighbor says in one kind of vector."""

Views = Mapping[Heard, Vector]


def vector_for_parents(own: Vector, neighbors: Collection[Neighbor], *, views: Views, keys: tuple[str, ...]) -> Vector:
    """Give U (equation 19): the own machine and what the primary children say."""
    return coalesce((own, *_those(views, in_up(neighbors))), keys=keys)


def vector_for_siblings(own: Vector, neighbors: Collection[Neighbor], *, views: Views, keys: tuple[str, ...]) -> Vector:
    """Give S, which is U (equation 21)."""
    return vector_for_parents(own, neighbors, views=views, keys=keys)


def vector_for_children(own: Vector, neighbors: Collection[Neighbor], *, views: Views, keys: tuple[str, ...]) -> Vector:
    """Give D (equation 20): the own machine, what the primary parent says, and what the siblings say."""
    return coalesce((own, *_those(views, in_down(neighbors))), keys=keys)


def view_of(neighbor: Neighbor, views: Views) -> Vector:
    """Give the view by which tasks are placed with a neighbor (equation 22), empty if it said nothing yet.

    A sibling that is a child or parent too sends both vectors: its S enters sums, and the view is the child's U or the
    parent's D, because a task may go further there. All parents and children have views, also those that are not
    primary, as the prose of MESSIAHS 7.3 says and equation 22 does not.
    """
    return views.get((neighbor.system, viewed_kind(neighbor)), EMPTY)


def viewed_kind(neighbor: Neighbor) -> VectorKind:
    """Say which of the vectors that a neighbor sends is the view by which tasks are placed with it."""
    if neighbor.is_child:
        return VectorKind.FOR_PARENTS
    return VectorKind.FOR_CHILDREN if neighbor.is_parent else VectorKind.FOR_SIBLINGS


def in_up(neighbors: Collection[Neighbor]) -> tuple[Heard, ...]:
    """Name what stands in U beside the own machine."""
    return tuple((each.system, VectorKind.FOR_PARENTS) for each in neighbors if each.is_primary_child)


def in_down(neighbors: Collection[Neighbor]) -> tuple[Heard, ...]:
    """Name what stands in D beside the own machine."""
    parents = tuple((each.system, VectorKind.FOR_CHILDREN) for each in neighbors if each.is_primary_parent)
    return parents + tuple((each.system, VectorKind.FOR_SIBLINGS) for each in neighbors if each.is_sibling)


def _those(views: Views, keys: tuple[Heard, ...]) -> tuple[Vector, ...]:
    return tuple(views.get(key, EMPTY) for key in keys)
