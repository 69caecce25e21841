"""All machines that a module knows, for what its users are told about their tasks."""

from collections.abc import Iterator

from messiahs.core.model.neighbors import Relation
from messiahs.core.search.routing import reachable, view_behind
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.core.vectors.vectors import MachineClass, Vector, vector_of

_CLASSES_LIMIT = 512
_RELATIONS = (Relation.CHILD, Relation.SIBLING, Relation.PARENT)


def known_machines(state: ModuleState) -> Vector:
    """Return the own machine and those behind all linked neighbors, as they are when a local task is placed.

    At most 512 classes; of more, those of the first neighbors.
    """
    classes: list[MachineClass] = []
    for each in _classes(state):
        if len(classes) == _CLASSES_LIMIT:
            break
        classes.append(each)
    return Vector(tuple(classes))


def _classes(state: ModuleState) -> Iterator[MachineClass]:
    here = own_sdv(state)
    if here is not None:
        yield from vector_of(here).classes
    for neighbor in reachable(state, state.system, _RELATIONS):
        view = view_behind(state, neighbor)
        if view is not None:
            yield from view.message.vector.classes
