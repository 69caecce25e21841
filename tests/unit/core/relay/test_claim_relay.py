"""Messages of a claim that was granted through this module."""

import pytest

from messiahs.core.interface.actions import Forget, SendControl
from messiahs.core.interface.messages import (
    ClaimEnd,
    ClaimMessage,
    SchedRequest,
    TaskKill,
    TaskState,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import RowKind
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    PARENT,
    SIBLING,
    Rig,
    accept,
    remote,
    reported,
    request,
    sent,
    status,
    statuses,
)

TO_THE_EXECUTOR: tuple[ClaimMessage, ...] = (
    TaskStatusAck(claim=CLAIM, taken=(remote(),)),
    TaskStatusQuery(claim=CLAIM, attempts=()),
    TaskKill(claim=CLAIM, attempts=(remote(),)),
)
TO_THE_ORIGIN: tuple[ClaimMessage, ...] = (statuses(status(remote(), TaskState.EXECUTING)), ClaimEnd(claim=CLAIM))


@pytest.fixture
def path(rig: Rig) -> Rig:
    """Let a claim pass from the child, where its executor is, to the parent, where its origin is."""
    ((_, ask),) = sent(rig.hear(PARENT, request()), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


@pytest.mark.parametrize("message", TO_THE_ORIGIN)
def test_the_executors_messages_are_passed_towards_the_origin(path: Rig, message: ClaimMessage) -> None:
    assert path.hear(CHILD, message) == (SendControl(to=PARENT, message=message),)


@pytest.mark.parametrize("message", TO_THE_EXECUTOR)
def test_the_origins_messages_are_passed_towards_the_executor(path: Rig, message: ClaimMessage) -> None:
    assert path.hear(PARENT, message) == (SendControl(to=CHILD, message=message),)


def test_a_query_from_off_the_path_is_reported_by_the_origin(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    assert reported(rig.hear(SIBLING, TaskStatusQuery(claim=CLAIM, attempts=()))) == "no_such_claim"


@pytest.mark.parametrize("message", [*TO_THE_ORIGIN, *TO_THE_EXECUTOR])
def test_messages_from_off_the_path_are_reported_and_go_nowhere(path: Rig, message: ClaimMessage) -> None:
    assert reported(path.hear(SIBLING, message)) == "no_such_claim"


def test_the_executors_word_of_the_end_is_not_the_last_one_but_the_origins_is(path: Rig) -> None:
    path.hear(CHILD, ClaimEnd(claim=CLAIM))
    assert CLAIM in path.state.hop.passed
    assert path.hear(PARENT, ClaimEnd(claim=CLAIM)) == (
        Forget(key=(RowKind.PASSED_CLAIM, CLAIM)),
        SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM)),
    )
    assert path.state.hop.passed == {}


@pytest.mark.parametrize(
    "message",
    [
        TaskStatusAck(claim=CLAIM, taken=(remote(),)),
        TaskStatusQuery(claim=CLAIM, attempts=(remote(),)),
        TaskKill(claim=CLAIM, attempts=(remote(),)),
    ],
)
def test_a_message_to_the_executor_of_an_unknown_claim_is_reported(rig: Rig, message: ClaimMessage) -> None:
    assert reported(rig.hear(PARENT, message)) == "no_such_claim"


def test_a_hop_that_does_not_know_a_claim_answers_that_it_is_forgotten(rig: Rig) -> None:
    end = ClaimEnd(claim=CLAIM, is_forgotten=True)
    assert rig.hear(PARENT, TaskStatusQuery(claim=CLAIM, attempts=())) == (SendControl(to=PARENT, message=end),)


def test_a_hop_forgets_a_claim_that_neither_the_next_hop_nor_the_origin_knows(path: Rig, module: ModuleFactory) -> None:
    next_hop, origin = module(), module()
    for each in (next_hop, origin):
        each.greet(CHILD, PARENT)
    query = TaskStatusQuery(claim=CLAIM, attempts=())
    ((_, forgotten),) = sent(next_hop.hear(PARENT, query), ClaimEnd)
    assert path.hear(CHILD, forgotten) == (SendControl(to=PARENT, message=forgotten),)
    ((_, end),) = sent(origin.hear(CHILD, forgotten), ClaimEnd)
    path.hear(PARENT, end)
    assert path.state.hop.passed == {}
    assert next_hop.hear(PARENT, end) == ()


def test_a_result_of_a_claim_that_nobody_knows_ends_that_claim(rig: Rig) -> None:
    assert rig.hear(CHILD, TO_THE_ORIGIN[0]) == (SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM)),)


def test_the_end_of_an_unknown_claim_changes_nothing(rig: Rig) -> None:
    assert rig.hear(CHILD, ClaimEnd(claim=CLAIM)) == ()


def test_of_a_claim_that_neither_end_knows_the_origin_speaks_the_last_word(rig: Rig) -> None:
    forgotten = ClaimEnd(claim=CLAIM, is_forgotten=True)
    assert rig.hear(CHILD, forgotten) == (SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM)),)
    assert rig.hear(CHILD, ClaimEnd(claim=CLAIM)) == ()
