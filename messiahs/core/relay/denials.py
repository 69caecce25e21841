"""Neighbors that show room for tasks and deny them: what they grant, not what they show, decides their rank.

The paper asks the most likely candidate by its vector. A machine that always shows free slots and grants none would be
the first candidate for ever. So a neighbor that has denied a shape of this origin three times in a row, although its
view had shown room for it when it was asked, ranks last for that shape for 10 s, and twice as long with each further
denial, up to 10 min. A place that it grants ends that at once.

An honest neighbor may deny as well: its policy takes no such tasks, or somebody else was faster. So only the same shape
counts, and who ranks last is still asked after all others.
"""

from typing import Final

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant, after
from messiahs.core.model.neighbors import Relation
from messiahs.core.relay.deliveries import full_machines
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Denials, ShapeKey

DENIALS_LIMIT: Final = 1_024
"""Shapes whose denials are remembered, those of each neighbor counted separately."""
IN_A_ROW: Final = 3
"""Denials without a grant between them after which a neighbor ranks last for a shape."""
FIRST_PENALTY_NS: Final = 10 * SECOND
LONGEST_PENALTY_NS: Final = 10 * MINUTE
_REMEMBERED_NS: Final = 2 * LONGEST_PENALTY_NS
_MOST: Final = IN_A_ROW + 6
"""Denials that count; the penalty has its greatest length before."""


def note_denial(state: ModuleState, search: Search, neighbor: SystemId, /, now: Instant) -> None:
    """Count that a neighbor gave no place for a shape of this origin although its view showed room.

    It is not to blame if the machines that showed room may be those that this origin itself leaves out for now. Which
    they are a view does not say, only how many.
    """
    shape = _shape_of(search)
    if shape is None or search.showing <= len(_left_out(state, neighbor, now)):
        return
    denials = state.origin.denials
    before = denials.pop((neighbor, shape), None)
    is_known = before is not None and now - before.latest_at <= _REMEMBERED_NS
    count = before.count + 1 if before is not None and is_known else 1
    denials[neighbor, shape] = Denials(latest_at=now, count=min(count, _MOST))
    if len(denials) > DENIALS_LIMIT:
        del denials[next(iter(denials))]


def note_grant(state: ModuleState, search: Search, neighbor: SystemId, /) -> None:
    """Forget the denials of a shape: the neighbor has given a place for it."""
    shape = _shape_of(search)
    if shape is not None:
        state.origin.denials.pop((neighbor, shape), None)


def only_denies(state: ModuleState, search: Search, neighbor: SystemId, /, now: Instant) -> bool:
    """Return whether a neighbor ranks last for the shape of a search of this origin; False for searches of others."""
    shape = _shape_of(search)
    denials = state.origin.denials.get((neighbor, shape)) if shape is not None else None
    if denials is None or denials.count < IN_A_ROW:
        return False
    length_ns = min(FIRST_PENALTY_NS << (denials.count - IN_A_ROW), LONGEST_PENALTY_NS)
    return now < after(denials.latest_at, length_ns)


def _left_out(state: ModuleState, neighbor: SystemId, now: Instant) -> set[bytes]:
    """Return the marks of the machines behind a neighbor that this origin leaves out for now."""
    avoided = state.origin.avoided.items()
    paused = (mark for (to, mark), each in avoided if to == neighbor and now < each.pause.until)
    return {*paused, *full_machines(state, neighbor)}


def _shape_of(search: Search) -> ShapeKey | None:
    if search.asker.relation is not Relation.SELF or not isinstance(search.request, SchedRequest):
        return None
    return search.request.tdv, search.request.requirement
