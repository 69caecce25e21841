"""Numbers in what crosses a border tell neither how deep an asker is, nor how many systems were asked."""

from dataclasses import replace

import pytest

from messiahs.core.interface.events import VectorReceived
from messiahs.core.interface.messages import (
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    TaskDeny,
    TaskRequest,
    VectorKind,
)
from messiahs.core.model.ids import MessageId, SearchId
from messiahs.core.model.instants import SECOND
from tests.unit.core.border.gate import INSIDE_CLAIM, asked, gate, toward
from tests.unit.core.rig import CHILD, ME, OTHER_CHILD, PARENT, accept, deny, message_in, request, sent, view

_WAITING = StatusVector(kind=VectorKind.FOR_CHILDREN, vector=view(), period_ns=30 * SECOND, age_ns=0, waiting=4)
DEEP = (4, 7)
SHALLOW = (31, 63)


def wanting(hops_left: int, asks_left: int) -> TaskRequest:
    return TaskRequest(
        id=MessageId(5), search=SearchId(b"w" * 16), requester=ME, wanting="", count=3,
        hops_left=hops_left, asks_left=asks_left, remaining_ns=9 * SECOND,
    )  # fmt: skip


@pytest.mark.parametrize(("asker", "to"), [(CHILD, PARENT), (PARENT, CHILD)])
def test_a_request_begins_anew_at_a_border(asker: str, to: str) -> None:
    crossed = [
        asked(gate(toward(to)), asker, hops_left=hops, asks_left=asks)  # type: ignore[arg-type]
        for hops, asks in (DEEP, SHALLOW)
    ]
    deep, shallow = ((each.hops_left, each.asks_left) for each in crossed)
    assert deep == shallow


def test_a_request_for_tasks_begins_anew_at_a_border() -> None:
    left = []
    for hops, asks in (DEEP, SHALLOW):
        rig = gate()
        rig.handle(VectorReceived(sender=PARENT, message=_WAITING))
        requests = sent(rig.hear(CHILD, replace(wanting(hops, asks), requester=CHILD)), TaskRequest)
        left.append([(to, each.hops_left, each.asks_left) for to, each in requests])
    assert left[0] == left[1] != []


@pytest.mark.parametrize(("hops", "asks"), [(0, 9), (9, 0)])
def test_a_search_that_has_used_up_its_budget_does_not_cross(hops: int, asks: int) -> None:
    actions = gate().hear(PARENT, request(hops_left=hops, asks_left=asks))
    assert sent(actions, SchedRequest) == ()
    assert message_in(actions, SchedDeny)


def test_answers_do_not_tell_how_many_systems_were_asked() -> None:
    told = []
    for left in (3, 60):
        rig = gate(toward(CHILD))
        ask = asked(rig, PARENT, count=2)
        accepted = message_in(rig.hear(CHILD, replace(accept(ask.id, claim=INSIDE_CLAIM), asks_left=left)), SchedAccept)
        rest = message_in(rig.hear(CHILD, deny(ask.id, asks_left=left)), SchedRequest)
        denied = message_in(rig.hear(OTHER_CHILD, deny(rest.id, asks_left=left - 1)), SchedDeny)
        told.append((accepted.asks_left, denied.asks_left))
    refused = message_in(gate().hear(PARENT, wanting(9, 9)), TaskDeny)
    assert {*told[0], *told[1], refused.asks_left} == {told[0][0]}


def test_the_numbers_of_requests_count_nothing() -> None:
    rig = gate(toward(PARENT))
    first, second = (asked(rig, CHILD, number).id for number in (1, 2))
    assert abs(second - first) > 1 << 40


def test_a_neighbor_inside_sees_what_is_left() -> None:
    rig = gate(toward(OTHER_CHILD))
    ask = asked(rig, CHILD, hops_left=9, asks_left=20)
    assert (ask.hops_left, ask.asks_left) == (8, 19)
