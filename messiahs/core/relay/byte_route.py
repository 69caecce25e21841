"""The leg that the bytes of a claim take next, and who may send them through here (MESSIAHS 5.3.3).

The paper moves tasks directly, or by proxy transfer into a system that does not admit outside systems. Here every hop
can forward, so the path on which a claim was granted always leads to its executor, and the straight leg is a shortcut
for as long as both ends trust and reach each other. A straight leg that fails is given up for its claim; new claims of
the same server take the path for a while.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from messiahs.core.border.sides import crosses
from messiahs.core.interface.actions import Action, RefuseTransfer, Report, ReportCode
from messiahs.core.interface.events import TransferFailed
from messiahs.core.interface.messages import SchedAccept, SchedRequest, TaskTransfer
from messiahs.core.interface.rows import GrantedClaimRow, PassedClaimRow
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import ClaimId, SystemId, Ticket
from messiahs.core.model.instants import Instant
from messiahs.core.model.routes import DIALER_LIMIT, Leg, Route, Splice
from messiahs.core.model.texts import printable
from messiahs.core.model.trust import Trust, are_introduced, matches, trust_each_other
from messiahs.core.relay.splices import is_spliced, spliced
from messiahs.core.state.module import ModuleState
from messiahs.core.state.ways import Detour, pause_after

NOT_INTRODUCED: Final = "no common root, and the sites are not introduced to each other"
"""Why a server is not dialed that cannot trust this module, or that this module cannot trust."""
NOT_NAMED: Final = "its certificate is signed by no root recorded for its name (`names` under `introductions`)"
"""Why one is not dialed although both sites have been introduced."""
ANOTHER_SERVER: Final = (
    "on the way is a border, a module that nobody can dial, or a link between sites that have no common root and are "
    "not introduced to each other"
)
"""Why another system is the server of a claim than its executor, as far as its origin knows."""

DETOUR_LIMIT = 64
_TEXT_LENGTH = 256


def route_of(accept: SchedAccept, sender: SystemId) -> Route:
    """Return the legs that an accept offers: to its server, and to its sender, or through it to the splice's end.

    A sender that gives no ticket of its own is the server, or passes no bytes on. A server that nobody can dial is
    left out, unless it is the sender.
    """
    straight = Leg(system=accept.server or accept.claim.executor, address=accept.address, ticket=accept.ticket)
    if accept.hop_ticket is None:
        return Route(straight=straight, path=straight)
    address = accept.address if accept.hop_address is None else accept.hop_address
    if accept.splice is None:
        path = Leg(system=sender, address=address, ticket=accept.hop_ticket)
    else:
        splice = Splice(hop=sender, address=address, claim=accept.claim, ticket=accept.hop_ticket)
        path = Leg(system=accept.splice.system, address=splice, ticket=accept.splice.ticket)
    return Route(straight=straight if straight.address else path, path=path)


def leg_of(state: ModuleState, claim: ClaimId, route: Route, /) -> Leg:
    """Return the leg for the bytes of a claim now."""
    # A server elsewhere may have the name of this system.
    if claim in state.ways.given_up or route.straight.system == state.system:
        return route.path
    return route.straight


def failure_text(state: ModuleState, event: TransferFailed, leg: Leg, /) -> str:
    """Return why tasks did not arrive, with both systems between which the way ends."""
    if event.kind is TransferFailure.BEYOND:
        # The system where it ends has written who cannot reach whom.
        return event.text
    return f"{state.system} cannot reach {leg.system}: {event.text}"


def choose_way(state: ModuleState, accept: SchedAccept, route: Route | None, /, now: Instant) -> None:
    """Give up the straight leg of a new claim at once if it is known to fail."""
    if route is None or not route.has_shortcut:
        return
    server = route.straight.system
    detour = state.ways.detours.get(server)
    why_not = "" if server in state.neighbors else _why_not_dialed(state, server, accept.trust)
    if why_not:
        state.ways.given_up[accept.claim] = why_not
    elif detour is not None and now < detour.pause.until:
        state.ways.given_up[accept.claim] = detour.text


def _why_not_dialed(state: ModuleState, server: SystemId, trust: Trust) -> str:
    """Return why a connection with a system without a link would fail; empty if it may succeed."""
    identity = state.identity
    if not trust_each_other(identity.trust, trust):
        return NOT_INTRODUCED
    is_elsewhere = bool(trust.vouchers) and not identity.is_of_site(trust.vouchers)
    is_named = not identity.other_sites or any(matches(server, each.names) for each in identity.other_sites)
    return NOT_NAMED if is_elsewhere and not is_named else ""


def hop_route(
    state: ModuleState, accept: SchedAccept, request: SchedRequest, /, *, asker: SystemId, via: SystemId
) -> Route:
    """Return the legs of a claim for a hop; without its key among the dialers of the request it has the path alone.

    So has a hop of a third site that passes connections on.
    """
    route = route_of(accept, via)
    if is_spliced(state, accept, asker=asker, sender=via, trust=request.trust):
        return Route(straight=route.path, path=route.path)
    dialers = with_dialer(state, request, asker=asker, to=via).dialers
    return route if state.identity.key in dialers else Route(straight=route.path, path=route.path)


def offered_on(state: ModuleState, accept: SchedAccept, row: PassedClaimRow, /, *, trust: Trust) -> SchedAccept:
    """Return an accept as a hop sends it on toward an origin with these roots, with the ticket of its row.

    At a boundary between sites the hop takes the place of the server, because neither site trusts the other's roots. If
    the sites have been introduced to each other, the server stays. At the border of its site it always takes the place,
    and so does a hop that can be dialed if nobody can dial the server.
    """
    assert row.ticket is not None, "a hop makes a ticket for each claim"
    if row.is_spliced:
        return spliced(state, accept, row)
    identity = state.identity
    is_boundary = not {row.toward_origin, row.toward_executor}.isdisjoint(identity.apart)
    is_boundary = is_boundary and not are_introduced(trust, accept.trust)
    is_undialable = not accept.address and bool(identity.address)
    if is_boundary or is_undialable or crosses(state, row.toward_origin, row.toward_executor):
        return replace(
            accept,
            server=state.system,
            address=identity.address,
            ticket=row.ticket,
            hop_address=None,
            hop_ticket=None,
            splice=None,
            trust=identity.trust,
        )
    return replace(accept, hop_address=identity.address, hop_ticket=row.ticket, splice=None)


def with_dialer(state: ModuleState, request: SchedRequest, *, asker: SystemId, to: SystemId) -> SchedRequest:
    """Return a request with this module among the dialers, if it passes it on over a boundary between sites.

    A request of an earlier release has no dialers: its origin is known by its name. A border is the only dialer of what
    it passes to its other side.
    """
    key, dialers = state.identity.key, request.dialers
    if asker != state.system and crosses(state, asker, to):
        return replace(request, dialers=(key,) if key else ())
    is_over_boundary = not {asker, to}.isdisjoint(state.identity.apart) and asker != state.system
    if not is_over_boundary or not key or not dialers or key in dialers or len(dialers) >= DIALER_LIMIT:
        return request
    return replace(request, dialers=(*dialers, key))


def give_up_straight(
    state: ModuleState, claim: ClaimId, route: Route, /, *, text: str, is_final: bool, now: Instant
) -> bool:
    """Use the path for the bytes of a claim from now on, and for a while for new claims of its server.

    The while is short and grows, unless the failure is final. Return False if there is no other way, or if the path is
    used already.
    """
    if not route.has_shortcut or claim in state.ways.given_up:
        return False
    # The text may come from the peer.
    text = printable(text)[:_TEXT_LENGTH] or "it does not answer"
    state.ways.given_up[claim] = text
    detours = state.ways.detours
    before = detours.pop(route.straight.system, None)
    pause = pause_after(None if before is None else before.pause, is_final=is_final, now=now)
    detours[route.straight.system] = Detour(pause=pause, text=text)
    if len(detours) > DETOUR_LIMIT:
        del detours[next(iter(detours))]
    return True


def forget_ways(state: ModuleState, claim: ClaimId) -> None:
    """Forget everything about the ways of a claim that is no longer held or passed on."""
    state.ways.given_up.pop(claim, None)
    state.ways.bringers.pop(claim, None)


def may_access(claim: GrantedClaimRow, peer: SystemId, /, *, key: bytes, ticket: Ticket) -> bool:
    """Return whether a peer may send and read bytes of a claim that was granted here.

    A neighbor of a third site may not, whatever key it has added to the request.
    """
    if claim.is_anchored and peer == claim.via:
        return False
    is_known = peer == claim.via or _is_dialer(claim.dialers, claim.origin, peer, key=key)
    return is_known and ticket == claim.ticket


def may_pass_through(claim: PassedClaimRow, peer: SystemId, /, *, key: bytes, ticket: Ticket) -> bool:
    """Return whether a peer may use the way of a claim's bytes through this module; a claim without route has none."""
    if claim.is_anchored and not claim.is_spliced and peer == claim.toward_origin:
        return False
    is_known = peer == claim.toward_origin or _is_dialer(claim.dialers, claim.origin, peer, key=key)
    return is_known and claim.route is not None and ticket == claim.ticket


