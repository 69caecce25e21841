"""What is left out of a vector before it is told: attributes, and how many machines a small class has (MESSIAHS 7.1).

Nothing is made up: counts stay exact, and every machine still lies inside its class. An attribute that is withheld is
in no class, so to its reader it could be anything, and is never sure.
"""

from collections.abc import Collection, Sequence

from messiahs.core.compaction import BYTE_LIMIT, encoded_size
from messiahs.core.points import Point, Scale, points_of
from messiahs.core.splitting import loss_of
from messiahs.core.vectors import EMPTY, MachineClass, Vector, alike_in, coalesce, hull


def without(vector: Vector, names: Collection[str], *, keys: tuple[str, ...]) -> Vector:
    """Give a vector that says nothing of some attributes; classes that are then equal in all `keys` become one."""
    if not any(name in names for each in vector.classes for name, _ in each.attributes):
        return vector
    return coalesce((Vector(tuple(_class_without(each, names) for each in vector.classes)),), keys=keys)


def without_small_classes(vector: Vector, *, keys: tuple[str, ...], least: int) -> Vector:
    """Give a vector in which every class has at least so many machines, and which leaves its module as it is.

    The smallest class is put together with the one with which that loses least, over and over, as compaction counts
    losses. Of fewer machines than `least` altogether nothing is told.
    """
    if vector.machines < least:
        return EMPTY
    if all(each.count >= least for each in vector.classes):
        return vector
    order = tuple(sorted(keys))
    points, scales = points_of(alike_in(vector.classes, order), order)
    while points[_smallest(points)].merged.count < least or (len(points) > 1 and _is_too_large(points)):
        points = _with_one_less(points, scales)
    return coalesce((_vector(points),), keys=keys)


def _with_one_less(points: list[Point], scales: tuple[Scale, ...]) -> list[Point]:
    place = _smallest(points)
    small, others = points[place], [*points[:place], *points[place + 1 :]]
    added = [loss_of((small, other), scales) - loss_of((other,), scales) for other in others]
    nearest = added.index(min(added))
    others[nearest] = _together(others[nearest], small)
    return others


def _together(one: Point, other: Point) -> Point:
    return one._replace(
        mask=one.mask | other.mask, amounts=one.amounts + other.amounts, merged=hull(one.merged, other.merged)
    )


def _smallest(points: Sequence[Point]) -> int:
    counts = [point.merged.count for point in points]
    return counts.index(min(counts))


def _is_too_large(points: Sequence[Point]) -> bool:
    # A class that holds those of several names has the names of all of them.
    return encoded_size(_vector(points)) > BYTE_LIMIT


def _vector(points: Sequence[Point]) -> Vector:
    return Vector(tuple(point.merged for point in points))


def _class_without(machine_class: MachineClass, names: Collection[str]) -> MachineClass:
    return MachineClass(
        count=machine_class.count,
        attributes=tuple(pair for pair in machine_class.attributes if pair[0] not in names),
        some_lack=tuple(name for name in machine_class.some_lack if name not in names),
    )
