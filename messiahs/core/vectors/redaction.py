"""What is left out of a vector before it is told: attributes, and how many machines a small class has (MESSIAHS 7.1).

Nothing is made up: counts stay exact, and every machine still lies inside its class. An attribute that is withheld is
in no class, so to its reader it could be anything, and is never sure.
"""

from collections.abc import Collection

from messiahs.core.vectors.compaction import compact
from messiahs.core.vectors.vectors import EMPTY, MachineClass, Vector, coalesce


def without(vector: Vector, names: Collection[str], *, keys: tuple[str, ...]) -> Vector:
    """Give a vector that says nothing of some attributes; classes that are then equal in all `keys` become one."""
    if not any(name in names for each in vector.classes for name, _ in each.attributes):
        return vector
    return coalesce((Vector(tuple(_class_without(each, names) for each in vector.classes)),), keys=keys)


def without_small_classes(vector: Vector, *, keys: tuple[str, ...], least: int) -> Vector:
    """Give a vector of which every class has at least so many machines; of fewer altogether nothing is told.

    Small classes are put together with others as compaction does it, where that loses least.
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
