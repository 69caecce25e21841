"""Why the own machine grants no place for a request: for its asker, for the task, and for the machine's owner."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from messiahs.core.interface.messages import DenyCode, Reason, SchedRequest
from messiahs.core.interface.policies import Accepted, Asker, Candidate, Need, Refused
from messiahs.core.interface.request_counts import Gate
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.search.routing import HOPEFUL
from messiahs.core.search.search_notes import note_here
from messiahs.core.search.unwanted import Bar
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.acceptance import refusal_of
from messiahs.core.task_filter.containment import why_not_brought, why_not_foreign
from messiahs.core.task_filter.counted_texts import in_use_text, too_few_text
from messiahs.core.task_filter.largest import largest_text
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.core.task_filter.matching import unmet_text, why_not, why_not_here
from messiahs.core.task_filter.maxima import why_beyond
from messiahs.core.task_filter.withheld import is_withheld_from, why_withheld
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import vector_of

_GATES: Final[Mapping[DenyCode, Gate]] = MappingProxyType(
    {DenyCode.NO_CLASS: Gate.TOO_SMALL, DenyCode.REQUIREMENT_UNMET: Gate.UNMET}
)

_RULE: Final = Gate.RULE
"""As a name of its own, since each refused request needs it, and members of enums are found slowly."""


class NotHere(NamedTuple):
    """The own machine, and why it takes no such task now, by its size, its state and what it contains tasks with."""

    here: SDV
    code: DenyCode
    text: str


NoPlace = Refused | NotHere | None
"""Why the own machine grants no place: a rule of the policy, or the machine; None: there is no machine."""


def subject_of(search: Search) -> tuple[SchedRequest, Need]:
    """Return the request of a search for places, and the needs of one of its tasks."""
    assert isinstance(search.request, SchedRequest), "the search is for places"
    assert search.need is not None, "a search for places has the needs of a task"
    return search.request, search.need


def why_none_here(state: ModuleState, search: Search, verdict: Accepted | Refused, /, *, now: Instant) -> NoPlace:
    """Return why the own machine takes no such task now: the policy refuses it, or the machine; None without one."""
    if isinstance(verdict, Refused):
        return verdict
    here = own_sdv(state)
    return None if here is None else NotHere(here, *_of_own_machine(state, search, here, now=now))


def own_reason(
    state: ModuleState,
    search: Search,
    own: NoPlace,
    candidates: tuple[Candidate, ...],
    /,
    *,
    ranked: tuple[SystemId, ...],
    now: Instant,
) -> Reason:
    """Return why this module grants no places: its policy, its machine, or those of neighbors that are left out."""
    request, need = subject_of(search)
    if isinstance(own, Refused):
        return refusal_of(state, request.tdv, search.asker, own, slots=need.slots, now=now)
    # The policy ranks only the candidates that could hold the task.
    could_hold = set(ranked)
    left_out = {each.system: each.view for each in candidates if each.system not in could_hold}
    codes = (DenyCode.NO_CLASS, *why_not(need, left_out, state.updates.overview).values())
    code, text = min(codes, key=HOPEFUL.index), ""
    if own is not None:
        code = min(code, own.code, key=HOPEFUL.index)
        # Next to a code that is true of others alone, it would mislead.
        text = own.text if code is own.code else ""
    if search.asker.relation is Relation.SELF:
        # For others it could be what the policy withholds from them.
        own_view = {} if own is None else {state.system: IndexedVector(vector_of(own.here))}
        views = {**left_out, **own_view}
        # While others are still to be asked, those that are left out do not have all things.
        are_busy = code is DenyCode.NO_CAPACITY and not ranked
        things = in_use_text(need, views.values()) if are_busy else ""
        text = "; ".join(filter(None, (text, too_few_text(need, views), things)))
        if code is DenyCode.NO_CLASS and not text and not ranked:
            text = largest_text(need, views.values())
    return Reason(module=state.system, code=code, text=text)


def note_none_here(state: ModuleState, search: Search, own: NoPlace, bar: Bar | None, /) -> None:
    """Record for a local task why the own machine has granted nothing; nothing is recorded of a module without one."""
    if search.record is None:
        return
    if isinstance(own, Refused) or bar is not None:
        note_here(state, search, reason=search.reason)
    elif own is not None:
        note_here(state, search, reason=Reason(module=state.system, code=own.code, text=own.text))


def count_none_here(state: ModuleState, search: Search, own: NoPlace, bar: Bar | None, /, *, now: Instant) -> None:
    """Count for the owner what has kept a request from the own machine."""
    request, _ = subject_of(search)
    if isinstance(own, Refused):
        count_refused(state, request, search.asker, own, search.reason.why, now=now)
        return
    gate, why = (Gate.NO_MACHINE, "") if own is None else _gate_of(state, search, own, bar)
    state.request_tally.refuse(search.asker.system, request, (gate, ""), why=why, now=now)


def count_refused(
    state: ModuleState, request: SchedRequest, asker: Asker, verdict: Refused, why: str, /, *, now: Instant
) -> None:
    """Count for the owner a request that a rule of the policy has refused, with the values found."""
    state.request_tally.refuse(asker.system, request, (_RULE, verdict.rule), why=why or verdict.text, now=now)


def _gate_of(state: ModuleState, search: Search, own: NotHere, bar: Bar | None) -> tuple[Gate, str]:
    """Return what keeps an accepted request from the own machine: first that it does not fit, then the rest."""
    if own.code is DenyCode.REFUSED_BY_POLICY:
        gate = Gate.NOT_LENT if is_withheld_from(state, search.asker.system) else Gate.OTHER_SITE
    elif own.code in _GATES:
        gate = _GATES[own.code]
    elif bar is not None:
        return bar
    else:
        gate = Gate.NO_ROOM if state.executor.reservation is None else Gate.RESERVED
    return gate, own.text


def _of_own_machine(state: ModuleState, search: Search, here: SDV, /, *, now: Instant) -> tuple[DenyCode, str]:
    """Return why the own machine, which the policy does not withhold, takes no such task now."""
    request, need = subject_of(search)
    beyond = why_beyond(request.tdv, state.identity.maxima)
    if beyond:
        return DenyCode.NO_CLASS, beyond
    code = why_not_here(need, here.description())
    if code is DenyCode.REQUIREMENT_UNMET:
        return code, unmet_text(need, here.description(), is_own=search.asker.relation is Relation.SELF)
    if code is DenyCode.NO_CAPACITY:
        withheld = why_withheld(state, search.asker.system)
        if refused := withheld or why_not_foreign(state, is_foreign=request.is_foreign):
            return DenyCode.REFUSED_BY_POLICY, refused
        if unbrought := why_not_brought(state, request.tdv, now=now):
            return DenyCode.REQUIREMENT_UNMET, unbrought
    return code, ""
