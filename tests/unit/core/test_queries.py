"""What hosts ask of the state of a module."""

from dataclasses import dataclass, replace

import pytest

from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import AnswerTo, CancelRequested, TransferReceived
from messiahs.core.interface.messages import AttemptStatus, Command, SchedAccept, SchedRequest, TaskState
from messiahs.core.interface.rows import AttemptRow, SubmissionRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, Epoch, SearchId, SystemId, Ticket
from messiahs.core.model.instants import MILLISECOND, Instant
from messiahs.core.model.task_files import InputFile
from messiahs.core.queries import (
    Access,
    Here,
    byte_leg,
    granted_claim,
    inputs_in_use,
    is_attempt_of,
    is_executing,
    is_wanted,
    local_attempts,
    neighbor_view,
    neighbors_of,
)
from messiahs.core.state.origin import Submission
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    ORIGIN,
    PARENT,
    STRANGER,
    TASK,
    TICKET,
    Rig,
    accept,
    make_module,
    message_in,
    remote,
    request,
    sent,
    transfer,
    view,
)


def claim_with_task(rig: Rig, number: int) -> SchedAccept:
    """Let the own machine grant a claim to an origin, through the parent, and take the member with that number."""
    search = SearchId(number.to_bytes(16))
    accept = message_in(rig.hear(PARENT, request(number, search=search)), SchedAccept)
    message = transfer(accept.claim, accept.ticket, remote(member=number))
    rig.handle(TransferReceived(sender=ORIGIN, message=message))
    return accept


KEY = b"k" * 16
FIRST, SECOND, THIRD = (remote(member=number) for number in (1, 2, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a peer asks for; None is what the first claim has."""

    peer: SystemId = ORIGIN
    claim: ClaimId | None = None
    ticket: Ticket | None = None
    key: bytes = b""


@pytest.mark.parametrize(
    ("asked", "access"),
    [
        pytest.param(Asked(), Here, id="the origin with its ticket"),
        pytest.param(Asked(peer=STRANGER), Access.DENIED, id="another system with the ticket"),
        pytest.param(Asked(peer=PARENT), Here, id="the neighbor through which the claim came"),
        pytest.param(Asked(ticket=TICKET), Access.DENIED, id="the origin with another ticket"),
        pytest.param(Asked(peer=STRANGER, key=KEY), Access.DENIED, id="a system whose key is none of the dialers"),
        pytest.param(Asked(claim=CLAIM), Access.GONE, id="a claim that is not here"),
    ],
)
def test_bytes_of_a_claim_are_for_its_origin_and_its_neighbor_with_the_ticket_alone(
    rig: Rig, asked: Asked, access: Access | type[Here]
) -> None:
    rig.measure()
    first, _ = claim_with_task(rig, 1), claim_with_task(rig, 2)
    claim, ticket = asked.claim or first.claim, asked.ticket or first.ticket
    found = byte_leg(rig.state, asked.peer, key=asked.key, claim=claim, ticket=ticket)
    assert found == (Here(claim=rig.state.executor.claims[claim].row) if access is Here else access)


def test_an_attempt_belongs_to_the_claim_in_which_it_was_bound(rig: Rig) -> None:
    rig.measure()
    first, _ = claim_with_task(rig, 1), claim_with_task(rig, 2)
    of_first = [each for each in (FIRST, SECOND, THIRD) if is_attempt_of(rig.state, each, claim=first.claim)]
    assert of_first == [FIRST]


def test_what_runs_here_is_given_with_its_claim_until_it_ends(rig: Rig) -> None:
    rig.measure()
    first, second = claim_with_task(rig, 1), claim_with_task(rig, 2)
    rig.handle(AttemptStarted(attempt=FIRST))
    rig.end(AttemptEnded(attempt=SECOND, exit_code=0, ran_ns=1))
    (running,) = local_attempts(rig.state)
    assert (running.row.id, running.claim.id, running.claim.origin) == (FIRST, first.claim, ORIGIN)
    assert (running.slots, running.taken_at, running.started_at) == (1, rig.now, rig.now)
    in_claims = ((FIRST, first), (SECOND, second), (FIRST, second))
    executing = [is_executing(rig.state, attempt, claim=accept.claim) for attempt, accept in in_claims]
    assert executing == [True, False, False]
    assert granted_claim(rig.state, second.claim) is not None
    assert granted_claim(rig.state, CLAIM) is None


def test_an_attempt_is_wanted_while_it_is_the_latest_one_of_a_task_that_is_not_cancelled(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    bound, later = AttemptId(TASK, 1), AttemptId(TASK, 2)
    assert (is_wanted(rig.state, bound), is_wanted(rig.state, later)) == (True, False)
    rig.handle(CancelRequested(answer_to=AnswerTo(2), task=TASK))
    assert not is_wanted(rig.state, bound)


def test_a_neighbor_that_has_said_nothing_has_no_view(rig: Rig) -> None:
    silent = make_module()
    for neighbor in neighbors_of(silent.state).values():
        assert neighbor_view(silent.state, neighbor, rig.now) is None


def test_a_view_is_as_old_as_its_oldest_part(rig: Rig) -> None:
    rig.see(CHILD)
    rig.wait(MILLISECOND)
    shown = neighbor_view(rig.state, neighbors_of(rig.state)[CHILD], rig.now)
    assert shown is not None
    assert (shown.vector, shown.age_ns, shown.waiting) == (view(), MILLISECOND, 0)


def file(number: int) -> InputFile:
    return InputFile(name="in", sha256=bytes([number]) * 32, size_bytes=1)


def command(number: int) -> Command:
    return Command(argv=("true",), inputs=(file(number),))


def test_what_live_submissions_their_members_and_attempts_name_is_needed_and_nothing_else() -> None:
    state = make_module().state
    live = SubmissionRow(
        id=TASK,
        key=ClientKey("k"),
        tdv=TDV(()),
        requirement="",
        command=command(1),
        members=2,
        member_inputs=((file(2),), (file(3),)),
        submitted_at=Instant(1),
    )
    over = replace(live, id=TASK._replace(number=2), command=command(4), member_inputs=(), ended_at=Instant(2))
    state.origin.submissions = {row.id: Submission(row=row) for row in (live, over)}
    for number, status in ((5, TaskState.EXECUTING), (6, TaskState.FINISHED)):
        attempt = AttemptId(TASK, number)
        state.executor.attempts[attempt] = AttemptRow(
            id=attempt,
            claim=ClaimId(SystemId("cs"), Epoch(1), 1),
            command=command(number),
            status=AttemptStatus(attempt=attempt, state=status),
        )
    assert inputs_in_use(state) == {bytes([number]) * 32 for number in (1, 2, 3, 5)}
