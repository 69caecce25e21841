"""Attempts that have to leave a machine behind the border of another site, at their origin and on the way (5.3.2)."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import SendTasks
from messiahs.core.interface.messages import SchedAccept, SchedDeny, SchedRequest, TaskKill, TaskRevoke, TaskState
from messiahs.core.model.ids import ClaimId, Epoch, SearchId, SystemId
from tests.unit.core.border.gate import INSIDE_CLAIM, asked, gate, granted_inside, toward
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    attempt,
    message_in,
    only,
    request,
    sent,
    status,
    statuses,
)

HERE, THERE = b"1" * 16, b"2" * 16
ELSEWHERE = CLAIM._replace(number=2)


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Make an origin with a running attempt at a machine behind a border, which the parent leads to."""
    actions = rig.submit()
    while (asked_for := sent(actions, SchedRequest))[0][0] != PARENT:
        ((to, ask),) = asked_for
        actions = rig.hear(to, SchedDeny(request=ask.id, reasons=(), asks_left=60))
    ((_, ask),) = asked_for
    rig.hear(PARENT, replace(accept(ask.id), place=HERE))
    rig.hear(PARENT, statuses(status(attempt(), TaskState.EXECUTING)))
    return rig


def test_the_first_search_for_a_moving_attempt_goes_to_its_site_alone_and_the_next_one_everywhere(bound: Rig) -> None:
    revoke = TaskRevoke(claim=CLAIM, attempts=(attempt(),))
    ((to, ask),) = sent(bound.hear(PARENT, revoke), SchedRequest)
    assert (to, ask.near) == (PARENT, CLAIM)
    assert sent(bound.hear(PARENT, SchedDeny(request=ask.id, reasons=(), asks_left=60)), SchedRequest) == ()
    ((_, again),) = sent(bound.wait(0), SchedRequest)
    assert again.near is None


def test_an_offered_attempt_is_not_searched_for_near_its_claim(bound: Rig) -> None:
    offer = TaskRevoke(claim=CLAIM, attempts=(attempt(),), answers=SearchId(b"a" * 16), toward=CHILD)
    assert message_in(bound.hear(PARENT, offer), SchedRequest).near is None


@pytest.mark.parametrize(("place", "is_moved"), [(HERE, False), (THERE, True)])
def test_an_attempt_moves_to_another_machine_behind_the_same_border_but_not_to_the_same_one(
    bound: Rig, place: bytes, *, is_moved: bool
) -> None:
    ask = message_in(bound.hear(PARENT, TaskRevoke(claim=CLAIM, attempts=(attempt(),))), SchedRequest)
    actions = bound.hear(PARENT, replace(accept(ask.id, claim=ELSEWHERE), place=place))
    assert bool(sent(actions, TaskKill)) is is_moved
    if is_moved:
        ended = bound.hear(PARENT, statuses(status(attempt(), TaskState.REVOKED, cause="moved")))
        (tasks,) = only(ended, SendTasks)
        assert (tasks.message.claim, [task.attempt for task in tasks.message.tasks]) == (ELSEWHERE, [attempt(2)])


def test_a_border_searches_in_the_direction_of_the_claim_by_its_own_id() -> None:
    rig = gate(toward(OTHER_CHILD))
    actions = rig.hear(PARENT, request(1, search=SearchId(b"\x01" * 16)))
    first = message_in(actions, SchedRequest)
    second = message_in(rig.hear(OTHER_CHILD, SchedDeny(request=first.id, reasons=(), asks_left=60)), SchedRequest)
    seen = message_in(rig.hear(CHILD, accept(second.id, claim=INSIDE_CLAIM)), SchedAccept).claim
    ((to, ask),) = sent(rig.hear(PARENT, request(2, search=SearchId(b"\x02" * 16), near=seen)), SchedRequest)
    assert (to, ask.near) == (CHILD, INSIDE_CLAIM)
    ((to, ask),) = sent(rig.hear(CHILD, SchedDeny(request=ask.id, reasons=(), asks_left=60)), SchedRequest)
    assert (to, ask.near) == (OTHER_CHILD, None)


def test_the_id_of_a_claim_inside_does_not_leave_the_site_in_a_request() -> None:
    rig = gate(toward(CHILD))
    granted_inside(rig)
    rig.state.policy = toward(SIBLING)
    assert asked(rig, CHILD, 3, near=INSIDE_CLAIM).near is None


def test_a_request_near_a_claim_that_nobody_here_knows_is_an_ordinary_one() -> None:
    rig = gate(toward(CHILD))
    strange = ClaimId(SystemId("strange"), Epoch(1), 1)
    assert asked(rig, PARENT, 3, near=strange).near is None
