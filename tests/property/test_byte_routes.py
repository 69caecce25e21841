"""The way of bytes over any line of modules and sites ends at the executor, and each leg is open and allowed."""

from dataclasses import dataclass, replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.interface.messages import SchedAccept, SchedRequest
from messiahs.core.interface.rows import GrantedClaimRow, HeldClaimRow, PassedClaimRow
from messiahs.core.model.ids import ClaimId, Epoch, MessageId, SystemId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.routes import Leg, Splice
from messiahs.core.model.trust import OtherRoots, Trust, are_introduced, trust_each_other
from messiahs.core.queries import Here, byte_leg
from messiahs.core.relay.byte_route import choose_way, hop_route, leg_of, offered_on, route_of, splice_leg, with_dialer
from messiahs.core.relay.splices import is_anchored, is_spliced
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.matching import need_of
from messiahs.language.predicate.predicates import predicate_parser
from tests.unit.core.rig import LEASE_NS, make_module, request, tdv

NOW = Instant(0)
LONGEST = 7


@dataclass(frozen=True, kw_only=True)
class Line:
    """Modules in a row from an origin to an executor; a claim was granted along them."""

    states: tuple[ModuleState, ...]
    held: HeldClaimRow


def _key(system: SystemId) -> bytes:
    return system.encode().ljust(16, b"k")


@st.composite
def lines(draw: st.DrawFn, *, may_be_introduced: bool = True, ends_are_introduced: bool = False) -> Line:
    """Draw the sites of up to seven modules, and the pairs of sites that were introduced to each other."""
    count = draw(st.integers(2, LONGEST))
    site, sites = 0, [0]
    for is_boundary in draw(st.lists(st.booleans(), min_size=count - 1, max_size=count - 1)):
        site += is_boundary
        sites.append(site)
    pairs = [(one, other) for one in range(site + 1) for other in range(one)]
    introduced = {pair for pair in pairs if may_be_introduced and draw(st.booleans())}
    if ends_are_introduced:
        introduced.add((site, 0))
    states = tuple(_module(place, sites, introduced) for place in range(count))
    return Line(states=states, held=_grant(states))


def _module(place: int, sites: list[int], introduced: set[tuple[int, int]]) -> ModuleState:
    own = sites[place]
    known = [other for other in set(sites) if other == own or (max(own, other), min(own, other)) in introduced]
    beside = [other for other in (place - 1, place + 1) if 0 <= other < len(sites)]
    name = SystemId(f"m{place}")
    state = make_module(
        system=name,
        neighbors=tuple(Neighbor(system=SystemId(f"m{other}"), is_child=other > place) for other in beside),
        trust=Trust(roots=tuple(map(_root, known)), vouchers=(_root(own),), trusts_relays=True),
        apart=tuple(SystemId(f"m{other}") for other in beside if sites[other] != own),
        key=_key(name),
    ).state
    roots = tuple((_root(sites[other]),) for other in beside if sites[other] != own)
    others = tuple(_introduction(other, sites) for other in known if other != own)
    state.identity = replace(state.identity, apart_roots=roots, other_sites=others)
    return state


def _introduction(site: int, sites: list[int]) -> OtherRoots:
    names = tuple(f"m{place}" for place, each in enumerate(sites) if each == site)
    return OtherRoots(roots=(_root(site),), names=names, is_introduction=True)


def _root(site: int) -> bytes:
    return bytes([site]) * 16