def splice_leg(state: ModuleState, peer: SystemId, /, *, key: bytes, claim: ClaimId, ticket: Ticket) -> Leg | None:
    """Return the leg on which a connection of a peer is passed on; None if the peer has no right to that."""
    passed = state.hop.passed.get(claim)
    if passed is None or passed.route is None or not passed.is_spliced:
        return None
    return passed.route.path if may_pass_through(passed, peer, key=key, ticket=ticket) else None


def splice_ends(state: ModuleState, claim: ClaimId, /) -> tuple[SystemId, SystemId]:
    """Return the neighbors between which the connections of a claim are passed on: toward its origin, and executor."""
    passed = state.hop.passed[claim]
    return passed.toward_origin, passed.toward_executor


def user_of_claim(state: ModuleState, claim: ClaimId, /) -> tuple[SystemId | None, str]:
    """Return whose tasks run in a claim that was granted or passes here: the origin and the user, as it names them."""
    passed = state.hop.passed.get(claim)
    row = passed if passed is not None else state.executor.claims[claim].row
    return row.origin, str(row.tdv.description().get("user", ""))


def deny_transfer(transfer: TaskTransfer, sender: SystemId, *, key: bytes) -> tuple[Action, ...]:
    """Report a system that has no right to send tasks of a claim, and tell it so: it may have another way."""
    text = f"{sender} has no ticket for {transfer.claim}"
    return (
        Report(neighbor=sender, code=ReportCode.WRONG_TICKET, text=str(transfer.claim)),
        RefuseTransfer(to=sender, key=key, claim=transfer.claim, text=text, kind=TransferFailure.DENIED),
    )


def _is_dialer(dialers: Iterable[bytes], origin: SystemId | None, peer: SystemId, /, *, key: bytes) -> bool:
    return key in dialers if dialers else peer == origin
