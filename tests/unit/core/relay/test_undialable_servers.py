"""Claims of servers that nobody can dial: their neighbor takes their place."""

from dataclasses import replace

from messiahs.core.interface.messages import SchedAccept, SchedRequest
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import ClaimId, Epoch, MessageId, SystemId, Ticket
from messiahs.core.model.routes import Leg, Route
from messiahs.core.relay.byte_route import route_of
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, FAR, ME, PARENT, Rig, accept, request, sent

FAR_TICKET, HOP_TICKET = Ticket(b"f" * 16), Ticket(b"h" * 16)


def passed(rig: Rig, *, address: str, via: str = "") -> tuple[SchedAccept, PassedClaimRow]:
    """Let a claim be granted behind the child, and return the accept that goes on, and its row."""
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request(1, dialers=(b"g" * 16,))), SchedRequest)
    ((to, message),) = sent(rig.hear(CHILD, granted(ask.id, address=address, via=via)), SchedAccept)
    assert to == PARENT
    return message, rig.state.hop.passed[message.claim]


def granted(ask: MessageId, *, address: str, via: str) -> SchedAccept:
    claim = ClaimId(FAR, Epoch(3), 1)
    return replace(accept(ask), claim=claim, address=address, ticket=FAR_TICKET, hop_address=via, hop_ticket=HOP_TICKET)


def leg(system: SystemId, address: str, *, ticket: Ticket) -> Leg:
    return Leg(system=system, address=address, ticket=ticket)


def test_a_hop_takes_the_place_of_a_server_that_nobody_can_dial(module: ModuleFactory) -> None:
    rig = module()
    message, row = passed(rig, address="")
    assert (message.server, message.address, message.ticket) == (ME, rig.state.identity.address, row.ticket)
    assert (message.hop_address, message.hop_ticket) == (None, None)
    assert rig.state.identity.address
    behind = leg(CHILD, "", ticket=HOP_TICKET)
    assert row.route == Route(straight=behind, path=behind)


def test_a_hop_that_nobody_can_dial_leaves_the_server_as_it_is(module: ModuleFactory) -> None:
    for address in ("far:1", ""):
        rig = module()
        rig.state.identity = replace(rig.state.identity, address="")
        message, row = passed(rig, address=address, via="child:1")
        assert (message.server, message.address, message.hop_address) == (None, address, "")
        assert message.hop_ticket == row.ticket


def test_a_server_that_nobody_can_dial_is_left_out_unless_it_is_the_sender() -> None:
    far = granted(MessageId(1), address="", via="child:1")
    path = leg(CHILD, "child:1", ticket=HOP_TICKET)
    assert route_of(far, CHILD) == Route(straight=path, path=path)
    near = replace(far, hop_address=None, hop_ticket=None)
    own = leg(FAR, "", ticket=FAR_TICKET)
    assert route_of(near, FAR) == Route(straight=own, path=own)
