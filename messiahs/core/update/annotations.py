"""The annotations of a vector: waiting tasks, tasks that may move, unmet demand, costs, its age (MESSIAHS 7.2).

They cover the same systems as the machines of the vector. One total is computed for all neighbors, and the part that a
child receives itself is subtracted for it: so a parent of a thousand children does not add a thousand numbers for each.

The annotations for a child with another primary parent cover this module and the systems below it, without the child's
own report. Its primary parent reports the systems beside and above, and may count the child's own tasks there: with
those included, the child would request its own tasks again and again.
"""

from collections.abc import Iterable, Mapping

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import Account, Annotations, Count, View
from messiahs.core.update.counting import counting_of
from messiahs.core.update.demand import demand_for
from messiahs.core.update.link_costs import behind_for, path_costs
from messiahs.core.update.missing_links import missing_for, missing_links
from messiahs.core.update.sums import VectorKey, in_down, in_up

_MOST_WAITING = 1_000_000_000
_OLDEST_NS = 24 * HOUR
"""Largest age that is sent: a greater one has no further meaning, and a neighbor could make it overflow its field."""


def account_of(state: ModuleState, views: Mapping[VectorKey, View]) -> Account:
    """Add up the annotations of all neighbors."""
    neighbors = counting_of(state).neighbors.values()
    below = sorted(_heard(views, in_up(neighbors)), key=lambda each: (_since(each[1]), each[0]))
    above = [view for _, view in _heard(views, in_down(neighbors))]
    return Account(
        primary_children=dict(below),
        here=_here(state),
        below=_total(view for _, view in below),
        above=_total(above),
        oldest_above=min(map(_since, above), default=None),
        missing=missing_links(state, views),
        paths=path_costs(state, views),
    )


def kept_from(state: ModuleState, child: SystemId) -> frozenset[SystemId]:
    """Return the primary children that are left out of the vector for a child: itself, and those that it hears."""
    view, neighbors = state.updates.views.get((child, VectorKind.FOR_PARENTS)), counting_of(state).neighbors
    hears = view.message.hears if view is not None else ()
    return frozenset(each for each in (child, *hears) if each in neighbors and neighbors[each].is_primary_child)


def annotations_for(state: ModuleState, account: Account, neighbor: Neighbor, kind: VectorKind, /) -> Annotations:
    """Return the annotations of a vector for a neighbor; none if no machines are revealed to it."""
    if not state.policy.disclosure.reveals_to(neighbor):
        return Annotations()
    count, here = account.below, account.here
    kept_away = kept_from(state, neighbor.system) if kind is VectorKind.FOR_CHILDREN else frozenset()
    if kind is VectorKind.FOR_CHILDREN and counting_of(state).neighbors[neighbor.system].is_primary_child:
        kept = (account.primary_children.get(each) for each in kept_away)
        count = count.plus(account.above).plus(_total(view for view in kept if view is not None), -1)
    elif kind is VectorKind.FOR_CHILDREN:
        count = count._replace(waiting=count.waiting - _waiting_below_stepchild(state, account, neighbor))
    return Annotations(
        waiting=min(_MOST_WAITING, here.waiting + count.waiting),
        makes_room=here.makes_room or count.makes_room > 0,
        lets_go=here.lets_go or count.lets_go > 0,
        missing=missing_for(state, account.missing, neighbor, kind),
        demand=demand_for(state, neighbor, kind),
        behind=behind_for(state, account.paths, neighbor, kind, kept_away),
    )


def oldest_in(state: ModuleState, account: Account, neighbor: Neighbor, kind: VectorKind, /) -> Instant | None:
    """Return the origin time of the oldest part of a vector; None if it holds only the own machine."""
    if kind is not VectorKind.FOR_CHILDREN:
        return oldest_below(account)
    kept = kept_from(state, neighbor.system)
    below = next((_since(view) for child, view in account.primary_children.items() if child not in kept), None)
    return min((each for each in (below, account.oldest_above) if each is not None), default=None)


def oldest_below(account: Account) -> Instant | None:
    """Return the origin time of the oldest part of U; None if it holds only the own machine."""
    return next(map(_since, account.primary_children.values()), None)


def age_ns(oldest: Instant | None, now: Instant) -> int:
    """Return the age of a vector whose oldest part dates from `oldest`."""
    return min(_OLDEST_NS, max(0, now - oldest)) if oldest is not None else 0


def _waiting_below_stepchild(state: ModuleState, account: Account, child: Neighbor) -> int:
    """Return how many tasks waiting below a child of another primary parent are included in the count below.

    The systems of both may overlap, but the reports do not identify tasks. If a primary child reports at least as many
    waiting tasks, those of the child are assumed to be among them.
    """
    view = state.updates.views.get((child.system, VectorKind.FOR_PARENTS))
    waiting = view.message.waiting if view is not None else 0
    is_among = any(one.message.waiting >= waiting for one in account.primary_children.values())
    return waiting if is_among else 0


def _here(state: ModuleState) -> Annotations:
    policy = state.policy
    orders = not policy.selection.keeps_arrival or any(rule.reads_waiting for rule in policy.running)
    # A machine that is not lent is asked as well, so that those who wait learn it.
    is_asked = orders or state.executor.is_withheld
    return Annotations(
        waiting=state.origin.waiting,
        makes_room=is_asked and state.updates.measured is not None and state.membership.drain is None,
        lets_go=policy.transfer.offers_running and any(claim.live for claim in state.executor.claims.values()),
    )


def _heard(views: Mapping[VectorKey, View], keys: Iterable[VectorKey]) -> list[tuple[SystemId, View]]:
    return [(key[0], view) for key in keys if (view := views.get(key)) is not None]


def _since(view: View) -> Instant:
    return Instant(view.received_at - view.message.age_ns)


def _total(views: Iterable[View]) -> Count:
    values = [(view.message.waiting, view.message.makes_room, view.message.lets_go) for view in views]
    return Count(*map(sum, zip(*values, strict=True))) if values else Count()
