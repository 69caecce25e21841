"""Omitting parts of a vector before it is sent: attributes, and the counts of small classes (MESSIAHS 7.1).

Nothing is invented: counts stay exact, and every machine still lies inside its class. A withheld attribute is absent
from every class, so for a reader it could have any value, and no condition on it is sure.
"""

from collections.abc import Collection

from messiahs.core.vectors.compaction import compact
from messiahs.core.vectors.vectors import EMPTY, MachineClass, Vector, coalesce


def without(vector: Vector, names: Collection[str], *, keys: tuple[str, ...]) -> Vector:
    """Return a vector without some attributes; classes that are then equal in all `keys` are merged."""
    if not any(name in names for each in vector.classes for name, _ in each.attributes):
        return vector
    return coalesce((Vector(tuple(_class_without(each, names) for each in vector.classes)),), keys=keys)


def without_small_classes(vector: Vector, *, keys: tuple[str, ...], least: int) -> Vector:
    """Return a vector in which every class has at least `least` machines; an empty one if there are fewer in all.

    Small classes are merged with others as in compaction, where that loses least.
    """
    if vector.machines < least:
        return EMPTY
    return vector if all(each.count >= least for each in vector.classes) else compact(vector, keys=keys, least=least)


def _class_without(machine_class: MachineClass, names: Collection[str]) -> MachineClass:
    return MachineClass(
        count=machine_class.count,
        attributes=tuple(pair for pair in machine_class.attributes if pair[0] not in names),
        some_lack=tuple(name for name in machine_class.some_lack if name not in names),
    )