def _grant(states: tuple[ModuleState, ...]) -> HeldClaimRow:
    """Pass a request along the modules and the accept back, as search/sched_request.py does."""
    origin, *hops, executor = states
    names = [state.system for state in states]
    arrived: list[SchedRequest] = []
    passing = replace(request(), origin=origin.system, trust=origin.identity.trust, dialers=(origin.identity.key,))
    for place, hop in enumerate(hops, start=1):
        arrived.append(passing)
        passing = with_dialer(hop, passing, asker=names[place - 1], to=names[place + 1])
    accept = _granted(executor, passing, via=names[-2])
    for place in range(len(hops), 0, -1):
        hop, asked = states[place], arrived[place - 1]
        row = PassedClaimRow(
            id=accept.claim,
            toward_origin=names[place - 1],
            toward_executor=names[place + 1],
            tdv=tdv(),
            slots=1,
            origin=origin.system,
            ticket=Ticket(bytes([place]) * 16),
            dialers=asked.dialers,
            route=hop_route(hop, accept, asked, asker=names[place - 1], via=names[place + 1]),
            is_spliced=is_spliced(
                hop, accept, asker=names[place - 1], sender=names[place + 1], trust=origin.identity.trust
            ),
            is_anchored=is_anchored(hop, names[place - 1], origin.identity.trust),
        )
        hop.hop.passed[row.id] = row
        choose_way(hop, accept, row.route, now=NOW)
        accept = offered_on(hop, accept, row, trust=asked.trust)
    route = route_of(accept, names[1])
    choose_way(origin, accept, route, now=NOW)
    return HeldClaimRow(
        id=accept.claim,
        via=names[1],
        address=accept.address,
        ticket=accept.ticket,
        lease_ns=LEASE_NS,
        tdv=tdv(),
        requirement="",
        answered_at=NOW,
        server=accept.server,
        path=route.path,
    )


def _granted(executor: ModuleState, asked: SchedRequest, *, via: SystemId) -> SchedAccept:
    claim = ClaimId(executor.system, Epoch(3), 1)
    row = GrantedClaimRow(
        id=claim,
        origin=asked.origin,
        via=via,
        ticket=Ticket(b"e" * 16),
        tdv=tdv(),
        places=1,
        lease_ns=LEASE_NS,
        lease_until=NOW,
        dialers=asked.dialers,
        is_anchored=is_anchored(executor, via, asked.trust),
    )
    need = need_of(tdv(), predicate_parser(""))  # type: ignore[arg-type]  # the empty predicate is no bad one
    executor.executor.claims[claim] = GrantedClaim(row=row, need=need, granted=1)
    return SchedAccept(
        request=MessageId(1),
        claim=claim,
        address=executor.identity.address,
        ticket=row.ticket,
        places=1,
        window=1,
        lease_ns=LEASE_NS,
        asks_left=1,
        trust=executor.identity.trust,
    )


def walked(line: Line) -> list[SystemId]:
    """Follow the legs from the origin to the executor; each one must be open, and allowed at its end.

    Modules that pass connections on are on the way, too.
    """
    return [system for system, _ in steps(line)]


def readers(line: Line) -> list[SystemId]:
    """Return the modules that see the bytes."""
    return [system for system, is_reader in steps(line) if is_reader]


def steps(line: Line) -> list[tuple[SystemId, bool]]:
    """Return each module on the way of the bytes, and whether it sees them."""
    by_name = {state.system: state for state in line.states}
    at, claim = line.states[0], line.held.id
    leg: Leg = leg_of(at, claim, line.held.route)
    way = [(at.system, True)]
    while True:
        ahead = by_name[leg.system]
        if isinstance(leg.address, Splice):
            way.extend((hop, False) for hop in spliced_through(by_name, at, leg=leg))
        else:
            assert leg.address == ahead.identity.address
        are_neighbors = ahead.system in at.neighbors
        assert are_neighbors or trust_each_other(at.identity.trust, ahead.identity.trust), (way, leg)
        found = byte_leg(ahead, at.system, key=at.identity.key, claim=claim, ticket=leg.ticket)
        way.append((ahead.system, True))
        if isinstance(found, Here):
            return way
        assert isinstance(found, Leg), (way, found)
        assert len(way) <= LONGEST, way
        at, leg = ahead, found


