"""The rounds of waiting tasks, as their users read them."""

from dataclasses import dataclass

from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The search in progress for the tasks of a shape (`is_searching`), or the last one and when the next one begins.

    A change of a neighbor's machines begins it earlier. `asking` is the system whose answer is awaited.
    """

    is_searching: bool
    asking: SystemId | None
    next_at: Instant | None
    search: SearchRecord | None


def round_of(state: ModuleState, tdv: TDV, /, requirement: str) -> Round | None:
    """Return the round of a shape; None if no task of it waits."""
    shape = state.origin.shapes.get((tdv, requirement))
    if shape is None:
        return None
    live = None if shape.request is None else state.hop.searches.get((state.system, shape.request))
    return Round(
        is_searching=shape.phase is ShapePhase.SEARCHING,
        asking=None if live is None else live.asked,
        next_at=state.timers.deadline_of(TimerKind.ROUND, shape.number),
        search=shape.search if live is None or live.record is None else live.record,
    )
