"""What hosts ask of the state of a module."""

from dataclasses import dataclass

import pytest

from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import SchedAccept
from messiahs.core.model.ids import AttemptId, ClaimId, SearchId, SystemId, Ticket
from messiahs.core.queries import Access, read_access
from tests.unit.core.rig import CLAIM, ORIGIN, PARENT, STRANGER, TICKET, Rig, remote, request, told, transfer


def claim_with_task(rig: Rig, number: int) -> SchedAccept:
    """Let the own machine grant a claim to an origin, through the parent, and take the member with that number."""
    search = SearchId(number.to_bytes(16))
    accept = told(rig.hear(PARENT, request(number, search=search)), SchedAccept)
    message = transfer(accept.claim, accept.ticket, remote(member=number))
    rig.handle(TransferReceived(sender=ORIGIN, message=message))
    return accept


FIRST, SECOND, THIRD = (remote(member=number) for number in (1, 2, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a peer asks for; None is what the first claim has."""

    peer: SystemId = ORIGIN
    claim: ClaimId | None = None
    ticket: Ticket | None = None
    attempt: AttemptId = FIRST


@pytest.mark.parametrize(
    ("asked", "access"),
    [
        pytest.param(Asked(), Access.ALLOWED, id="the origin with its ticket"),
        pytest.param(Asked(peer=STRANGER), Access.DENIED, id="another system with the ticket"),
        pytest.param(Asked(peer=PARENT), Access.DENIED, id="the neighbor through which the claim came"),
        pytest.param(Asked(ticket=TICKET), Access.DENIED, id="the origin with another ticket"),
        pytest.param(Asked(attempt=SECOND), Access.GONE, id="an attempt of another claim"),
        pytest.param(Asked(attempt=THIRD), Access.GONE, id="an attempt that is not here"),
        pytest.param(Asked(peer=STRANGER, attempt=THIRD), Access.DENIED, id="a stranger asks for that"),
        pytest.param(Asked(claim=CLAIM), Access.GONE, id="a claim that is not here"),
    ],
)
def test_an_attempt_is_read_by_the_origin_of_its_claim_with_its_ticket_alone(
    rig: Rig, asked: Asked, access: Access
) -> None:
    rig.measure()
    first, _ = claim_with_task(rig, 1), claim_with_task(rig, 2)
    claim, ticket = asked.claim or first.claim, asked.ticket or first.ticket
    assert read_access(rig.state, asked.peer, claim=claim, ticket=ticket, attempt=asked.attempt) is access
