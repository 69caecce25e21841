"""Checks across the systems of a topology: names, parents, cycles and addresses (MESSIAHS 5, 7.3)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from messiahs.config.settings import ByteSettings, ConnectionSettings, MachineSettings, MetricsSettings, OtlpSettings
from messiahs.config.topology.borders import bypasses
from messiahs.config.topology.files import NamedFile
from messiahs.config.topology.problems import Place, Problems, nearest, shown_cycle
from messiahs.config.topology.reach import OPEN, dialer, is_border
from messiahs.config.topology.trust import NamedRoots
from messiahs.core.model.names import problem_with_name

ATTRIBUTE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_START = Place(1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A system as the file describes it, with the places that problems may refer to."""

    name: str
    place: Place
    parents: tuple[tuple[str, Place], ...] = ()
    primary: tuple[str, Place] | None = None
    machine: MachineSettings | None = None
    byte_limits: ByteSettings = field(default_factory=ByteSettings)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)
    host: str | None = None
    port: int | None = None
    bulk_port: int | None = None
    address_place: Place = _START
    reach: str = OPEN
    policy: NamedFile | None = None
    is_external: bool = False
    trust: tuple[NamedRoots, ...] = ()
    users: str = ""
    webhook_hosts: tuple[str, ...] = ()
    metrics: MetricsSettings | None = None
    otlp: OtlpSettings | None = None


def check_systems(drafts: tuple[Draft, ...], problems: Problems) -> None:
    """Add every problem that concerns several systems."""
    known = {draft.name for draft in drafts}
    for draft in drafts:
        problem = problem_with_name(draft.name)
        if problem:
            problems.add(draft.place, f"system `{draft.name}`: {problem}")
        _check_parents(draft, known, problems)
        _check_primary(draft, problems)
    _check_borders(drafts, problems)
    _check_externals(drafts, problems)
    _check_addresses(drafts, problems)
    _check_dialed(drafts, problems)
    places = {draft.name: draft.place for draft in drafts}
    for cycle in _cycles(drafts):
        path = shown_cycle(cycle, " -> ")
        problems.add(places[cycle[0]], f"a system cannot be above itself: {path} (each is a child of the next)")


def _check_parents(draft: Draft, known: set[str], problems: Problems) -> None:
    seen: set[str] = set()
    for parent, place in draft.parents:
        if parent == draft.name:
            problems.add(place, f"`{parent}` cannot be its own parent")
        elif parent not in known:
            problems.add(place, f"there is no system `{parent}`{nearest(parent, known - {draft.name})}")
        if parent in seen:
            problems.add(place, f"`{parent}` is listed twice")
        seen.add(parent)


def _check_primary(draft: Draft, problems: Problems) -> None:
    parents = tuple(dict.fromkeys(name for name, _ in draft.parents))
    if draft.primary is None:
        if len(parents) > 1:
            text = f"`{draft.name}` has {len(parents)} parents: add `primary: ` and one of {', '.join(parents)}"
            problems.add(draft.place, text)
        return
    primary, place = draft.primary
    if primary not in parents:
        text = f"the primary parent `{primary}` is not among the parents ({', '.join(parents) or 'there are none'})"
        problems.add(place, text)


def _check_externals(drafts: tuple[Draft, ...], problems: Problems) -> None:
    """Add a problem for each external system that has no link with one of this site: no module would ever show it."""
    parents = {draft.name: {name for name, _ in draft.parents} for draft in drafts}
    own = [draft.name for draft in drafts if not draft.is_external]
    for draft in drafts:
        is_linked = any(name in parents[draft.name] or draft.name in parents[name] for name in own)
        if draft.is_external and own and not is_linked:
            text = (
                f"`{draft.name}` is run by another site, and no system of this site has a link with it: add `parent: ` "
                f"and one of {', '.join(own)}, or make it a parent of one of them"
            )
            problems.add(draft.place, text)


def _check_borders(drafts: tuple[Draft, ...], problems: Problems) -> None:
    parents = {draft.name: tuple(dict.fromkeys(name for name, _ in draft.parents)) for draft in drafts}
    places = {draft.name: dict(draft.parents) for draft in drafts}
    for bypass in bypasses(parents, [draft.name for draft in drafts if is_border(draft)]):
        text = (
            f"`{bypass.system}` is behind the border `{bypass.border}`, and its parent `{bypass.parent}` is not: "
            f"its name would be seen outside; give `{bypass.parent}` `reach: proxy` too, or remove the parent"
        )
        problems.add(places[bypass.system][bypass.parent], text)
    borders = {draft.name for draft in drafts if is_border(draft) and not draft.is_external}
    for draft in drafts:
        for name, place in draft.parents:
            if draft.is_external and name in borders:
                text = (
                    f"`{draft.name}` belongs to another site and would be behind the border `{name}`, which hides "
                    f"nothing from what is behind it; link both sites below or above a system without `reach: proxy`"
                )
                problems.add(place, text)


def _check_addresses(drafts: tuple[Draft, ...], problems: Problems) -> None:
    taken: dict[tuple[str, int], str] = {}
    for draft in drafts:
        if draft.host is None or draft.port is None:
            continue
        for port in filter(None, (draft.port, draft.bulk_port)):
            address = (draft.host.lower(), port)
            if address in taken:
                text = f"{draft.host}:{port} is the address of `{taken[address]}` already"
                problems.add(draft.address_place, text)
            taken.setdefault(address, draft.name)


def _check_dialed(drafts: tuple[Draft, ...], problems: Problems) -> None:
    """Require that one end of every link can dial the other, and an address where that end is external."""
    known = {draft.name: draft for draft in drafts}
    unaddressed: set[str] = set()
    for below in drafts:
        for name, place in below.parents:
            above = known.get(name)
            if above is None:
                continue
            dials = dialer(below, above)
            if dials is None:
                problems.add(place, _undialable(below, above))
                continue
            dialed, relation = (above, "the parent") if dials is below else (below, "a child")
            is_found = dialed.host is not None or not dialed.is_external or dials.is_external
            if not is_found and dialed.name not in unaddressed:
                unaddressed.add(dialed.name)
                text = f"`{dialed.name}` is external and {relation} of `{dials.name}`, which dials it"
                problems.add(dialed.place, f"{text}: add `host` and `port`")


def _undialable(below: Draft, above: Draft) -> str:
    return (
        f"neither `{below.name}` nor its parent `{above.name}` can dial the other: both have `reach: outbound`; "
        "remove it from the one that others can dial, or choose a parent that can be dialed"
    )


def _cycles(drafts: tuple[Draft, ...]) -> Iterator[tuple[str, ...]]:
    """Yield one cycle of each strongly connected group, beginning with its first system in the file."""
    # An expensive import, needed only to check a topology.
    import networkx as nx  # noqa: PLC0415 # see above

    order = {draft.name: position for position, draft in enumerate(drafts)}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for draft in drafts:
        above = (parent for parent, _ in draft.parents if parent in order and parent != draft.name)
        graph.add_edges_from((draft.name, parent) for parent in above)
    for knot in nx.strongly_connected_components(graph):
        if len(knot) > 1:
            first = min(knot, key=order.__getitem__)
            inside = graph.subgraph(knot)
            ways = (nx.shortest_path(inside, above_it, first) for above_it in inside.successors(first))
            yield (first, *min(ways, key=len)[:-1])
