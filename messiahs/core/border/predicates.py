"""Predicates that cross a border: they may read only what is shown to the asker (MESSIAHS 4, 5.4).

An accept tells that a predicate holds somewhere, and a denial that it does not: with enough questions, anything that is
hidden could be found out.
"""

from messiahs.core.border.sides import is_hidden
from messiahs.core.interface.messages import SchedRequest
from messiahs.core.interface.predicates import BadPredicate
from messiahs.core.model.ids import SystemId
from messiahs.core.state.hop import SearchRequest
from messiahs.core.state.module import ModuleState

_HIDDEN_OF_TASKS = ("origin", "user")


def why_not_judged(state: ModuleState, request: SearchRequest, /, *, asker: SystemId, at: SystemId) -> str:
    """Return why a neighbor's predicate is not judged at another one or here; empty if it is.

    The text names only attributes that the asker wrote.
    """
    if not is_hidden(state, at, viewer=asker):
        return ""
    text = request.requirement if isinstance(request, SchedRequest) else request.wanting
    predicate = state.parse(text)
    if isinstance(predicate, BadPredicate):
        return ""
    hidden = [name for name in predicate.unset_in({}) if not _is_shown(state, name, request, asker)]
    return f"this border does not show {', '.join(f'${name}' for name in hidden)}" if hidden else ""


def _is_shown(state: ModuleState, name: str, request: SearchRequest, asker: SystemId) -> bool:
    if isinstance(request, SchedRequest):
        return state.policy.disclosure.shows(name, state.neighbors[asker])
    return name not in _HIDDEN_OF_TASKS