def spliced_through(by_name: dict[SystemId, ModuleState], at: ModuleState, *, leg: Leg) -> list[SystemId]:
    """Return the modules that pass a connection on, each of which must allow it to the one before."""
    hops: list[SystemId] = []
    onward = leg
    while isinstance(onward.address, Splice):
        hop, splice = by_name[onward.address.hop], onward.address
        assert hop.system in at.neighbors
        assert splice.address == hop.identity.address
        found = splice_leg(hop, at.system, key=at.identity.key, claim=splice.claim, ticket=splice.ticket)
        assert found is not None, (hops, hop.system)
        assert found.system == leg.system
        hops.append(hop.system)
        assert len(hops) <= LONGEST, hops
        at, onward = hop, found
    assert onward.address == by_name[leg.system].identity.address
    return hops


@given(lines())
def test_bytes_reach_the_executor_on_legs_that_are_open_and_allowed(line: Line) -> None:
    way = walked(line)
    assert way[-1] == line.states[-1].system
    assert way == sorted(way)


@given(lines(), st.data())
def test_bytes_reach_the_executor_whatever_straight_legs_are_given_up(line: Line, data: st.DataObject) -> None:
    for state in line.states[:-1]:
        if data.draw(st.booleans()):
            state.ways.given_up[line.held.id] = "it does not answer"
    assert walked(line)[-1] == line.states[-1].system


@given(lines())
def test_the_path_alone_visits_every_module(line: Line) -> None:
    for state in line.states[:-1]:
        state.ways.given_up[line.held.id] = "it does not answer"
    assert walked(line) == [state.system for state in line.states]


@given(lines(may_be_introduced=False))
def test_bytes_go_straight_across_each_site_and_cross_at_its_links(line: Line) -> None:
    ends = {line.states[0].system, line.states[-1].system}
    gates = {state.system for state in line.states if state.identity.apart}
    assert walked(line) == sorted(ends | gates)


@given(lines())
def test_an_origin_learns_no_address_of_a_system_that_it_may_not_dial(line: Line) -> None:
    origin, server = line.states[0], line.held.route.straight.system
    (trust,) = (state.identity.trust for state in line.states if state.system == server)
    assert server in origin.neighbors or trust_each_other(origin.identity.trust, trust)


@given(lines())
def test_a_ticket_alone_opens_nothing_for_others(line: Line) -> None:
    stranger, claim = SystemId("stranger"), line.held.id
    for state in line.states[1:]:
        granted, passed = state.executor.claims.get(claim), state.hop.passed.get(claim)
        ticket = granted.row.ticket if granted is not None else passed.ticket if passed is not None else None
        assert ticket is not None
        found = byte_leg(state, stranger, key=_key(stranger), claim=claim, ticket=ticket)
        assert not isinstance(found, Leg | Here)


@given(lines(ends_are_introduced=True), st.data())
def test_between_introduced_sites_no_other_site_reads_bytes_and_no_neighbor_of_one_may(
    line: Line, data: st.DataObject
) -> None:
    origin, executor, claim = line.states[0].identity.trust, line.states[-1].identity.trust, line.held.id
    assert are_introduced(origin, executor)
    for state in line.states[:-1]:
        if data.draw(st.booleans()):
            state.ways.given_up[claim] = "it does not answer"
    own = {*origin.vouchers, *executor.vouchers}
    third = [state for state in line.states if own.isdisjoint(state.identity.trust.vouchers)]
    assert {state.system for state in third}.isdisjoint(readers(line))
    for at, state in product(line.states[1:], third):
        granted, passed = at.executor.claims.get(claim), at.hop.passed.get(claim)
        ticket = granted.row.ticket if granted is not None else passed.ticket if passed is not None else None
        assert ticket is not None
        found = byte_leg(at, state.system, key=state.identity.key, claim=claim, ticket=ticket)
        # One that is no neighbor cannot dial, unless its site was introduced, too.
        assert not isinstance(found, Leg | Here) or state.system not in at.neighbors, (at.system, state.system)
