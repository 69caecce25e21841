"""What the waiting and denied tasks of local users lacked, for those who plan capacity (model/demand.py)."""

from messiahs.core.interface.messages import Reason
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape
from messiahs.core.state.views import viewed_kind
from messiahs.core.task_filter.lacking import lacked
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY, vector_of


def note_lack(state: ModuleState, shape: Shape, reasons: tuple[Reason, ...], /) -> None:
    """Remember what the tasks of a shape lacked in the round that was denied for these reasons."""
    updates, here = state.updates, own_sdv(state)
    views = {
        system: updates.indexes.of(system, view.message.vector)
        for system, neighbor in state.neighbors.items()
        if state.has_lasting_link(system) and (view := updates.views.get((system, viewed_kind(neighbor)))) is not None
    }
    shape.lacks = lacked(
        shape.need,
        reasons,
        here=IndexedVector(vector_of(here) if here is not None else EMPTY),
        views=views,
        overview=updates.overview,
    )


def note_denied_at_once(state: ModuleState, shape: Shape, tasks: int, /, now: Instant) -> None:
    """Count waiting tasks of a shape that are denied, if it is known what they lacked."""
    if shape.lacks is not None and tasks:
        state.demand.deny(shape.lacks, tasks, now)
