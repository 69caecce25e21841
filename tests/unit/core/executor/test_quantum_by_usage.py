"""How long a claim keeps its machine full while others wait: by what both sides have used before."""

import pytest

from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.ledger_rows import Parties
from messiahs.core.interface.messages import SchedAccept, SchedDeny, TaskStatus
from messiahs.core.ledger.accounts import enter
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import SECOND
from tests.unit.core.rig import CHILD, ME, ORIGIN, PARENT, START, Rig, message_in, remote, request, tdv, transfer

SHORTEST, LONGEST = 5, 30
OTHER = SystemId("other")


def grant(rig: Rig, *, user: str = "ann", is_foreign: bool = False) -> SchedAccept:
    """Let the own machine, with four slots, grant all of them, and fill them with tasks."""
    rig.measure()
    asked = request(1, search=SearchId(b"1" * 16), count=4, tdv=tdv(user=user), is_foreign=is_foreign)
    claim = message_in(rig.hear(PARENT, asked), SchedAccept)
    bring(rig, claim, *range(4))
    return claim


def bring(rig: Rig, claim: SchedAccept, *members: int) -> None:
    tasks = [remote(member=member) for member in members]
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *tasks)))


def deny(rig: Rig, neighbor: SystemId, /, *, origin: SystemId) -> None:
    asked = request(2, search=SearchId(b"2" * 16), count=1, origin=origin, hops_left=0)
    message_in(rig.hear(neighbor, asked), SchedDeny)


def use(rig: Rig, sink: SystemId, /, *, origin: SystemId, seconds: int, user: str = "ann") -> None:
    enter(rig.state, Parties(source=ME, sink=sink, origin=origin, user=user), seconds * SECOND, START)


def quantum_s(rig: Rig, claim: SchedAccept) -> int:
    """Return after how many seconds the claim takes no more tasks, looked at when one of its tasks ends."""
    began_at = rig.now
    for seconds in (SHORTEST, LONGEST):
        rig.wait(began_at + seconds * SECOND - rig.now)
        member = remote(member=seconds // LONGEST)
        rig.handle(AttemptStarted(attempt=member))
        ended = rig.end(AttemptEnded(attempt=member, exit_code=0, ran_ns=SECOND))
        if message_in(ended, TaskStatus).window == 0:
            return seconds
        bring(rig, claim, 10)
    return 0


@pytest.mark.parametrize(("own", "others", "quantum"), [(5, 3, SHORTEST), (3, 3, SHORTEST), (3, 5, LONGEST)])
def test_a_claim_stays_long_where_only_those_wait_who_have_used_more(
    rig: Rig, own: int, others: int, quantum: int
) -> None:
    claim = grant(rig)
    deny(rig, PARENT, origin=OTHER)
    use(rig, PARENT, origin=ORIGIN, seconds=own)
    use(rig, PARENT, origin=OTHER, seconds=others)
    assert quantum_s(rig, claim) == quantum


@pytest.mark.parametrize(("is_foreign", "quantum"), [(False, LONGEST), (True, SHORTEST)])
def test_a_new_name_of_a_user_at_another_site_is_no_new_user(rig: Rig, quantum: int, *, is_foreign: bool) -> None:
    for user in ("one", "two"):
        use(rig, PARENT, origin=ORIGIN, seconds=5, user=user)
    use(rig, CHILD, origin=OTHER, seconds=7)
    claim = grant(rig, user="three", is_foreign=is_foreign)
    deny(rig, CHILD, origin=OTHER)
    assert quantum_s(rig, claim) == quantum
