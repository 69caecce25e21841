"""Recording what a search for the tasks of local users asks and is answered; a search of others records nothing."""

from messiahs.core.interface.messages import Reason
from messiahs.core.interface.search_record import AskedSystem
from messiahs.core.model.ids import SystemId
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState

_OWN_FIRST = "the own machine is asked first"


def note_here(state: ModuleState, search: Search, /, *, places: int = 0, reason: Reason | None = None) -> None:
    """Record that the own machine granted places, or the reason why it granted none."""
    if search.record is not None:
        search.record = search.record.with_first(AskedSystem(system=state.system, why=_OWN_FIRST))
    if reason is None:
        note_places(search, state.system, places=places)
    else:
        note_denied(search, state.system, (reason,))


def note_asked(search: Search, system: SystemId, /) -> None:
    """Record that a neighbor is being asked."""
    if search.record is not None:
        search.record = search.record.asking(system)


def note_places(search: Search, system: SystemId, /, *, places: int) -> None:
    """Record that places were granted through a neighbor."""
    if search.record is not None:
        search.record = search.record.granted(system, places=places)


def note_denied(search: Search, system: SystemId, reasons: tuple[Reason, ...], /) -> None:
    """Record that a neighbor granted nothing, or nothing more, for these reasons, or was not asked because of them."""
    if search.record is not None:
        search.record = search.record.denied(system, reasons)


def hand_to_origin(state: ModuleState, search: Search) -> None:
    """Let the shape for which a search asks have its record, as far as it has come."""
    shape = state.origin.requests.get(search.request.id) if search.record is not None else None
    if shape is not None:
        shape.search = search.record
