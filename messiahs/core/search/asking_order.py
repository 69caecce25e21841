"""In which order a search for places asks the neighbors, and why (MESSIAHS 6.2: the most likely candidate first)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from messiahs.core.interface.messages import DenyCode, SchedRequest
from messiahs.core.interface.policies import Candidate, Need
from messiahs.core.interface.search_record import LISTED_LIMIT, AskedSystem, LeftOut
from messiahs.core.ledger.accounts import balance_with
from messiahs.core.model.counts import counted
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.relay.claim_relay import leads_toward
from messiahs.core.relay.deliveries import has_lost
from messiahs.core.relay.denials import only_denies
from messiahs.core.relay.reachability import avoided_last, is_last
from messiahs.core.search.routing import reachable, view_behind
from messiahs.core.state.hop import Search
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.acceptance import why_ranked
from messiahs.core.task_filter.matching import fitting, why_not
from messiahs.core.update.link_costs import costs_behind
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY

_FULL: Final = "all in use, and it may make room or reserve several slots"
_HINTED: Final = "asked first: these tasks were requested through it, or a claim whose tasks have to move leads there"


def candidates_for(
    state: ModuleState, search: Search, relations: tuple[Relation, ...], /, *, now: Instant
) -> tuple[Candidate, ...]:
    """Return the neighbors of some relations that may be asked, with their views."""
    indexes, histories = state.updates.indexes, state.updates.histories
    heard = [(neighbor, view_behind(state, neighbor)) for neighbor in reachable(state, search.asker.system, relations)]
    return tuple(
        Candidate(
            system=neighbor.system,
            relation=neighbor.relation,
            view=indexes.of(neighbor.system, view.message.vector if view is not None else EMPTY),
            age_ns=view.age_ns(now) if view is not None else 0,
            has_lost=has_lost(state, neighbor.system, now) or only_denies(state, search, neighbor.system, now),
            balance=balance_with(state, neighbor.system),
            history=histories.facts_of(neighbor.system, now),
            costs=costs_behind(state, neighbor.system, view),
        )
        for neighbor, view in heard
    )


def asking_order(
    state: ModuleState,
    search: Search,
    candidates: tuple[Candidate, ...],
    ranked: tuple[SystemId, ...],
    /,
    *,
    now: Instant,
) -> tuple[SystemId, ...]:
    """Return in which order candidates are asked, `ranked` by the policy, and record why if the search has a record."""
    request, need = search.request, search.need
    assert isinstance(request, SchedRequest), "the search is for places"
    assert need is not None, "a search for places has the needs of a task"
    hinted = _hinted(state, request, candidates)
    full = tuple(_full(state, need, candidates, ranked))
    order = (*hinted, *(system for system in ranked if system not in hinted), *full)
    order = avoided_last(state, search, order, now=now)
    if search.record is not None:
        notes = {**dict.fromkeys(full, _FULL), **dict.fromkeys(hinted, _HINTED)}
        _record(state, search, candidates, order, notes=notes, now=now)
    return order


def _hinted(state: ModuleState, request: SchedRequest, candidates: tuple[Candidate, ...], /) -> tuple[SystemId, ...]:
    """Return the neighbor that sent the answered task_request, which is asked first, whatever its view shows.

    Likewise the one toward a claim whose attempts have to move.
    """
    asked = state.hop.seen.get(request.answers) if request.answers is not None else None
    latest = asked.latest if asked is not None else None
    systems = [each.system for each in candidates]
    return tuple(system for system in systems if system == latest or leads_toward(state, request, system))


def _full(
    state: ModuleState, need: Need, candidates: tuple[Candidate, ...], ranked: tuple[SystemId, ...], /
) -> Iterator[SystemId]:
    """Yield the neighbors without free places that may make room or reserve several slots; they are asked last."""
    already_asked = set(ranked)
    making_room: dict[SystemId, IndexedVector] = {}
    for candidate in candidates:
        view = view_behind(state, state.neighbors[candidate.system])
        may_make_room = view is not None and (view.message.makes_room or need.slots > 1)
        if may_make_room and candidate.system not in already_asked:
            making_room[candidate.system] = candidate.view
    codes = why_not(need, making_room, state.updates.overview)
    yield from (system for system in making_room if codes[system] is DenyCode.NO_CAPACITY)


def _record(
    state: ModuleState,
    search: Search,
    candidates: tuple[Candidate, ...],
    order: tuple[SystemId, ...],
    /,
    *,
    notes: Mapping[SystemId, str],
    now: Instant,
) -> None:
    """Record the order, with what speaks for each place in it; `notes` replace the values of the policy."""
    request, need = search.request, search.need
    assert search.record is not None, "this search is recorded"
    assert isinstance(request, SchedRequest), "the search is for places"
    assert need is not None, "a search for places has the needs of a task"
    named = {each.system: each for each in candidates}
    listed = tuple(named[system] for system in order[:LISTED_LIMIT])
    values = {**why_ranked(state, listed, need, tdv=request.tdv, now=now), **notes}
    asked = tuple(
        AskedSystem(
            system=each.system,
            why="; ".join(
                filter(None, (_shown_room(need, each), values.get(each.system), *_set_backs(state, search, each, now)))
            ),
        )
        for each in listed
    )
    left_out = {each.system: each.view for each in candidates if each.system not in set(order)}
    shown = dict(islice(left_out.items(), LISTED_LIMIT))
    codes = why_not(need, shown, state.updates.overview)
    search.record = replace(
        search.record,
        order=(*search.record.order, *asked),
        left_out=tuple(LeftOut(system=system, code=code) for system, code in codes.items()),
        unlisted=len(order) - len(listed) + len(left_out) - len(shown),
    )


def _set_backs(state: ModuleState, search: Search, candidate: Candidate, now: Instant, /) -> Iterator[str]:
    """Yield why a candidate is asked after others, whatever the policy says."""
    if has_lost(state, candidate.system, now):
        yield "asked late: it has lost or revoked a task lately"
    if only_denies(state, search, candidate.system, now):
        yield "asked late: it has denied such tasks although it showed room"
    if is_last(state, search, candidate.system, now=now):
        yield "asked last: its own machine was not reached lately, or has as many tasks as it may have now"


def _shown_room(need: Need, candidate: Candidate) -> str:
    """Return how many machines behind a candidate have room for the task by its view, and how old that is."""
    surely, could = (candidate.view.machines_in(classes) for classes in fitting(need, candidate.view))
    age, relation = f"{candidate.age_ns / SECOND:.1f} s ago", candidate.relation.value
    if surely == could:
        return f"a {relation} that showed room on {counted(could, 'machine')} {age}"
    sure = f", sure on {surely}," if surely else ""
    return f"a {relation} that showed possible room on {counted(could, 'machine')}{sure} {age}"
