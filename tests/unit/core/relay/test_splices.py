"""Modules of third sites on the path of a claim: they pass connections on, or nothing."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import RefuseTransfer, SendTasks
from messiahs.core.interface.events import LinkDown, TransferReceived
from messiahs.core.interface.messages import ClaimEnd, DenyCode, SchedAccept, SchedDeny, SchedRequest
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import ClaimId, Epoch, SearchId, SystemId, Ticket
from messiahs.core.model.instants import SECOND
from messiahs.core.model.places import digest_of
from messiahs.core.model.routes import Leg, Splice, SpliceEnd
from messiahs.core.model.trust import Trust
from messiahs.core.relay.byte_route import route_of, splice_leg
from messiahs.core.relay.splices import NO_ANCHORS
from messiahs.core.state.ways import FIRST_PAUSE_NS
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, FAR, ME, PARENT, TICKET, Rig, accept, deny, remote, request, sent, transfer

ONE, TWO, THIRD = b"1" * 16, b"2" * 16, b"3" * 16
ORIGIN_KEY, OTHER_KEY = b"g" * 16, b"x" * 16
BEHIND = Ticket(b"b" * 16)
CLAIM = ClaimId(FAR, Epoch(3), 1)


def end(own: bytes, *others: bytes, trusts_relays: bool = False) -> Trust:
    return Trust(roots=(own, *others), vouchers=(own,), trusts_relays=trusts_relays)


ANCHORED = (end(ONE, TWO), end(TWO, ONE))


def asked(module: ModuleFactory, origin: Trust, *, own: bytes = THIRD) -> tuple[Rig, SchedRequest]:
    """Return a module through which an origin with these roots searches, and what it asks the child."""
    rig = module(trust=end(own), apart=(CHILD, PARENT), key=b"m" * 16)
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request(1, trust=origin, dialers=(ORIGIN_KEY,))), SchedRequest)
    return rig, ask


def passed(
    module: ModuleFactory, ends: tuple[Trust, Trust], /, *, own: bytes = THIRD, **said: object
) -> tuple[Rig, SchedAccept, PassedClaimRow]:
    origin, server = ends
    rig, ask = asked(module, origin, own=own)
    granted = replace(accept(ask.id), claim=CLAIM, trust=server, **said)  # type: ignore[arg-type]
    ((_, message),) = sent(rig.hear(CHILD, granted), SchedAccept)
    return rig, message, rig.state.hop.passed[CLAIM]


def test_a_third_site_passes_connections_on_to_the_next_system_that_may_read_the_bytes(module: ModuleFactory) -> None:
    _, message, row = passed(module, ANCHORED, hop_address="child:1", hop_ticket=BEHIND)
    assert row.is_spliced
    assert (message.hop_address, message.hop_ticket) == ("me:1", row.ticket)
    assert message.splice == SpliceEnd(system=CHILD, ticket=BEHIND)
    assert (message.server, message.ticket, message.trust) == (None, TICKET, ANCHORED[1])
    assert row.ticket is not None
    splice = Splice(hop=PARENT, address="me:1", claim=CLAIM, ticket=row.ticket)
    assert route_of(message, PARENT).path == Leg(system=CHILD, address=splice, ticket=BEHIND)


def test_the_second_hop_of_a_third_site_leaves_the_end_as_it_is(module: ModuleFactory) -> None:
    behind = SpliceEnd(system=SystemId("gate"), ticket=BEHIND)
    hop_ticket = Ticket(b"p" * 16)
    _, message, row = passed(module, ANCHORED, hop_address="child:1", hop_ticket=hop_ticket, splice=behind)
    assert message.splice == behind
    assert row.route is not None
    splice = Splice(hop=CHILD, address="child:1", claim=CLAIM, ticket=hop_ticket)
    assert row.route.straight == row.route.path == Leg(system=behind.system, address=splice, ticket=BEHIND)


def test_a_hop_of_the_site_at_one_end_passes_bytes_on_itself(module: ModuleFactory) -> None:
    behind = SpliceEnd(system=SystemId("gate"), ticket=BEHIND)
    for own in (ONE, TWO):
        _, message, row = passed(module, ANCHORED, own=own, hop_address="c:1", hop_ticket=BEHIND, splice=behind)
        assert not row.is_spliced
        assert (message.splice, message.hop_ticket) == (None, row.ticket)


@pytest.mark.parametrize(
    ("origin", "server"),
    [
        (end(ONE), end(TWO)),
        (end(ONE, TWO), end(TWO)),
        (end(ONE, trusts_relays=True), end(TWO)),
        (Trust(), end(TWO, ONE)),
    ],
)
def test_without_anchors_a_third_site_passes_nothing_on(module: ModuleFactory, origin: Trust, server: Trust) -> None:
    rig, ask = asked(module, origin)
    actions = rig.hear(CHILD, replace(accept(ask.id), claim=CLAIM, trust=server))
    assert sent(actions, ClaimEnd) == ((CHILD, ClaimEnd(claim=CLAIM)),)
    ((to, deny),) = sent(actions, SchedDeny)
    assert to == PARENT
    reasons = [each for reason in deny.reasons for each in (reason, *reason.hops)]
    assert (DenyCode.UNREACHABLE, NO_ANCHORS) in [(each.code, each.text) for each in reasons]
    assert CLAIM not in rig.state.hop.passed


def test_a_machine_that_was_refused_is_left_out_of_later_searches_for_origins_with_such_roots(
    module: ModuleFactory,
) -> None:
    rig, ask = asked(module, end(ONE))
    rig.hear(CHILD, replace(accept(ask.id), claim=CLAIM, trust=end(TWO)))

    def avoids(number: int, origin: Trust) -> tuple[bytes, ...]:
        wanted = request(number, trust=origin, search=SearchId(bytes([number]) * 16))
        ((_, found),) = sent(rig.hear(PARENT, wanted), SchedRequest)
        ((_, denied),) = sent(rig.hear(CHILD, deny(found.id)), SchedDeny)
        texts = [each.text for reason in denied.reasons for each in (reason, *reason.hops)]
        assert (NO_ANCHORS in texts) is bool(found.avoids)
        assert all(each == digest_of(FAR.encode(), wanted.search) for each in found.avoids)
        return found.avoids

    assert len(avoids(2, end(ONE))) == 1
    assert avoids(3, end(ONE, TWO)) == ()
    for _ in range(FIRST_PAUSE_NS // SECOND):
        rig.see(CHILD)
        rig.wait(SECOND)
    rig.see(CHILD)
    assert avoids(4, end(ONE)) == ()


def test_a_refused_machine_is_asked_again_once_the_link_toward_it_is_up_again(module: ModuleFactory) -> None:
    rig, ask = asked(module, end(ONE))
    rig.hear(CHILD, replace(accept(ask.id), claim=CLAIM, trust=end(TWO)))
    assert rig.state.ways.refused
    rig.handle(LinkDown(neighbor=CHILD))
    rig.greet(CHILD)
    assert not rig.state.ways.refused


def test_it_takes_the_place_of_the_server_if_both_ends_trust_relays(module: ModuleFactory) -> None:
    _, message, row = passed(module, (end(ONE, trusts_relays=True), end(TWO, trusts_relays=True)))
    assert not row.is_spliced
    assert (message.server, message.ticket) == (ME, row.ticket)


def test_bytes_do_not_end_at_a_hop_of_a_third_site(module: ModuleFactory) -> None:
    rig, _, row = passed(module, ANCHORED)
    assert row.ticket is not None
    brought = transfer(row.id, row.ticket, remote())
    actions = rig.handle(TransferReceived(sender=PARENT, key=b"", message=brought))
    assert [action for action in actions if isinstance(action, SendTasks)] == []
    assert [action for action in actions if isinstance(action, RefuseTransfer)] != []
    leg = queries.byte_leg(rig.state, PARENT, key=b"", claim=CLAIM, ticket=row.ticket)
    assert leg is queries.Access.DENIED


def test_connections_are_passed_on_for_dialers_with_the_ticket_alone(module: ModuleFactory) -> None:
    rig, _, row = passed(module, ANCHORED)
    assert row.ticket is not None
    assert row.route is not None

    def leg(peer: str, *, key: bytes, ticket: Ticket) -> Leg | None:
        return splice_leg(rig.state, SystemId(peer), key=key, claim=CLAIM, ticket=ticket)

    own, other = row.ticket, BEHIND
    assert leg(PARENT, key=b"", ticket=own) == leg("elsewhere", key=ORIGIN_KEY, ticket=own) == row.route.path
    assert leg("elsewhere", key=OTHER_KEY, ticket=own) is leg(PARENT, key=b"", ticket=other) is None


@pytest.mark.parametrize(("origin", "is_admitted"), [(end(ONE, TWO), False), (end(ONE), True), (end(THIRD, TWO), True)])
def test_the_neighbor_of_a_third_site_may_not_use_the_tickets_that_pass_it(
    module: ModuleFactory, origin: Trust, *, is_admitted: bool
) -> None:
    rig = module(trust=end(TWO, ONE, THIRD), apart=(PARENT,), key=b"m" * 16)
    rig.state.identity = replace(rig.state.identity, apart_roots=((THIRD,),))
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request(1, trust=origin, dialers=(ORIGIN_KEY, OTHER_KEY))), SchedRequest)
    rig.hear(CHILD, replace(accept(ask.id), claim=CLAIM, trust=end(TWO, ONE, THIRD)))
    ticket = rig.state.hop.passed[CLAIM].ticket
    assert ticket is not None
    leg = queries.byte_leg(rig.state, PARENT, key=OTHER_KEY, claim=CLAIM, ticket=ticket)
    assert isinstance(leg, Leg) is is_admitted
    assert isinstance(queries.byte_leg(rig.state, SystemId("a"), key=ORIGIN_KEY, claim=CLAIM, ticket=ticket), Leg)


@pytest.mark.parametrize("is_spliced", [False, True])
def test_an_offer_of_a_third_site_to_pass_readable_bytes_on_is_not_taken(
    module: ModuleFactory, *, is_spliced: bool
) -> None:
    rig = module(trust=end(ONE, TWO), apart=(CHILD,), key=b"m" * 16)
    rig.state.identity = replace(rig.state.identity, apart_roots=((THIRD,),))
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request(1, trust=end(ONE, TWO), dialers=(ORIGIN_KEY,))), SchedRequest)
    splice = SpliceEnd(system=FAR, ticket=TICKET) if is_spliced else None
    offer = replace(accept(ask.id), claim=CLAIM, trust=end(TWO, ONE), hop_address="child:1", hop_ticket=BEHIND)
    rig.hear(CHILD, replace(offer, splice=splice))
    route = rig.state.hop.passed[CLAIM].route
    assert route is not None
    assert route.path.system == route.straight.system == FAR
    assert isinstance(route.path.address, Splice) is is_spliced
