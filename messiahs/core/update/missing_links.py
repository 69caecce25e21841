"""Links that are down, which each vector reports, so that origins know why tasks wait.

A system reports its own links upward together with those reported from below, and downward all that it knows. What goes
up never contains what came down, so that no report outlives its cause by going in a circle. Not in the papers.
"""

from collections.abc import Mapping
from dataclasses import replace

from messiahs.core.border.sides import crosses, hides_from
from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.relay.links_down import reported
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import MissingLinks, View
from messiahs.core.update.sums import VectorKey

MISSING_LIMIT = 8


def missing_links(state: ModuleState, views: Mapping[VectorKey, View]) -> MissingLinks:
    """Return the links that are down, by the side from which this module knows of them."""
    upward: list[MissingLink] = []
    downward: list[MissingLink] = []
    # The primary parent chose the address of such a sibling: neither text nor time tells it what answered there.
    unlinked = state.updates.unlinked | {each: "" for each in state.neighbors if state.membership.is_assigned(each)}
    for system, text in sorted(unlinked.items()):
        neighbor = state.neighbors.get(system)
        if neighbor is not None and not state.updates.links.get(system):
            is_inner_child = neighbor.is_child and system not in state.identity.apart
            found = MissingLink(module=state.system, neighbor=system, text=text)
            (downward if is_inner_child else upward).append(found)
    return MissingLinks(
        upward=tuple(upward),
        downward=tuple(downward),
        below=tuple(reported(state, views, is_below=True)),
        elsewhere=tuple(reported(state, views, is_below=False)),
    )


def missing_for(
    state: ModuleState, known: MissingLinks, neighbor: Neighbor, kind: VectorKind, /
) -> tuple[MissingLink, ...]:
    """Return the missing links that are reported to a neighbor, at most `MISSING_LIMIT`; those that lead far first.

    Empty if the policy hides the systems behind a name. Without texts, which may contain addresses and paths, if the
    neighbor is of another site. Of a border, those outside learn its own links to the outside alone.
    """
    if state.policy.disclosure.name_for(neighbor):
        return ()
    if hides_from(state, neighbor.system):
        outside = (each for each in known.upward if not crosses(state, each.neighbor, neighbor.system))
        return tuple(replace(each, text="") for each in outside if each.neighbor != neighbor.system)[:MISSING_LIMIT]
    elsewhere = (each for _, each in known.elsewhere) if kind is VectorKind.FOR_CHILDREN else ()
    below = (each for child, each in known.below if child != neighbor.system)
    found: dict[tuple[SystemId, SystemId], MissingLink] = {}
    for each in (*known.upward, *elsewhere, *known.downward, *below):
        if neighbor.system not in (each.module, each.neighbor):
            found.setdefault((each.module, each.neighbor), each)
    chosen = tuple(found.values())[:MISSING_LIMIT]
    is_apart = neighbor.system in state.identity.apart
    return tuple(replace(each, text="") for each in chosen) if is_apart else chosen
